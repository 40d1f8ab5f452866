"""What a stream has still to send: its chains, its cursors, and the next batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.utils import timezone

from audit.models import PLATFORM_CHAIN, AuditStream, StreamCursor
from audit.sealing.reading import head_of, heads, sealed_after
from audit.streams.events import StreamedEntry, event_of

MOST_ENTRIES: Final = 500
MOST_BYTES: Final = 2 * 2**20
"""Of one batch, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Entries of one chain, in the order of their seals; empty where retention has removed them all."""

    chain_id: UUID
    events: list[StreamedEntry]
    upto: int
    """The cursor once the sink has said yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a sink is behind."""

    entries: int
    seconds: float
    """Age of the oldest entry that it has not confirmed."""


def current_heads(stream: AuditStream) -> dict[UUID, int]:
    """Where the stream's chains end now."""
    if stream.workspace_id is not None:
        return {stream.workspace_id: head_of(stream.workspace_id)[0]}
    return {chain: seq for chain, (seq, _) in heads().items()}


def cursors_of(stream: AuditStream) -> dict[UUID, int]:
    """What the sink has confirmed, by chain; a chain without one is sent from its beginning."""
    rows = StreamCursor.objects.filter(stream=stream)
    return dict(rows.values_list("chain_id", "seq"))


def chains_to_send(ends: Mapping[UUID, int], cursors: Mapping[UUID, int]) -> list[UUID]:
    """The chains that have something to send, the platform's own first."""
    found = [chain for chain, end in ends.items() if end > cursors.get(chain, 0)]
    return sorted(found, key=lambda chain: (chain != PLATFORM_CHAIN, chain))


def next_batch(stream: AuditStream, chain_id: UUID) -> Batch | None:
    """The next entries of a chain, bounded in number and size; None if there are none."""
    cursor = cursors_of(stream).get(chain_id, 0)
    events: list[StreamedEntry] = []
    upto, size = cursor, 0
    for sealed in sealed_after(chain_id, cursor, most=MOST_ENTRIES):
        event = event_of(sealed, chain_id)
        if event is not None:
            size += len(event.as_text())
            if events and size > MOST_BYTES:
                break
            events.append(event)
        upto = sealed.seq
    if upto == cursor:
        return None
    return Batch(chain_id=chain_id, events=events, upto=upto)


def lag_of(stream: AuditStream) -> Lag:
    """How many sealed entries wait for this sink, and how long the oldest has."""
    ends = current_heads(stream)
    cursors = cursors_of(stream)
    chains = chains_to_send(ends, cursors)
    entries = sum(ends[chain] - cursors.get(chain, 0) for chain in chains)
    return Lag(entries=entries, seconds=_age(_oldest(chains, cursors)))


def _oldest(chains: Iterable[UUID], cursors: Mapping[UUID, int]) -> datetime | None:
    firsts = (
        sealed.entry.created_at
        for chain in list(chains)[:_MOST_LOOKED_AT]
        for sealed in sealed_after(chain, cursors.get(chain, 0), most=1)
        if sealed.entry is not None
    )
    return min(firsts, default=None)


_MOST_LOOKED_AT: Final = 50
"""Of a platform with very many workspaces, the age is that of these chains."""


def _age(moment: datetime | None) -> float:
    return 0.0 if moment is None else max(0.0, (timezone.now() - moment).total_seconds())
