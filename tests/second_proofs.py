"""Which tests a usual run leaves to ``manage.py test --full``: those that prove once more what cheaper tests prove.

``manage.py test --measure`` runs everything, notes which functions of the product each test runs, and writes the list
beside this module. A usual run keeps enough tests to run every function that any test runs, and to prove every promise.
Of several that would do, it keeps the cheaper ones. Tests that take next to no time all stay, and so does each test that
is not in the list, such as a new one.
"""

from __future__ import annotations

import ast
import heapq
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
LIST: Final = Path(__file__).with_suffix(".txt")
CHEAP_SECONDS: Final = 0.5
"""What a test may take, with all its parameters, without having to reach anything of its own. Measured beside three
others on two cores with nothing else to do; a busy machine makes the list longer than it need be."""
KEPT: Final = (
    "tests/isolation/",
    "tests/e2e/test_end_user.py",
    "tests/audit/sealing/test_guards.py",
    "tests/audit/outside_writes/",
    "tests/audit/verification/test_triggers.py",
    "tests/chat/services/test_search_beside.py",
)
"""Whose tests all stay: the wall between workspaces, and what everybody does first, are tried whole. So are triggers:
nothing is noted of SQL that runs in the database, and each engine has its own."""
JOURNEYS: Final = "tests/e2e/"
"""Whose product runs in another process, so that nothing is noted of what they run."""
_PROOF = re.compile(r"`([^`]+\.(?:py::\w+|test\.tsx?))`")


@dataclass(slots=True)
class Proof:
    """A test with all its parameters: how long it took, and what it reaches."""

    seconds: float = 0.0
    reaches: set[object] = field(default_factory=set)
    """Functions of the product, promises by their ids, and the test's own file, of which one test stays."""


@cache
def second_proofs() -> frozenset[str]:
    """Give the listed tests, as pytest names them without parameters."""
    return frozenset(LIST.read_text(encoding="utf-8").split())


def function_of(name: str) -> str:
    """Give a test's name without its parameters."""
    return name.partition("[")[0]


def choose_second_proofs(tests: Mapping[str, Proof]) -> list[str]:
    """Give the tests that a usual run can do without, sorted by name.

    The others are found step by step: the next one is whichever reaches most for its time. Those that turn out to reach
    nothing of their own at the end are left out again, the longest first.
    """
    kept = [name for name, test in tests.items() if _stays(name, test)]
    reached = {one for name in kept for one in tests[name].reaches}
    queue = [(-_worth(test, reached), name) for name, test in tests.items() if name not in {*kept}]
    heapq.heapify(queue)
    chosen = []
    while queue:
        _, name = heapq.heappop(queue)
        worth = -_worth(tests[name], reached)
        if queue and worth > queue[0][0]:
            heapq.heappush(queue, (worth, name))  # others reach what it did by now
        elif worth:
            chosen.append(name)
            reached |= tests[name].reaches
    needed = {*kept, *_without_spare(chosen, kept, tests)}
    return sorted(name for name in tests if name not in needed)


def _stays(name: str, test: Proof) -> bool:
    """Whether a test is kept whatever others reach, as are those that read the code instead of running it."""
    if name.startswith(JOURNEYS):
        return name.startswith(KEPT)
    runs_nothing = not any(isinstance(one, tuple) for one in test.reaches)
    return test.seconds < CHEAP_SECONDS or runs_nothing or name.startswith(KEPT)


def _worth(test: Proof, reached: set[object]) -> float:
    return len(test.reaches - reached) / test.seconds


def _without_spare(
    chosen: Sequence[str], kept: Iterable[str], tests: Mapping[str, Proof]
) -> list[str]:
    """Give those chosen that reach something which no other of the chosen and the kept ones does."""
    times = Counter(one for name in [*kept, *chosen] for one in tests[name].reaches)
    needed = []
    for name in sorted(chosen, key=lambda name: -tests[name].seconds):
        if all(times[one] > 1 for one in tests[name].reaches):
            times.subtract(tests[name].reaches)
        else:
            needed.append(name)
    return needed


def read_measures(coverage: Path, seconds: Mapping[str, float], proofs: str) -> dict[str, Proof]:
    """Read what every test took and reached.

    Args:
        coverage: the file of coverage.py, with a context for each phase of a test, as pytest-cov names them.
        seconds: how long tests took, by their names with parameters.
        proofs: the table of promises and their tests, in Markdown.
    """
    from coverage import CoverageData

    tests: defaultdict[str, Proof] = defaultdict(Proof)
    for name, took in seconds.items():
        tests[function_of(name)].seconds += took
    data = CoverageData(basename=str(coverage))
    data.read()
    for file in data.measured_files():
        lines = _functions_by_line(Path(file))
        for line, contexts in data.contexts_by_lineno(file).items():
            for name in {function_of(context.partition("|")[0]) for context in contexts} - {""}:
                if line in lines:
                    tests[name].reaches.add((file, lines[line]))
    times = Counter(one for test in tests.values() for one in test.reaches)
    around_all = {one for one, number in times.items() if number > len(tests) / 2}
    for name, test in tests.items():
        test.reaches -= around_all  # fixtures that surround every test run these
        test.reaches.add(name.partition("::")[0])
    for promise, names in proofs_by_promise(proofs).items():
        for name in names & tests.keys():
            tests[name].reaches.add(promise)
    return dict(tests)


def proofs_by_promise(table: str) -> dict[str, set[str]]:
    """Read which tests prove each promise; those of the web app are whole files.

    Args:
        table: of promises and their tests, in Markdown.
    """
    return {
        row.removeprefix("| ").partition(" ")[0]: {f"tests/{proof}" for proof in found}
        for row in table.splitlines()
        if (found := _PROOF.findall(row))
    }


def _functions_by_line(file: Path) -> dict[int, int]:
    """Give, for each line within a function, the line where the innermost one around it begins."""
    found: dict[int, int] = {}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):  # the outer ones come first
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
            found.update(dict.fromkeys(lines, node.lineno))
    return found


def main(coverage: str, times: str) -> None:
    """Write the list anew from what a run has measured."""
    seconds = json.loads(Path(times).read_text(encoding="utf-8"))
    proofs = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    tests = read_measures(Path(coverage), seconds, proofs)
    names = choose_second_proofs(tests)
    LIST.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    saved = sum(tests[name].seconds for name in names)
    total = sum(test.seconds for test in tests.values())
    print(f"{len(names)} of {len(tests)} tests run with --full only: {saved:.0f} of {total:.0f} s.")


if __name__ == "__main__":
    main(*sys.argv[1:])
