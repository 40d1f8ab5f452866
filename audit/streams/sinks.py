"""What sending asks of a sink, whatever it speaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from audit.streams.events import Event

CONNECT_SECONDS: Final = 5.0
SEND_SECONDS: Final = 15.0
"""For one batch in all; a claim outlives it by far."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The sink has said yes to a batch."""

    refused: int = 0
    """Entries of it that it said it does not want; they are not sent again."""


class SinkFailed(Exception):
    """The sink did not say yes; the words are for people, and tell nothing of a network.

    Args:
        retry_after: seconds, where the sink asked for a pause.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        self.message = message
        self.retry_after = retry_after
        super().__init__(message)


class Sink(Protocol):
    """One sink, for as long as one round of sending."""

    async def send(self, events: Sequence[Event]) -> Taken:
        """Send a batch, and return once the sink has it.

        Raises:
            SinkFailed: it did not say yes.
        """

    async def aclose(self) -> None:
        """Let its connections go."""
