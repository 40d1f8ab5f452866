"""``manage.py test --fast``: tests of what changed first, then those without a database, as far as the time goes.

What changed is what git says of the working tree, or of the last commit if the tree is clean. A test is near if its file
changed, or imports what changed directly or through one other module.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import knows_database

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 60
"""How long the tests may take; what is left over is told."""
SLOW = ("tests/chaos/", "tests/dependencies/", "tests/scaled/", "tests/api/", "tests/isolation/")
STEPS = 2
_deadline = time.monotonic() + SECONDS


def changed_modules() -> set[str]:
    """Give the names of the modules that changed."""

    def ask(*arguments: str) -> list[str]:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout.splitlines()

    found = ask("diff", "--name-only", "HEAD") + ask("ls-files", "--others", "--exclude-standard")
    found = found or ask("diff", "--name-only", "HEAD~1")
    names = {
        Path(name).with_suffix("").as_posix().replace("/", ".")
        for name in found
        if name.endswith(".py")
    }
    return {name.removesuffix(".__init__") for name in names}


def near_modules() -> dict[str, int]:
    """Give each module that is near a change, with how many imports lie between."""
    import grimp

    graph = grimp.build_graph("config", "chat", "mcp_servers", "audit", "workspaces", "tests")
    distance = {name: 0 for name in changed_modules() if name in graph.modules}
    for step in range(1, STEPS + 1):
        for name in [name for name, found in distance.items() if found == step - 1]:
            for importer in graph.find_modules_that_directly_import(name):
                distance.setdefault(importer, step)
    return distance


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what is near or knows no database, the nearest first."""
    near = near_modules()

    def rank(item: pytest.Item) -> int | None:
        path = item.nodeid.partition("::")[0]
        found = near.get(path.removesuffix(".py").replace("/", "."))
        if found is not None:
            return found
        return None if path.startswith(SLOW) or knows_database(item) else STEPS + 1

    ranks = {id(item): rank(item) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if ranks[id(item)] is None])
    items[:] = [item for item in items if ranks[id(item)] is not None]
    items.sort(key=lambda item: ranks[id(item)] or 0)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what the time does not reach."""
    if time.monotonic() > _deadline:
        pytest.skip("no time left; manage.py test runs it")
