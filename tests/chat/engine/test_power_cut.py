"""The power is cut on the embedded form: what was promised is on the disk."""

from __future__ import annotations

import _sqlite3
import ctypes
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from config.env import ROOT


def _has_visible_sqlite() -> bool:
    return hasattr(ctypes.CDLL(_sqlite3.__file__), "sqlite3_vfs_register")


def _read(path: str, query: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(path)) as found:
        assert found.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [row[0] for row in found.execute(query, values)]


@pytest.mark.sqlite
@pytest.mark.skipif(not _has_visible_sqlite(), reason="this Python hides its SQLite")
def test_what_was_promised_survives_a_power_cut(transactional_db: None, tmp_path: Path) -> None:
    """REL-261: without any page that was not synced, an accepted message, the entry before a call and the entry after
    it are there, and neither the checkpoint outside nor the epoch is ahead of the database."""
    database = tmp_path / "trellis.sqlite3"
    with closing(sqlite3.connect(database)) as copy:
        connection.ensure_connection()
        connection.connection.backup(copy)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "TRELLIS_DATA_DIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.chat.engine.power_cut_story", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    body = json.loads(done.stdout.splitlines()[-1])

    messages = "SELECT id FROM chat_message WHERE role = 'user'"
    assert _read(body["accepted"], messages) == [body["message"]]
    actions = "SELECT action FROM audit_auditentry WHERE call_id = ? ORDER BY created_at, id"
    before = _read(body["executed"], actions, body["call"])
    assert before[-1] == "tool_call.requested"
    assert _read(body["answered"], actions, body["call"])[-1] == "tool_call.finished"
    assert _read(body["answered"], "SELECT status FROM chat_toolcall") == ["succeeded"]
    numbers = _read(body["signed"], "SELECT number FROM audit_auditcheckpoint ORDER BY number")
    assert numbers[-1:] == [body["number"]]
    assert _read(body["signed"], "SELECT epoch FROM workspaces_installation") == [body["epoch"]]
