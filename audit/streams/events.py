"""One sealed entry as sinks are told it: what is sealed, and its place. Bodies and previews stay here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.actions import Action, title_of
from audit.models import AuditEntry
from audit.proof.records import record_of
from audit.sealing.reading import SealedEntry

TEST_ACTION = "stream.test"
_FAILED = frozenset({"tool_error", "transport_error", "timeout", "outcome_unknown"})
_GRAVE = frozenset({Action.LOG_LOSS.value, Action.LOG_KEY_LOST.value, Action.ALERT_RAISED.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedEntry:
    """What every kind of sink makes its own form of."""

    uid: UUID
    """The entry's id: a sink that gets it twice can tell."""
    chain_id: UUID
    seq: int
    hash: str
    at: datetime
    action: str
    title: str
    is_warning: bool
    trace_id: str
    record: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The event as one JSON object."""
        return {
            "uid": str(self.uid),
            "chain": str(self.chain_id),
            "seq": self.seq,
            "hash": self.hash,
            "title": self.title,
            "entry": self.record,
        }

    def as_text(self) -> str:
        """The same as one line of ASCII: whatever is in it, it can neither begin a line nor turn one around."""
        return json.dumps(self.as_json(), separators=(",", ":")).replace("\x7f", "\\u007f")


def event_of(sealed: SealedEntry, chain_id: UUID) -> StreamedEntry | None:
    """The event of a sealed entry; None where retention has removed it."""
    entry = sealed.entry
    if entry is None:
        return None
    return StreamedEntry(
        uid=entry.pk,
        chain_id=chain_id,
        seq=sealed.seq,
        hash=sealed.hash,
        at=entry.created_at,
        action=entry.action,
        title=title_of(entry.action),
        is_warning=_is_warning(entry),
        trace_id=entry.trace_id,
        record=dict(record_of(entry)),
    )


def event_for_test(chain_id: UUID) -> StreamedEntry:
    """An event that tells of nothing, to see whether it arrives."""
    return StreamedEntry(
        uid=uuid7(),
        chain_id=chain_id,
        seq=0,
        hash="",
        at=timezone.now(),
        action=TEST_ACTION,
        title="Test of a stream",
        is_warning=False,
        trace_id="",
        record={"action": TEST_ACTION},
    )


def _is_warning(entry: AuditEntry) -> bool:
    return (
        entry.outcome in _FAILED
        or bool(entry.refused_by)
        or entry.action in _GRAVE
        or entry.action.endswith((".error", ".failed"))
    )
