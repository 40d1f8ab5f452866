"""How the stages of ``manage.py test`` ended: what is told of each, and the summary of all of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from config.bootstrap import ROOT

ARTIFACTS = ROOT / "test-artifacts"
SLOWEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How one stage ended."""

    name: str
    is_good: bool
    seconds: float
    output: str = ""
    note: str = ""
    tests: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each test."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    is_complete: bool = True
    """Every test of it has run, whether it failed or not."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Why tests failed, by their names."""
    unsteady: Mapping[str, str] = field(default_factory=dict)
    """Why tests failed that passed when they were tried again."""

    def after_another_try(self, again: Result) -> Result:
        """What is left of this stage once the tests that failed have run again."""
        failures = again.failures if again.is_complete else self.failures
        unsteady = {name: why for name, why in self.failures.items() if name not in failures}
        outcomes = Counter(self.outcomes)
        steadied = max(0, outcomes["failed"] - len(failures))
        outcomes.update(passed=steadied, failed=-steadied)
        return replace(
            self,
            is_good=again.is_good,
            seconds=self.seconds + again.seconds,
            note=f"{_tests(len(unsteady))} only when tried again" if unsteady else "",
            outcomes=outcomes,
            failures=failures,
            unsteady=unsteady,
        )


def print_result(result: Result) -> None:
    """Print how a stage ended, and what it said if it failed."""
    sign = "ok    " if result.is_good else "FAILED"
    note = f"   ({result.note})" if result.note else ""
    print(f"  {sign} {result.name:32} {result.seconds:6.1f} s{note}", flush=True)
    if not result.is_good and result.output:
        tail = result.output.strip().splitlines()[-60:]
        print("\n".join(f"         {line}" for line in tail), flush=True)


def summarise(results: Sequence[Result], seconds: float) -> int:
    """Print how the whole suite ended, and keep its times; gives the exit code."""
    print("\nSummary")
    for result in results:
        print_result(replace(result, output=""))
    slowest = sorted(
        ((took, name, result.name) for result in results for name, took in result.tests.items()),
        reverse=True,
    )[:SLOWEST]
    if slowest:
        print("\nSlowest tests")
        for took, name, _stage in slowest:
            print(f"  {took:6.1f} s  {name}")
    _keep_times(results, slowest, seconds)
    # Last, where a build server's log is cut off from above.
    unsteady = {name: why for result in results for name, why in result.unsteady.items()}
    for name, why in unsteady.items():
        print(f"\nPassed only when it was tried again, so find out why: {name}\n{why}")
    reasons = failures_by_reason(results)
    for reason, names in reasons.items():
        print(f"\nFailed: {_named(names)}\n{reason}")
    outcomes: Counter[str] = Counter()
    for result in results:
        outcomes.update(result.outcomes)
    failed = [result.name for result in results if not result.is_good]
    total = f"{seconds / 60:.1f} minutes"
    if failed:
        print(f"\nFAILED in {total}: {', '.join(failed)}")
        for names in reasons.values():
            print(f"  {_named(names)}")
    else:
        hint = f", {_tests(len(unsteady))} only when tried again" if unsteady else ""
        print(f"\nAll {len(results)} stages passed in {total}{hint}.")
    print(
        f"{outcomes['passed']} passed, {outcomes['failed']} failed, {outcomes['skipped']} skipped"
    )
    return 1 if failed else 0


def failures_by_reason(results: Sequence[Result]) -> dict[str, list[str]]:
    """Give the tests that failed for each reason, so that a fault that stops all of them is told once."""
    found: dict[str, list[str]] = {}
    for result in results:
        for name, reason in result.failures.items():
            found.setdefault(reason, []).append(name)
    return found


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count} tests"


def _named(names: Sequence[str]) -> str:
    others = len(names) - _NAMES_SHOWN
    more = f" and {others} more for the same reason" if others > 0 else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more


_NAMES_SHOWN = 3


def _keep_times(
    results: Sequence[Result], slowest: Sequence[tuple[float, str, str]], seconds: float
) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    kept = {
        "total": round(seconds, 1),
        "stages": {result.name: round(result.seconds, 1) for result in results},
        "slowest": [
            {"test": name, "stage": stage, "seconds": round(took, 1)}
            for took, name, stage in slowest
        ],
    }
    (ARTIFACTS / "times.json").write_text(json.dumps(kept, indent=2) + "\n")
