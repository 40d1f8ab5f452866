"""What a workspace lets its people do, with servers and with their chats, and how they enter."""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from workspaces.actors import Actor
from workspaces.changes import tracked_change
from workspaces.errors import InvalidInput
from workspaces.models import Workspace
from workspaces.people.entering import require_second_step
from workspaces.roles import Permission, require

RULES: Final = {
    "allows_personal_servers": gettext_noop(
        "Only remote servers. Nobody else sees or uses them. Administrators can switch them off."
    ),
    "remembers_permissions": gettext_noop(
        "Trellis asks again when the tool changes, and always where an administrator wants to be asked."
    ),
    "reads_outside_unasked": gettext_noop(
        "A page or mail could then trick the assistant into sending data out. Tools that change things still ask."
    ),
    "approves_new_tools": gettext_noop(
        "New tools work right away. Tools with hidden characters are still held for review."
    ),
    "allows_mcp_clients": gettext_noop(
        "Members sign in with programs such as VS Code or Claude Code, which then call tools as them. The audit log has each call. Tools that ask a person first stay refused there. Switch it off, and these programs are signed out."
    ),
    "allows_public_links": gettext_noop(
        "People outside the workspace can then read them without signing in. Switch it off, and these links stop working at once."
    ),
    "requires_two_steps": gettext_noop(
        "Whoever has none is kept out until they turn it on, and so are their tokens and programs. People who can only sign in with single sign-on are asked there."
    ),
}
"""Columns of the workspace, each with what it means. What they are called is in `workspaces.labels`."""


@transaction.atomic
def set_workspace_rule(*, workspace: Workspace, rule: str, is_on: bool, actor: Actor) -> Workspace:
    """Switch one of the rules on or off.

    Raises:
        PermissionDenied: the actor does not own the workspace.
        InvalidInput: there is no such rule.
        Conflict: it is about two-step verification, and the actor has none.
    """
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk)
    if rule not in RULES:
        raise InvalidInput(fields={"rule": [_("There is no such rule.")]})
    if rule == "requires_two_steps":
        require_second_step(actor)
    workspace = Workspace.objects.select_for_update().get(pk=workspace.pk)
    with tracked_change(workspace, actor=actor):
        setattr(workspace, rule, is_on)
        workspace.save(update_fields=[rule, "updated_at"])
    return workspace
