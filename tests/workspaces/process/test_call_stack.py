"""Deep calls map no memory again and again."""

from __future__ import annotations

import asyncio
import resource
import threading
from collections.abc import Callable

import pytest

CALLS = 300
DEPTHS = range(250)


def _leaf() -> None:
    """Larger than what stands between two depths, so that one depth has too little left for it."""


_leaf.__code__ = _leaf.__code__.replace(co_stacksize=100)


def _faults_at(depth: int) -> int:
    """How often the kernel makes a page while a loop at this depth makes its calls."""
    if depth:
        return _faults_at(depth - 1)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _ in range(CALLS):
        _leaf()
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


def _most_faults() -> int:
    return max(_faults_at(depth) for depth in DEPTHS)


class _Thread(threading.Thread):
    """One that brings no room of its own."""

    def run(self) -> None:
        asyncio.run(_look())


async def _look() -> None:
    found.append(_most_faults())


def _in_a_thread() -> threading.Thread:
    return threading.Thread(target=lambda: found.append(_most_faults()))


found: list[int] = []


@pytest.mark.parametrize("make", [_in_a_thread, _Thread])
def test_no_depth_of_calls_has_the_kernel_make_pages_in_a_loop(
    make: Callable[[], threading.Thread],
) -> None:
    """REL-2821: CPython gives back the end of its stack with each call that needed it, unless there is room."""
    found.clear()
    thread = make()
    thread.start()
    thread.join()
    assert found[0] < CALLS / 2
