"""How long a test waits for something that will come."""

import time
from typing import Any, Final

PATIENCE: Final = 120.0
"""Seconds. Waits end with their event; this ends one whose event never comes, on the busiest machine too."""


def wait_until(
    check: Any, seconds: float = PATIENCE, what: str = "it", *, pause: float = 0.02
) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen in {seconds:g} s")
        time.sleep(pause)
