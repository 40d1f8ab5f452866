"""What people call this app's tables and columns, and the columns that all apps have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workspaces.words.texts import gettext_lazy as _

if TYPE_CHECKING:
    from workspaces.words.columns import Columns, Tables

EVERYWHERE: Final[Columns] = {
    "bud": _("bud"),
    "created_at": _("created"),
    "definition_hash": _("definition hash"),
    "description": _("description"),
    "expires_at": _("expires"),
    "id": _("id"),
    "is_active": _("active"),
    "kind": _("kind"),
    "last_error": _("last error"),
    "last_used_at": _("last used"),
    "model": _("model"),
    "name": _("name"),
    "owner": _("owner"),
    "parameters": _("parameters"),
    "person": _("person"),
    "problem": _("problem"),
    "provider": _("provider"),
    "reason": _("reason"),
    "server": _("server"),
    "server_name": _("server"),
    "size": _("size"),
    "slug": _("short name"),
    "time_zone": _("time zone"),
    "title": _("title"),
    "transport": _("transport"),
    "updated_at": _("last changed"),
    "user": _("user"),
    "version": _("version"),
    "workspace": _("workspace"),
    "workspace_id": _("workspace"),
}

COLUMNS: Final[Columns] = {
    "accepted_at": _("accepted"),
    "allows_mcp_clients": _("members can use the tools in other MCP clients"),
    "allows_personal_servers": _("members can add servers of their own"),
    "allows_public_links": _("members can share chats with anyone who has the link"),
    "requires_two_steps": _("people need two-step verification to enter"),
    "approves_new_tools": _("use new tools right away"),
    "hint": _("begins with"),
    "invited_by": _("invited by"),
    "is_link_shown": _("link shown to the inviter"),
    "reads_outside_unasked": _(
        "let reading tools reach outside without asking, even after content from outside was read"
    ),
    "remembers_permissions": _("members can choose “Always allow” for a tool"),
    "revoked_at": _("revoked"),
    "role": _("role"),
    "scopes": _("scopes"),
    "suspended_at": _("suspended"),
    "suspension_reason": _("reason for the suspension"),
    "token_hash": _("hash of the token"),
    "User.is_superuser": _("owner of the platform"),
    "Workspace.is_active": _("open"),
}

TABLES: Final[Tables] = {
    "AccessRequest": (None, _("requests")),
    "ApiToken": (None, _("API tokens")),
    "Invitation": (_("invitation"), _("invitations")),
    "JoinLink": (_("join link"), _("join links")),
    "Membership": (_("membership"), _("memberships")),
    "SavedListView": (None, _("saved views of lists")),
    "User": (_("user"), _("users")),
    "Workspace": (_("workspace"), _("workspaces")),
    "WorkspaceSession": (None, _("browser sessions")),
}
