"""What a workspace lets its people do with servers."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from workspaces.actors import Actor
from workspaces.changes import tracked_change
from workspaces.errors import InvalidInput
from workspaces.models import Workspace
from workspaces.roles import Permission, require

RULES: Final = {
    "allows_personal_servers": (
        "Members may add servers of their own",
        "Remote ones only; nobody else sees or uses them, and administrators can switch them off.",
    ),
    "remembers_permissions": (
        "Members may let a tool run without being asked again",
        "Where no administrator wants to be asked, and only for the definition they saw.",
    ),
    "reads_outside_unasked": (
        "Let reading tools reach outside without asking, even after content from outside was read",
        "A page or mail could then steer the assistant to send data out. Tools that change things still ask.",
    ),
    "approves_new_tools": (
        "Use new tools of every server at once",
        "Without somebody accepting them first. What hides something always rests.",
    ),
}
"""Fields of the workspace, each with what it means."""


@transaction.atomic
def set_workspace_rule(*, workspace: Workspace, rule: str, is_on: bool, actor: Actor) -> Workspace:
    """Switch one of the rules on or off.

    Raises:
        PermissionDenied: the actor does not own the workspace.
        InvalidInput: there is no such rule.
    """
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk)
    if rule not in RULES:
        raise InvalidInput(fields={"rule": ["There is no such rule."]})
    workspace = Workspace.objects.select_for_update().get(pk=workspace.pk)
    with tracked_change(workspace, actor=actor):
        setattr(workspace, rule, is_on)
        workspace.save(update_fields=[rule, "updated_at"])
    return workspace
