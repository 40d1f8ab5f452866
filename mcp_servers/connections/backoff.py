"""How long a server that could not be reached is left alone. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DELAYS_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""After the first, second, ... failure in a row; the last one goes on for ever."""


def delay_seconds(failures: int) -> float:
    """Time to wait after this many failures in a row; 0 after none."""
    if failures <= 0:
        return 0.0
    return DELAYS_SECONDS[min(failures, len(DELAYS_SECONDS)) - 1]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Failures in a row of one (server, principal), and when the next attempt may be made.

    Only failures to reach the server count, never a tool's error, a refused sign-in or a caller's own timeout.
    """

    failures: int = 0
    retry_at: float = 0.0
    """On the clock of whoever asks."""

    def after_failure(self, now: float) -> Backoff:
        """The state after one more failure."""
        return Backoff(self.failures + 1, now + delay_seconds(self.failures + 1))

    def wait_seconds(self, now: float) -> float:
        """Time until an attempt may be made; 0 if it may be made now."""
        return max(0.0, self.retry_at - now)
