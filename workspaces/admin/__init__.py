"""People, workspaces and API tokens in the admin."""

from workspaces.admin import accounts, invitations, members, tokens, workspaces

__all__ = ["accounts", "invitations", "members", "tokens", "workspaces"]
