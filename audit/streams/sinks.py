"""What sending asks of a sink, whatever it speaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from audit.streams.events import StreamedEntry
from workspaces import outbound
from workspaces.delivery.webhooks import CONNECT_SECONDS, MOST_ANSWER_BYTES

SEND_SECONDS: Final = 15.0
"""For one batch in all; a claim outlives it by far."""
HTTP_BOUNDS: Final = outbound.Bounds(
    connect_seconds=CONNECT_SECONDS, total_seconds=SEND_SECONDS, body_bytes=MOST_ANSWER_BYTES
)


@dataclass(frozen=True, slots=True)
class SinkReceipt:
    """The sink has said yes to a batch."""

    refused: int = 0
    """Entries of it that it said it does not want; they are not sent again."""


class Sink(Protocol):
    """One sink, for as long as one round of sending."""

    async def send(self, events: Sequence[StreamedEntry]) -> SinkReceipt:
        """Send a batch, and return once the sink has it.

        Raises:
            NotTaken: it did not say yes.
        """

    async def aclose(self) -> None:
        """Let its connections go."""
