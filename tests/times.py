"""How long each test took, how the tests ended and why some failed, kept for ``manage.py test``, which names a file for it."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from pathlib import Path

import pytest

NAME = "TRELLIS_TEST_TIMES"
_seconds: defaultdict[str, float] = defaultdict(float)
_outcomes: Counter[str] = Counter()
_failures: dict[str, str] = {}
_REASON_LENGTH = 3_000


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add one phase of one test: its set-up, itself, or what comes after."""
    _seconds[report.nodeid] += report.duration
    if report.when == "call" or (report.when == "setup" and not report.passed):
        _outcomes[report.outcome] += 1
    if report.failed:
        _failures[report.nodeid] = report.longreprtext[-_REASON_LENGTH:]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file; worker processes leave that to the one that hears of all of them."""
    path = os.environ.get(NAME)
    if path and "PYTEST_XDIST_WORKER" not in os.environ:
        kept = {"outcomes": _outcomes, "seconds": _seconds, "failures": _failures}
        Path(path).write_text(json.dumps(kept))
