"""The end of a membership: what it takes with it, in its own transaction.

Each app ends its own rows (`listen_to_leaving`). It does so at the beginning of a membership too, so that what an earlier
one left behind, however it ended, does not come back with the person.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from workspaces.actors import Actor
from workspaces.changes import (
    ConfigurationChange,
    configuration_changed,
    record_changed,
    tracked_change,
)
from workspaces.database.row_security import in_workspace
from workspaces.delivery.announcements import REQUEST_CHANGED, Announcement, announce
from workspaces.models import (
    AccessRequest,
    ApiToken,
    IdempotentRequest,
    Invitation,
    JoinLink,
    Membership,
    RequestStatus,
    SavedListView,
    User,
    WorkspaceSession,
)
from workspaces.people.tokens import end_token

EndsRows = Callable[[UUID, UUID, ConfigurationChange], None]
"""Ends what hangs on a membership, by its workspace and its person, in the transaction of this change."""


_CLAIMED: Final = "claimed"
"""What the log has of a membership whose account was given to the person of its address."""


def listen_to_leaving(
    *, parted: EndsRows, suspended: EndsRows | None = None, claimed: EndsRows | None = None
) -> None:
    """Have these run where a membership is over, where it begins to rest, and where it goes to another person.

    Each app calls it once at start.
    """

    def heard(sender: type[Membership], change: ConfigurationChange, **_: Any) -> None:
        if (found := _person_parted(change)) is not None:
            parted(*found, change)
        elif suspended is not None and (found := _person_suspended(change)) is not None:
            suspended(*found, change)
        elif claimed is not None and change.workspace_id is not None and _CLAIMED in change.after:
            row = Membership.unscoped.get(pk=change.object_id)
            claimed(row.workspace_id, row.user_id, change)

    configuration_changed.connect(
        heard, sender=Membership, weak=False, dispatch_uid=f"leaving.{parted.__module__}"
    )


def _person_parted(change: ConfigurationChange) -> tuple[UUID, UUID] | None:
    """The workspace and the person whose earlier membership is over; None if this change ends or begins none."""
    values = {"deleted": change.before, "created": change.after}.get(change.verb)
    if values is None or change.workspace_id is None:
        return None
    user_id = UUID(str(values["user"]))
    # The platform's owner works in workspaces without being a member, so nothing of theirs was left behind.
    if change.verb == "created" and User.objects.filter(pk=user_id, is_superuser=True).exists():
        return None
    return change.workspace_id, user_id


def _person_suspended(change: ConfigurationChange) -> tuple[UUID, UUID] | None:
    """The workspace and the person whose membership begins to rest with this change; None otherwise."""
    if change.verb != "changed" or not change.after.get("suspended_at"):
        return None
    row = Membership.unscoped.get(pk=change.object_id)
    return row.workspace_id, row.user_id


def end_what_was_prepared(user: User, *, actor: Actor) -> None:
    """End what the person before connected and allowed in the account's workspaces, in the caller's transaction."""
    for membership in Membership.unscoped.filter(user=user):
        with in_workspace(membership.workspace_id):
            record_changed(membership, actor=actor, before={}, after={_CLAIMED: True})


def is_member(workspace_id: UUID, user_id: UUID) -> bool:
    """Whether this person belongs to the workspace, also where they are shut out at the moment."""
    with in_workspace(workspace_id):
        return Membership.objects.also_suspended(workspace_id).filter(user_id=user_id).exists()


def is_suspended(workspace_id: UUID, user_id: UUID | None) -> bool:
    """Whether this member is shut out at the moment."""
    if user_id is None:
        return False
    rows = Membership.objects.also_suspended(workspace_id)
    return bool(rows.filter(user_id=user_id, suspended_at__isnull=False).exists())


def suspended_addresses(workspace_id: UUID) -> set[str]:
    """The addresses to which nothing of this workspace is sent at the moment."""
    rows = Membership.objects.also_suspended(workspace_id).filter(suspended_at__isnull=False)
    return {email.lower() for email in rows.values_list("user__email", flat=True)}


def end_rows_of(workspace_id: UUID, user_id: UUID, change: ConfigurationChange) -> None:
    """End tokens, stored answers and open invitations together with a membership."""
    for token in ApiToken.objects.for_workspace(workspace_id).filter(user_id=user_id):
        end_token(token=token, actor=change.actor)
    IdempotentRequest.objects.for_workspace(workspace_id).filter(user_id=user_id).delete()
    # Those that they sent could bring them back under another address.
    address = User.objects.values_list("email", flat=True).get(pk=user_id)
    open_ones = Invitation.objects.for_workspace(workspace_id).filter(
        Q(invited_by_id=user_id) | Q(email__iexact=address), accepted_at=None, revoked_at=None
    )
    WorkspaceSession.objects.for_workspace(workspace_id).filter(user_id=user_id).delete()
    views = SavedListView.objects.for_workspace(workspace_id).filter(owner_id=user_id)
    views.filter(is_shared=False).delete()
    views.update(owner=None)
    asked = AccessRequest.objects.for_workspace(workspace_id).filter(
        requester_id=user_id, status=RequestStatus.OPEN
    )
    if asked.delete()[0]:
        announce(workspace_id, Announcement(kind=REQUEST_CHANGED, id=str(user_id)))
    links = JoinLink.objects.for_workspace(workspace_id).filter(made_by_id=user_id, revoked_at=None)
    for link in links:
        with tracked_change(link, actor=change.actor):
            link.revoked_at = timezone.now()
            link.save(update_fields=["revoked_at", "updated_at"])
    for invitation in open_ones:
        with tracked_change(invitation, actor=change.actor):
            invitation.revoked_at = timezone.now()
            invitation.save(update_fields=["revoked_at", "updated_at"])
