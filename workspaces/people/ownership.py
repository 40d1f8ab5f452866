"""Handing a workspace to another owner."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _

from workspaces.actors import Actor, Role
from workspaces.changes import tracked_change
from workspaces.delivery.bell import tell
from workspaces.errors import Conflict, InvalidInput, NotFound, PermissionDenied
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
        NotFound: the other one is no member any more.
        Conflict: that member is an owner already, or suspended.
        InvalidInput: another name was typed.
    """
    workspace = to.workspace
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk)
    # Both are held in one order: two who hand over to each other would wait for ever.
    rows = Membership.objects.also_suspended(workspace).select_for_update(of=("self",), no_key=True)
    held = rows.filter(Q(user_id=actor.user_id) | Q(pk=to.pk)).order_by("pk")
    found = {row.pk: row for row in held.select_related("user", "workspace")}
    mine = [row for row in found.values() if row.user_id == actor.user_id]
    own = next((row for row in mine if row.role == Role.OWNER.value), None)
    if own is None or own.suspended_at is not None:
        raise PermissionDenied(_("Only an owner can hand the workspace to someone else."))
    if to.pk not in found:
        raise NotFound(_("This person is no member any more."))
    to = found[to.pk]
    if to.suspended_at is not None:
        raise Conflict(
            _("%(email)s is suspended. Let them in again first.") % {"email": to.user.email}
        )
    if to.role == Role.OWNER.value:
        raise Conflict(_("%(email)s is an owner already.") % {"email": to.user.email})
    if typed.strip() != workspace.name:
        message = _("Type the name of the workspace, “%(name)s”, to confirm.") % {
            "name": workspace.name
        }
        raise InvalidInput(fields={"confirmation": [message]})
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
