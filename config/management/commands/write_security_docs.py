"""``manage.py write_security_docs``: which promise is proven by which tests, read from the tests' docstrings."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from django.core.management import CommandError

from config.env import ROOT
from config.management.generated import GeneratingCommand

PROMISES = ROOT / "docs" / "promises.txt"
TESTS = ROOT / "tests"
WEB_TESTS = ROOT / "chat" / "web" / "tests"
_ROW = re.compile(r"\b(SEC|REL)-(\d{2,4})\b")
_INTRODUCTION = """# Promises, and the tests that prove them

<!-- Written by `manage.py write_security_docs`; change docs/promises.txt or the docstring of a test, not this page. -->

Each test names in its docstring the promises it proves. `SEC` is security, `REL` is reliability. How the product keeps
them is in [architecture.md](architecture.md). A known limit is
[what masking does not find](audit.md#arguments-and-results): secrets that are coded twice or split over two texts, for
example. To report a weakness, write to the owner of the installation, not to a public tracker.

| promise | requirement | proven by |
|---|---|---|
"""


class Command(GeneratingCommand):
    """Writes the page of promises."""

    help = "Write docs/security.md from docs/promises.txt and the tests' docstrings."

    def make_files(self) -> dict[str, str]:
        promises = read_promises()
        proofs = find_proofs()
        unknown = sorted(set(proofs) - set(promises))
        if unknown:
            raise CommandError(
                f"tests name promises that docs/promises.txt does not: {', '.join(unknown)}"
            )
        if missing := [row for row in promises if row not in proofs]:
            self.stdout.write(f"Without a test: {', '.join(missing)}")
        return {"docs/security.md": render(promises, proofs)}


def read_promises() -> dict[str, str]:
    """Row → requirement, in the order of the file.

    Raises:
        CommandError: two promises have one row.
    """
    promises: dict[str, str] = {}
    for line in PROMISES.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        row, _, text = line.partition(": ")
        if row in promises:
            raise CommandError(f"docs/promises.txt has {row} twice")
        promises[row] = text
    return promises


def find_proofs() -> dict[str, list[str]]:
    """Row → the tests whose docstring names it, as ``folder/file.py::test``."""
    proofs: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for name, doc in _docstrings(ast.parse(path.read_text())):
            for row in _rows(doc):
                proofs[row].append(f"{path.relative_to(TESTS)}::{name}")
    for path in sorted(WEB_TESTS.rglob("*.test.ts*")):
        for line in path.read_text().splitlines():
            if line.strip().startswith(("//", "/*", "*", "test", "it", "describe")):
                for row in _rows(line):
                    name = str(path.relative_to(ROOT))
                    if name not in proofs[row]:
                        proofs[row].append(name)
    return {row: tests for row, tests in proofs.items() if tests}


def _docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test_"
        ):
            yield node.name, ast.get_docstring(node) or ""


def _rows(text: str) -> list[str]:
    return list(dict.fromkeys(match.group(0) for match in _ROW.finditer(text)))


def render(promises: Mapping[str, str], proofs: Mapping[str, Sequence[str]]) -> str:
    """The page: what is proven, then what no test of this version proves yet."""
    proven = "".join(
        f"| {row} | {text} | {'<br>'.join(f'`{test}`' for test in proofs[row])} |\n"
        for row, text in promises.items()
        if row in proofs
    )
    rest = "".join(f"- {row}: {text}\n" for row, text in promises.items() if row not in proofs)
    return f"{_INTRODUCTION}{proven}\n## Without a test in this version\n\n{rest}"
