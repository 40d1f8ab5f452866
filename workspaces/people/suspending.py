"""Suspending a member: nothing works for them until they are let in again, and nothing of theirs is lost."""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from workspaces.actors import Actor, Role
from workspaces.changes import tracked_change
from workspaces.errors import Conflict, InvalidInput
from workspaces.models import Membership
from workspaces.people.services import hold_membership, keep_an_owner, require_not_above
from workspaces.people.sessions import end_access
from workspaces.roles import Permission, require

LONGEST_REASON: Final = 300  # as the column


@transaction.atomic
def suspend_member(*, membership: Membership, reason: str = "", actor: Actor) -> Membership:
    """Shut a member out. Pages, sockets and tokens stop at once, and running turns end; all rows stay.

    Args:
        reason: what the person reads on the page that tells them.

    Raises:
        NotFound: they are no member any more.
        PermissionDenied: the member's role is above the actor's own.
        Conflict: it is the actor themselves, the only owner, the platform's owner, or suspended already.
        InvalidInput: the reason is too long.
    """
    _require_may(membership, actor)
    reason = reason.strip()
    if len(reason) > LONGEST_REASON:
        raise InvalidInput(
            fields={"reason": [_("Write at most %(most)s characters.") % {"most": LONGEST_REASON}]}
        )
    if membership.user_id == actor.user_id:
        raise Conflict(_("You cannot suspend yourself."))
    if membership.suspended_at is not None:
        raise Conflict(_("%(email)s is suspended already.") % {"email": membership.user.email})
    if membership.user.is_superuser:
        raise Conflict(
            _("The owner of the platform can enter every workspace, so they cannot be suspended.")
        )
    keep_an_owner(membership)
    with tracked_change(membership, actor=actor):
        membership.suspended_at = timezone.now()
        membership.suspension_reason = reason
        membership.save(update_fields=["suspended_at", "suspension_reason", "updated_at"])
    end_access(membership.user_id, membership.workspace_id)
    return membership


@transaction.atomic
def resume_member(*, membership: Membership, actor: Actor) -> Membership:
    """Let a suspended member in again, with everything that was theirs.

    Raises:
        NotFound: they are no member any more.
        PermissionDenied: the member's role is above the actor's own.
        Conflict: they are not suspended.
    """
    _require_may(membership, actor)
    if membership.suspended_at is None:
        raise Conflict(_("%(email)s is not suspended.") % {"email": membership.user.email})
    with tracked_change(membership, actor=actor):
        membership.suspended_at = None
        membership.suspension_reason = ""
        membership.save(update_fields=["suspended_at", "suspension_reason", "updated_at"])
    return membership


def _require_may(membership: Membership, actor: Actor) -> None:
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=membership.workspace_id)
    hold_membership(membership)
    require_not_above(actor, Role(membership.role))
