"""Erasure on request: bodies and previews of one person's calls go, their entries and the chain stay."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.models import AuditBody, AuditEntry, AuditSeal, PendingErasure
from audit.proof.marks import states_other_key
from audit.proof.signing import SigningKeyMissing
from audit.retention.holds import active_hold, lock_removal
from audit.retention.removing import remove_bodies
from audit.sealing.rotation import key_in_use
from audit.sealing.sealer import seal_pending
from audit.services import EntryDraft, record
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput
from workspaces.jobs.sweeping import sweep
from workspaces.models import User
from workspaces.people.memberships import is_member
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.actors import Actor


REASON: Final = "erasure"
_BATCH: Final = 500
_MOST_ERASED: Final = 1_000_000
"""Entries in one run. Its time ends it sooner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What was erased so far."""

    erased: int
    is_done: bool
    chats: int = 0
    """Those of somebody who has left that are erased in the background."""
    buds: int = 0
    """Theirs alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedThings:
    """How much of what somebody kept in a workspace is given up."""

    chats: int = 0
    buds: int = 0

    def __add__(self, other: ErasedThings) -> ErasedThings:
        return ErasedThings(chats=self.chats + other.chats, buds=self.buds + other.buds)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBehind:
    """How to find and erase what people keep in a workspace after they have left it. Its app says so, see below."""

    has_any: Callable[[UUID, UUID], bool]
    """Of a workspace and a person."""
    erase: Callable[[UUID, UUID, Actor], ErasedThings]
    """In a transaction: give up what is theirs, so that it is erased soon."""


_left_behind: list[LeftBehind] = []


def register_left_behind(found: LeftBehind) -> None:
    """Have this erased too, where an owner wants that of somebody who has left. Called once at start."""
    _left_behind.append(found)


def erase_bodies(
    *,
    workspace_id: UUID,
    person_id: UUID,
    reason: str,
    actor: Actor,
    with_chats: bool = False,
    seconds: float = 15.0,
) -> Erasure:
    """Erase the arguments and results of everything that a person had done here.

    Args:
        reason: for those who read the log later, such as the request's number.
        with_chats: also what they keep here, such as chats, drafts and private buds, once they have left.
        seconds: after which `is_done` is False; the rest is continue_erasures()'s.

    Raises:
        PermissionDenied: the actor may not change the workspace's settings.
        InvalidInput: no reason is given, or chats are meant of somebody who can still enter.
        Conflict: a legal hold stands, or what is removed cannot be signed for.
    """
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace_id)
    if not reason.strip():
        raise InvalidInput(fields={"reason": [_("Say why, for people who read it later.")]})
    try:
        key_in_use()
    except SigningKeyMissing as error:
        raise Conflict(
            _("The log's signing key is missing, so nothing can be erased now.")
        ) from error
    with transaction.atomic():
        lock_removal(workspace_id)
        _refuse_under_hold(workspace_id)
        gone = _erase_left_behind(workspace_id, person_id, actor) if with_chats else ErasedThings()
        record(
            EntryDraft(
                action=Action.BODY_ERASED,
                actor=actor,
                workspace_id=workspace_id,
                details={
                    "person": str(person_id),
                    "reason": reason.strip()[:500],
                    **(asdict(gone) if with_chats else {}),
                },
            )
        )
        # With the entry: what is on record is done, whatever becomes of this process.
        PendingErasure.objects.for_workspace(workspace_id).update_or_create(
            workspace_id=workspace_id, person_id=person_id, defaults={"asked_at": database_now()}
        )
    done = erase_rest(workspace_id=workspace_id, person_id=person_id, seconds=seconds)
    return replace(done, chats=gone.chats, buds=gone.buds)


def _erase_left_behind(workspace_id: UUID, person_id: UUID, actor: Actor) -> ErasedThings:
    """In a transaction. Whoever belongs here, or may come back without an invitation, has their chats themselves.

    Raises:
        InvalidInput: the person does.
    """
    why = ""
    if is_member(workspace_id, person_id):
        why = _("They are still a member of this workspace. Remove them first.")
    elif User.objects.filter(pk=person_id, is_superuser=True).exists():
        why = _("They run this installation, so they can enter, and delete their chats themselves.")
    if why:
        raise InvalidInput(fields={"with_chats": [why]})
    gone = (one.erase(workspace_id, person_id, actor) for one in _left_behind)
    return sum(gone, start=ErasedThings())


def person_of(workspace_id: UUID, email: str) -> UUID:
    """The person of that address, member or former member, of whom this workspace keeps something.

    Raises:
        InvalidInput: there is none.
    """
    entries = AuditEntry.objects.for_workspace(workspace_id)
    user = User.objects.filter(email__iexact=email).only("pk").first()
    if user is not None and (
        entries.filter(actor_id=user.pk).exists()
        # Retention may have removed all that they did.
        or any(one.has_any(workspace_id, user.pk) for one in _left_behind)
    ):
        return user.pk
    former = entries.filter(actor_label__iexact=email, actor_id__isnull=False).first()
    if former is None or former.actor_id is None:
        message = _("The log has no entries by a person with this address.")
        raise InvalidInput(fields={"email": [message]})
    return former.actor_id


def continue_erasures(*, seconds: float) -> int:
    """Go on with every erasure that is on record and not done; gives how many entries were erased.

    One that meets a legal hold, or a fault, waits and keeps no other.
    """
    until = time.monotonic() + seconds

    def erase(pending: PendingErasure) -> int:
        if active_hold(pending.workspace_id) is not None:
            return 0
        return erase_rest(
            workspace_id=pending.workspace_id,
            person_id=pending.person_id,
            seconds=min(max(until - time.monotonic(), 0.0), seconds / 2),
        ).erased

    rows = PendingErasure.objects.across_workspaces().order_by("pk")
    return sweep(rows, erase, label="continue_erasures", most=_MOST_ERASED, seconds=seconds)


def erase_rest(*, workspace_id: UUID, person_id: UUID, seconds: float) -> Erasure:
    """Go on with an erasure that is on record, of what was entered until somebody asked for it.

    Raises:
        Conflict: a legal hold stands.
    """
    rows = PendingErasure.objects.for_workspace(workspace_id).filter(person_id=person_id)
    pending = rows.first()
    if pending is None:
        return Erasure(erased=0, is_done=True)
    deadline = time.monotonic() + seconds
    erased = 0
    while time.monotonic() < deadline:
        if not states_other_key():
            seal_pending()  # only what has its place can be removed from it
        with transaction.atomic():
            lock_removal(workspace_id)
            _refuse_under_hold(workspace_id)
            number = _erase_some(pending)
        erased += number
        if number == 0:
            is_done = not _shown(pending).exists()
            if is_done:
                # Somebody may have asked again meanwhile.
                rows.filter(asked_at=pending.asked_at).delete()
            return Erasure(erased=erased, is_done=is_done)
    return Erasure(erased=erased, is_done=False)


def _erase_some(pending: PendingErasure) -> int:
    chain_id = pending.workspace_id
    ids = list(_shown(pending).order_by("pk").values_list("pk", flat=True)[:_BATCH])
    seals = AuditSeal.objects.filter(chain_id=chain_id, entry_id__in=ids).order_by("seq")
    places = list(seals.values_list("seq", flat=True))
    for first, last in runs_of(places):
        remove_bodies(chain_id, first, last, reason=REASON)
    return len(places)


def runs_of(numbers: list[int]) -> list[tuple[int, int]]:
    """Ascending numbers as (first, last) of their unbroken runs."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _shown(pending: PendingErasure) -> WorkspaceQuerySet[AuditEntry]:
    """Entries of the person that still show something."""
    body = Q(Exists(AuditBody.unscoped.filter(entry_id=OuterRef("pk"))))
    rows: WorkspaceQuerySet[AuditEntry] = AuditEntry.objects.for_workspace(pending.workspace_id)
    return rows.filter(
        ~Q(arguments_preview="") | ~Q(result_preview="") | body,
        actor_id=pending.person_id,
        created_at__lte=pending.asked_at,
    )


def _refuse_under_hold(workspace_id: UUID) -> None:
    hold = active_hold(workspace_id)
    if hold is not None:
        raise Conflict(
            _(
                "A legal hold (“%(reason)s”) is in place, so nothing may be erased. Release it first."
            )
            % {"reason": hold.reason[:80]}
        )
