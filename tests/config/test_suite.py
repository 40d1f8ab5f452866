"""The suite's own stages: a fault that an old cache makes is told from one that the code has; a reason is told once."""

from __future__ import annotations

import pytest

from config.suite import names_lost_modules
from config.suite_results import Result, failures_by_reason

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
