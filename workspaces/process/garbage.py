"""Python's garbage collector, told when to look: a full round visits every object while nothing else runs.

What exists after the start lives as long as the process, so it is left out of all rounds. Young objects are looked
through less often than by default, and full rounds come by a timer instead of in the middle of an answer. After each,
the allocator gives back what it holds free.
"""

from __future__ import annotations

import ctypes
import gc
import random
import sys
import threading
import time
from typing import Final

from workspaces.process.metrics import Read, gauge

FULL_ROUND_SECONDS: Final = 60.0
"""About how often all objects are looked through; cycles that hold memory wait no longer than that."""
_YOUNG: Final = 20_000
"""New objects before the youngest are looked through."""
_MIDDLE: Final = 50
_NEVER: Final = 1_000_000
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
_lock = threading.Lock()
_is_settled = False
_timer: threading.Thread | None = None
_began = 0.0
_rounds, _seconds, _longest = [0.0] * 3, [0.0] * 3, [0.0] * 3
"""By generation."""


def settle() -> None:
    """Take what exists by now out of the collector's rounds, once.

    Looking through it again and again holds up the loops: a large answer of a server makes thousands of new objects,
    and each round over all of Django takes a tenth of a second.
    """
    global _is_settled
    with _lock:
        if _is_settled:
            return
        _is_settled = True
    gc.collect()
    gc.freeze()


def tame() -> None:
    """The same for a process that serves: with full rounds by a timer, and their length as a metric. Once."""
    global _timer
    settle()
    with _lock:
        if _timer is not None and _timer.is_alive():
            return
        gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
        if _note not in gc.callbacks:
            gc.callbacks.append(_note)
        _register_metrics()
        _timer = threading.Thread(target=_go, name="garbage", daemon=True)
        _timer.start()


def _go() -> None:
    while True:
        # Each process at moments of its own.
        time.sleep(FULL_ROUND_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311 - no secret
        gc.collect()
        _give_back()


def _give_back() -> None:
    """Let the allocator return what is free to the system, where it is one that keeps it (glibc)."""
    if _trim is not None:
        _trim(0)


def _note(phase: str, info: dict[str, int]) -> None:
    """Called by the collector around each round, wherever the process stands: so it takes no lock.

    Rounds do not overlap.
    """
    global _began
    if phase == "start":
        _began = time.perf_counter()
        return
    took, generation = time.perf_counter() - _began, info["generation"]
    _rounds[generation] += 1
    _seconds[generation] += took
    _longest[generation] = max(_longest[generation], took)


def _by_generation(values: list[float]) -> Read:
    return lambda: [((str(number),), value) for number, value in enumerate(values)]


def _register_metrics() -> None:
    labels = ["generation"]
    gauge(
        "trellis_garbage_rounds",
        "Rounds of the garbage collector since the start.",
        _by_generation(_rounds),
        labels=labels,
    )
    gauge(
        "trellis_garbage_seconds",
        "Seconds for which they held everything up.",
        _by_generation(_seconds),
        labels=labels,
    )
    gauge(
        "trellis_garbage_longest_seconds",
        "The longest of them.",
        _by_generation(_longest),
        labels=labels,
    )
