"""No lock holds a version with a known weakness, and the suite says so of advisories that are new."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from config.bootstrap import ROOT
from config.suite import judge_advisories
from config.suite_results import Result

SAFE = (ROOT / "config" / "safe_versions.txt").read_text()
LOCKS = sorted((ROOT / "config").glob("*.lock"))


def unsafe(lock: str, safe: str = SAFE) -> Iterator[str]:
    """What a lock holds that is older than it may be."""
    lines = [line.partition("#")[0].strip() for line in safe.splitlines()]
    floors = {one.name: one.specifier for one in map(Requirement, filter(None, lines))}
    for line in lock.splitlines():
        name, is_pin, version = line.partition(" ")[0].partition("==")
        if is_pin and name in floors and version not in floors[name]:
            yield f"{name} {version}"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: str(path.name))
def test_no_lock_holds_a_version_with_a_known_weakness(lock: Path) -> None:
    """SEC-118: nor one under a floor."""
    assert list(unsafe(lock.read_text())) == []


def test_an_old_version_is_found() -> None:
    """SEC-118: a lock with a weak version fails."""
    lock = "daphne==4.2.1 \\\n    --hash=sha256:00\ndjango==5.2.20 \\\nmcp==2.1.9\nelse==0.1\n"
    assert list(unsafe(lock)) == ["daphne 4.2.1", "mcp 2.1.9"]


@pytest.mark.parametrize(
    ("output", "is_strict", "is_good"),
    [
        ("Found 1 known vulnerability in 1 package", True, False),
        ("Found 1 known vulnerability in 1 package", False, True),
        ("Traceback: no network", True, True),
    ],
    ids=["found by CI", "found by a person", "without a network"],
)
def test_an_advisory_fails_ci_and_is_told_to_people(
    output: str, is_strict: bool, is_good: bool
) -> None:
    """SEC-118: whoever tries an older release later gets a word and not a failure."""
    found = Result(name="vulnerabilities", is_good=False, seconds=1, output=output)
    assert judge_advisories(found, is_strict=is_strict).is_good is is_good
