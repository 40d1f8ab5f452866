"""Names in the code: what is called alike is the same."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from typing import Final

from config.env import ROOT
from tests.config.sources import APPS

CLASS: Final = re.compile(r"^class ([A-Z]\w*)", re.MULTILINE)
#: Names that Django looks for, and a serializer whose name programs know beside a command of the socket.
GIVEN: Final = {"Command", "DatabaseWrapper", "Migration", "AnswerInput"}
#: Neither says what a value is or a function gives: each could be any.
EMPTY: Final = {"told", "said"}
WORKER: Final = re.compile(r'Actor\.system\(\s*label="([^"]*)",\s*source=Source\.TASK')
MAYBE_EMPTY: Final = re.compile(rf"\b_*({'|'.join(EMPTY)})_*\s*([=:,()]|in\b)")
"""What may make such a name. Most prose has no such sign behind these words, so fewer files are parsed."""


def test_each_class_has_a_name_of_its_own() -> None:
    """Ours: whoever searches for a class finds one, and two things with one name get told apart."""
    homes: dict[str, list[str]] = defaultdict(list)
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            where = path.relative_to(ROOT).as_posix()
            if "node_modules" not in where:
                for name in CLASS.findall(path.read_text(encoding="utf-8")):
                    homes[name].append(where)
    twice = {name: files for name, files in homes.items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in GIVEN} == {}
    assert len(homes) > 1_000


def test_nothing_has_a_name_that_says_nothing() -> None:
    """Ours: a text is a `text`, an answer an `answer`, and a mistake a `fault`. Tests name things like the product."""
    found = []
    for folder in (*APPS, "tests", "bench"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            nodes = ast.walk(ast.parse(text)) if MAYBE_EMPTY.search(text) else ()
            for node in nodes:
                match node:
                    case (
                        ast.Name(id=name, ctx=ast.Store())
                        | ast.arg(arg=name)
                        | ast.FunctionDef(name=name)
                        | ast.AsyncFunctionDef(name=name)
                    ) if name.strip("_") in EMPTY:
                        found.append(f"{path.relative_to(ROOT)}:{node.lineno} {name}")
    assert found == []


def test_the_log_names_parts_of_trellis_in_words() -> None:
    """Ours: auditors read who did it, such as "shared chats", and no function's name. Commands have their own."""
    names = {
        name
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        for name in WORKER.findall(path.read_text(encoding="utf-8"))
    }
    assert {name for name in names if "_" in name} == set()
    assert "shared chats" in names
