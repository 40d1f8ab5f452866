"""What the soak says of its samples, and a short one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.soak import FLAT, slope_of
from config.env import ROOT


def test_a_line_is_laid_through_samples() -> None:
    slope = slope_of([0, 30, 60, 90], [100, 101, 102, 103])
    assert slope.each_minute == pytest.approx(2)
    assert slope.error == pytest.approx(0)
    assert slope.grows(1)
    assert not slope.grows(2.5)


def test_what_only_wavers_does_not_grow() -> None:
    slope = slope_of(list(range(10)), [5, 9, 4, 8, 6, 5, 9, 4, 8, 7])
    assert slope.error > 0
    assert not slope.grows(0)


def test_a_short_soak_says_what_it_saw() -> None:
    """REL-412: the same that runs for an hour. In so short a time threads still begin, so a slope proves nothing."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.soak"),
            *("--minutes", "0.1", "--servers", "3", "--people", "2", "--interval", "0.3"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert " 0 failed, " in done.stdout, done.stdout + done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if " a minute" in line}
    assert set(lines) == set(FLAT)
    # "threads  16 at the end, +0.53 ± 0.03 a minute": far from one for each request or turn.
    assert int(lines["threads"].split()[1]) < 60, done.stdout
    assert int(lines["descriptors"].split()[1]) < 200, done.stdout
    assert "audit_auditentry" in done.stdout
