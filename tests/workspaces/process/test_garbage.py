"""The garbage collector of a process that serves."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from workspaces.process import garbage, metrics


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The collector is left as it was, and its timer waits for no minute."""
    before, callbacks = gc.get_threshold(), list(gc.callbacks)
    monkeypatch.setattr(garbage, "_is_settled", False)
    monkeypatch.setattr(garbage, "_timer", None)
    monkeypatch.setattr("threading.Thread", _NoThread)
    yield
    gc.set_threshold(*before)
    gc.callbacks[:] = callbacks


class _NoThread:
    started = 0

    def __init__(self, **_: object) -> None:
        pass

    def start(self) -> None:
        type(self).started += 1

    def is_alive(self) -> bool:
        return True


def rounds() -> float:
    value = metrics.registry.get_sample_value("trellis_garbage_rounds", {"generation": "2"})
    assert value is not None
    return value


def test_full_rounds_come_by_a_timer_and_are_measured(untouched: None) -> None:
    """REL-312: what exists at the start is left out, no full round comes by itself, and each has its length."""
    kept = [object() for _ in range(10)]
    garbage.tame()
    garbage.tame()
    assert _NoThread.started == 1
    assert gc.get_freeze_count() > len(kept)
    assert gc.get_threshold()[2] >= 1_000_000
    before = rounds()
    gc.collect()
    assert rounds() == before + 1
