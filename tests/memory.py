"""How much memory some work takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def memory_of(work: Callable[[], T]) -> tuple[int, T]:
    """The most bytes that Python holds for some work at once, and what comes of it."""
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()
