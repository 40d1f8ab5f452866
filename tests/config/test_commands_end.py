"""Commands that talk with servers end quietly: what they opened is closed before the interpreter ends."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection

from config.env import ROOT

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(transactional_db: None, tmp_path: Path) -> Run:
    """Runs commands on a database of their own."""
    with closing(sqlite3.connect(tmp_path / "trellis.sqlite3")) as copy:
        connection.ensure_connection()
        connection.connection.backup(copy)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "TRELLIS_DATA_DIR": str(tmp_path),
    }

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    return command


@pytest.mark.sqlite
def test_commands_end_without_a_traceback(run: Run) -> None:
    """REL-265: seed_demo talks with its servers, ask calls a tool of one, and both say nothing that they need not."""
    seeded = run("seed_demo")
    assert (seeded.returncode, seeded.stderr) == (0, "")
    asked = run("ask", "--workspace", "demo", "--bud", "clock", "What time is it in Oslo?")
    assert asked.returncode == 0, asked.stderr
    for sign in ("Traceback", "cannot schedule", "is closed", "was destroyed"):
        assert sign not in seeded.stderr + asked.stderr
        assert sign not in seeded.stdout + asked.stdout
