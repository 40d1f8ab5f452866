"""Verifying the log where it is: the same check as of an export, and what only the database can tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DataError, transaction
from django.utils import timezone

from audit import trigger_check
from audit.actions import Action
from audit.bodies import is_body_whole, is_key_whole
from audit.models import (
    AuditBody,
    AuditCheckpoint,
    AuditEntry,
    AuditHead,
    PendingSeal,
)
from audit.proof.marks import refuse_other_key
from audit.proof.signing import signing_keys
from audit.proof.trellis_verify import (
    ALTERED,
    INCOMPLETE,
    UNREADABLE,
    WHOLE,
    MalformedRecord,
    Record,
    VerificationReport,
    Verifier,
)
from audit.sealing import external_checkpoint
from audit.sealing.declared_losses import DeclaredLosses
from audit.sealing.reading import SealedEntry
from audit.sealing.rotation import key_id_after
from audit.services import EntryDraft, record
from audit.storable import mapping_of
from audit.verification.stored import hidden_entries, unsealed_entries
from audit.verification.stream import Cursor, LogStream, News
from workspaces.actors import Actor

Progress = Callable[[int], None]
PROGRESS_EVERY = 20_000
"""Entries after which a person is told how far it is: some seconds."""
_TOLD = 10
_LOOKS = 3
"""How often what seems wrong is read again: erasure and retention can come in between, each once."""
_LATE = timedelta(minutes=1)


def verify(
    workspace_id: UUID | None = None,
    *,
    actor: Actor,
    outside: Record | None = None,
    is_incremental: bool = False,
    progress: Progress | None = None,
) -> VerificationReport:
    """Check the log of one workspace, or all of it, and record the result.

    Args:
        outside: the checkpoint file; absent, the one of the settings is taken if it is there.
        is_incremental: only what came since the last verification of the whole that found nothing.

    Raises:
        AuditUnavailable: the result could not be recorded.
        OtherLogKey: the log has another TRELLIS_AUDIT_KEY; all of it would look altered.
    """
    refuse_other_key()
    began_at = timezone.now()
    report = _check(workspace_id, outside, is_incremental, progress)
    details = {
        "began_at": began_at.isoformat(),
        "result": report.result,
        "scope": "new" if is_incremental else "whole",
        "entries": report.entries,
        "checkpoint": list(report.checkpoint) if report.checkpoint else None,
        "findings_in_all": report.findings_in_all,
        "only_gaps": report.findings_in_all == report.gaps,
        "findings": [
            {"result": f.result, "text": f.text, "chain": f.chain, "seq": f.seq}
            for f in report.findings[:_TOLD]
        ],
        "first_bad": dict(list(report.first_bad.items())[:_TOLD]),
    }
    draft = EntryDraft(
        action=Action.LOG_VERIFIED, actor=actor, workspace_id=workspace_id, details=details
    )
    with transaction.atomic():  # the places belong to the checkpoint that the entry names
        if workspace_id is None and report.findings_in_all == report.gaps:
            _keep_cursor(report)
        record(draft)
    return report


def _check(
    workspace_id: UUID | None,
    outside: Record | None,
    is_incremental: bool,
    progress: Progress | None,
) -> VerificationReport:
    doubt = None
    if outside is None:
        outside, doubt = _outside()
    start = _start() if is_incremental and workspace_id is None else None
    verifier = Verifier(
        trusted=[key.fingerprint for key in signing_keys()],
        external=outside,
        **(start or {}),
    )
    report = verifier.report
    cursor = Cursor(start["heads"], start["checkpoint"][0]) if start else None
    bodies = _Bodies(verifier)
    stream = LogStream(workspace_id, cursor=cursor, inspect=bodies.inspect)
    bodies.losses_of = stream.losses_of
    if workspace_id is not None:
        verifier.limit_to(str(workspace_id))
    try:
        for item in stream:
            verifier.feed(item)
            if progress and item["record"] == "entry" and report.entries % PROGRESS_EVERY == 0:
                progress(report.entries)
        for name, (seq, hash_) in stream.tops.items():
            if verifier.place_of(name) < seq:
                verifier.stand(name, seq, hash_, "the database")
    except (MalformedRecord, ValueError, TypeError, DataError) as error:
        report.add(UNREADABLE, f"The log cannot be read: {error}.")
    if report.checkpoint is None and not report.findings_in_all:
        verifier.trust_nothing()
    report = verifier.finish(needs_end=False)
    _look_past_the_seals(stream, workspace_id, report)
    _look_for_late(report)
    for aside in external_checkpoint.kept_aside():
        text = f"An old copy of the database was restored, which nobody has confirmed yet ({aside.name})."
        report.add(INCOMPLETE, text)
    if doubt is not None:
        report.add(INCOMPLETE, doubt)
    elif outside is None:
        report.notes.append("There is no checkpoint file outside the database to compare with.")
    return report


def _outside() -> tuple[Record | None, str | None]:
    """The checkpoint file, or why the one that is there cannot be compared with."""
    try:
        kept = external_checkpoint.read_strictly()
    except external_checkpoint.CheckpointFileUnreadable:
        return None, "The checkpoint file outside the database cannot be read, or is not signed."
    if kept is None:
        return None, None
    if external_checkpoint.is_foreign(kept):
        return None, "The checkpoint file outside the database is of another installation."
    return kept.as_record, None


class _Bodies:
    """Compares previews and stored bodies with what the entries commit to."""

    losses_of: Callable[[str], DeclaredLosses]

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def inspect(self, chain: str, batch: list[SealedEntry], news: News) -> None:
        """Look at a batch; what was erased while it was read is looked at once more."""
        places = {sealed.entry_id: sealed.seq for sealed in batch if sealed.entry is not None}
        entries = [sealed.entry for sealed in batch if sealed.entry is not None]
        wrong = self._wrong_of(chain, entries, places)
        for _ in range(_LOOKS):
            if not wrong:
                return
            for tombstone in news():
                self._verifier.feed(tombstone)
            found = AuditEntry.objects.across_workspaces().filter(pk__in=wrong)
            # One that retention has removed since is missed, or not, in its place.
            wrong = self._wrong_of(chain, list(found), places)
        for seq in sorted(places[pk] for pk in wrong):
            text = "Arguments or result were changed or removed; the entry says what they were."
            self._verifier.report.add(ALTERED, text, chain, seq)

    def _wrong_of(
        self, chain: str, entries: list[AuditEntry], places: dict[UUID, int]
    ) -> list[UUID]:
        bodies = AuditBody.objects.across_workspaces().in_bulk([entry.pk for entry in entries])
        wrong = []
        for entry in entries:
            body = bodies.get(entry.pk)
            seq, losses = places[entry.pk], self.losses_of(chain)
            is_there = is_body_whole(entry, body) and (body is None or is_key_whole(body))
            is_there = is_there or (
                seq <= losses.last and losses.is_body_as_declared(seq, entry, body)
            )
            if is_there and not _has_foreign_preview(entry):
                continue
            is_erased = body is None and not entry.arguments_preview and not entry.result_preview
            if is_erased and self._verifier.covers(chain, "bodies", seq):
                continue
            wrong.append(entry.pk)
        return wrong


def _has_foreign_preview(entry: AuditEntry) -> bool:
    """Whether there is a preview of what, as sealed, never was there."""
    return bool(
        (entry.arguments_preview and entry.arguments_size is None)
        or (entry.result_preview and entry.result_size is None)
    )


def _look_past_the_seals(
    stream: LogStream, workspace_id: UUID | None, report: VerificationReport
) -> None:
    """Add what no seal tells: marks, stored forms, numbers, and the triggers that keep the log append-only."""
    for found in (*stream.doubts, *unsealed_entries(workspace_id), *hidden_entries(workspace_id)):
        report.add(ALTERED, found.text, found.chain, found.seq)
    for fault in trigger_check.find_faults():
        report.add(ALTERED, fault)


def _look_for_late(report: VerificationReport) -> None:
    """Say when sealing does not keep up."""
    oldest = PendingSeal.objects.order_by("id").first()
    waiting = (
        AuditEntry.objects.across_workspaces().find(oldest.entry_id) if oldest is not None else None
    )
    if waiting is not None and timezone.now() - waiting.created_at > _LATE:
        report.notes.append("Entries have waited for their seal for more than a minute.")


def _keep_cursor(report: VerificationReport) -> None:
    """Remember how far it is whole: where the chains stood at the newest checkpoint."""
    stated = {UUID(name): head for name, head in report.stated.items()}
    # In the order in which sealing takes them, too.
    rows = AuditHead.objects.select_for_update().filter(chain_id__in=stated).order_by("chain_id")
    heads = list(rows)
    for head in heads:
        head.verified_seq, head.verified_hash = stated[head.chain_id]
    AuditHead.objects.bulk_update(heads, ["verified_seq", "verified_hash"], batch_size=200)


def last_verification() -> AuditEntry | None:
    """The newest verification of all chains."""
    return (
        AuditEntry.objects.across_workspaces()
        .filter(action=Action.LOG_VERIFIED.value, workspace_id=None)
        .order_by("-id")
        .first()
    )


def seen_until(verified: AuditEntry) -> datetime:
    """Until when a verification surely saw what was written: it looks at each part once, long before its own entry."""
    try:
        began_at = datetime.fromisoformat(str(mapping_of(verified.details).get("began_at")))
        return min(began_at, verified.created_at)
    except (ValueError, TypeError):
        # A version that did not note it wrote the entry, or somebody past Trellis.
        return verified.created_at


def _start() -> dict[str, Any] | None:
    """Where the last verification that found nothing ended; None: there is no such place any more."""
    last = last_verification()
    details = mapping_of(last.details if last is not None else None)
    is_usable = details.get("result") == WHOLE or details.get("only_gaps") is True
    match details.get("checkpoint"):  # somebody may have put anything there past Trellis
        case [int(number), str(digest)] if is_usable:
            checkpoint = AuditCheckpoint.objects.filter(number=number, hash=digest).first()
        case _:
            return None
    if checkpoint is None:
        return None
    statement = json.loads(checkpoint.statement)
    name = "next_key" if key_id_after(checkpoint) != checkpoint.key_id else "key"
    key = statement[name]
    heads = AuditHead.objects.filter(verified_seq__gt=0)
    return {
        "heads": {str(head.chain_id): (head.verified_seq, head.verified_hash) for head in heads},
        "checkpoint": (checkpoint.number, checkpoint.hash),
        "key": (key["id"], key["public"]),
    }
