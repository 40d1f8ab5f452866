"""An invitation as the admin makes one: stored, and then mailed."""

from __future__ import annotations

from workspaces.actors import Actor, Role
from workspaces.models import Invitation, Workspace
from workspaces.people.services import mail_invitation, make_invitation


def invite_member(
    *,
    workspace: Workspace,
    email: str,
    role: Role,
    is_auditor: bool,
    actor: Actor,
    accept_url: str,
) -> tuple[Invitation, str]:
    """Invite somebody; the invitation, and the token that their mail holds."""
    invitation, token = make_invitation(
        workspace=workspace, email=email, role=role, is_auditor=is_auditor, actor=actor
    )
    mail_invitation(invitation=invitation, link=accept_url.replace("{token}", token), actor=actor)
    return invitation, token
