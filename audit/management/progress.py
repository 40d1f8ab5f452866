"""What commands say while they read a long log."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.core.management.base import OutputWrapper

from workspaces.words.formats import whole

Counted = Callable[[int], None]
"""Takes how many entries are done by now."""


def count_on(output: OutputWrapper, *, is_wanted: bool = False, every: int = 1) -> Counted:
    """Give what tells a person at a terminal how many entries are done; a timer that runs the command would mail them.

    Args:
        is_wanted: tell it wherever the output goes.
        every: it is told once in so many entries.
    """
    began = time.monotonic()
    last = 0

    def tell(entries: int) -> None:
        nonlocal last
        if entries - last >= every and (is_wanted or output.isatty()):
            last = entries
            output.write(f"{whole(entries)} entries, {time.monotonic() - began:.0f} s", str)

    return tell
