"""How long a server that could not be reached is left alone. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

DELAYS_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""After the first, second, ... failure in a row; the last one goes on for ever."""
JITTER: Final = 0.2
"""Delays are longer or shorter by up to this part, so that many processes do not come back at the same moment."""


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
    """On the clock of whoever asks; infinite when nothing is tried any more without being asked."""

    def after_failure(
        self, now: float, *, max_attempts: int | None = None, factor: float = 1.0
    ) -> Backoff:
        """The state after one more failure.

        Args:
            max_attempts: failures in a row after which attempts end; None: never.
            factor: what the delay is multiplied by, for jitter.
        """
        failures = self.failures + 1
        if max_attempts is not None and failures >= max_attempts:
            return Backoff(failures, math.inf)
        return Backoff(failures, now + delay_seconds(failures) * factor)

    @property
    def has_given_up(self) -> bool:
        """No attempt is made any more until somebody asks for one."""
        return math.isinf(self.retry_at)

    def wait_seconds(self, now: float) -> float:
        """Time until an attempt may be made; 0 if it may be made now, infinite if not at all."""
        return max(0.0, self.retry_at - now)
