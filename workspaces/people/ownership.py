"""Handing a workspace to another owner."""

from __future__ import annotations

from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext as _

from workspaces.actors import Actor, Role
from workspaces.bell import tell
from workspaces.changes import tracked_change
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.models import Membership
from workspaces.people.sessions import end_access
from workspaces.roles import Permission, require


@transaction.atomic
def transfer_ownership(*, to: Membership, typed: str, actor: Actor) -> None:
    """Make a member owner in the actor's place; the actor becomes an administrator. Both are told.

    Args:
        typed: the workspace's name, as the actor typed it to confirm.

    Raises:
        PermissionDenied: the actor is not an owner of this workspace.
        Conflict: that member is an owner already, or suspended.
        InvalidInput: another name was typed.
    """
    workspace = to.workspace
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk)
    rows = Membership.objects.for_workspace(workspace).select_for_update()
    owners = rows.filter(role=Role.OWNER.value)
    own = owners.filter(user_id=actor.user_id).first() if actor.user_id is not None else None
    if own is None:
        raise PermissionDenied(_("Only an owner can hand the workspace to someone else."))
    to = Membership.objects.also_suspended(workspace).select_for_update().get(pk=to.pk)
    if to.suspended_at is not None:
        raise Conflict(
            _("%(email)s is suspended. Let them in again first.") % {"email": to.user.email}
        )
    if to.role == Role.OWNER.value:
        raise Conflict(_("%(email)s is an owner already.") % {"email": to.user.email})
    if typed.strip() != workspace.name:
        told = _("Type the name of the workspace, “%(name)s”, to confirm.") % {
            "name": workspace.name
        }
        raise InvalidInput(fields={"confirmation": [told]})
    for membership, role in ((to, Role.OWNER), (own, Role.ADMIN)):
        with tracked_change(membership, actor=actor):
            membership.role = role.value
            membership.save(update_fields=["role", "updated_at"])
        end_access(membership.user_id, workspace.pk)
    url = reverse("chat:home", args=[workspace.slug])
    tell(
        workspace_id=workspace.pk,
        user_ids=[to.user_id],
        kind="owner.you",
        title=f"You own {workspace.name}",
        text=f"{actor.label} handed the workspace to you.",
        url=url,
    )
    tell(
        workspace_id=workspace.pk,
        user_ids=[own.user_id],
        kind="owner.other",
        title=f"{to.user.email} owns {workspace.name}",
        text="You handed the workspace over and are an administrator now.",
        url=url,
    )
