"""What is needed and away, such as Redis: a line of the log when that begins, and one when it is back."""

from __future__ import annotations

import logging
import time
from typing import Final

TELL_SECONDS: Final = 600.0
"""How often the log says again that it is still away."""
QUIET_SECONDS: Final = 10.0
"""For so long nothing has to fail until it counts as back: a full Redis reads and does not write."""


class LastingOutage:
    """Of one thing that this process does all the time."""

    def __init__(self, logger: logging.Logger, *, begins: str, ends: str) -> None:
        self._logger = logger
        self._begins = begins
        self._ends = ends
        self._told_at: float | None = None
        self._failed_at = 0.0

    @property
    def lasts(self) -> bool:
        """Whether it does not work, or has not for long again."""
        return self._told_at is not None

    def note(self, error: BaseException, **more: object) -> None:
        """It did not work."""
        self._failed_at = now = time.monotonic()
        if self._told_at is None or now >= self._told_at + TELL_SECONDS:
            self._told_at = now
            self._logger.warning(self._begins, extra={"reason": type(error).__name__, **more})

    def is_over(self, **more: object) -> None:
        """It worked."""
        if self._told_at is not None and time.monotonic() >= self._failed_at + QUIET_SECONDS:
            self._told_at = None
            self._logger.warning(self._ends, extra=more)
