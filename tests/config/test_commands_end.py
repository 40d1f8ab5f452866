"""Commands that talk with servers end quietly: what they opened is closed before the interpreter ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from config.env import ROOT
from tests.extent import IS_FULL

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Begin = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def environment(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, str]:
    """That of commands with a database of their own, which holds the demo: made once for all tests here."""
    folder = tmp_path_factory.mktemp("seeded")
    with (
        django_db_blocker.unblock(),
        closing(sqlite3.connect(folder / "trellis.sqlite3")) as copy,
    ):
        connection.ensure_connection()
        connection.connection.backup(copy)
    left_out = {"DATABASE_URL", "PYTHONUNBUFFERED"}
    made = {
        **{name: value for name, value in os.environ.items() if name not in left_out},
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "TRELLIS_DATA_DIR": str(folder),
        "PYTHONIOENCODING": "iso-8859-1",  # as on a machine whose locale is de_DE
    }
    seeded = _run(made, "seed_demo")
    assert (seeded.returncode, seeded.stderr) == (0, "")
    return made


def _run(
    environment: dict[str, str], *arguments: str, given: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    """Runs a command to its end."""
    return partial(_run, environment)


@pytest.fixture
def begin(environment: dict[str, str]) -> Begin:
    """Begins a command. It hears each signal, also where whoever runs the tests ignores some."""

    def command(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["env", "--default-signal", sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return command


@pytest.mark.sqlite
def test_commands_end_without_a_traceback(run: Run) -> None:
    """REL-265: seed_demo talked with its servers in silence, and so does ask, which calls a tool of one.

    REL-2964: in UTF-8, whatever the machine's locale is.
    """
    asked = run("ask", "--workspace", "demo", "--bud", "clock", "What time is it in Oslo, 日本?")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert "日本" in asked.stdout
    for sign in ("Traceback", "cannot schedule", "is closed", "was destroyed"):
        assert sign not in asked.stdout


@pytest.mark.sqlite
def test_ask_serves_scripts(run: Run) -> None:
    """REL-1570: a question from standard input, its answer alone, and why there is none in standard error."""
    who = ("--workspace", "demo", "--text")
    asked = run("ask", *who, "--bud", "clock", "-", given="What time is it in Oslo?\n")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert "Europe/Oslo" in asked.stdout
    refused = run("ask", *who, "--bud", "notes", 'Delete the note "old"')
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--approve" in refused.stderr
    stranger = run("ask", *who, "--bud", "notes", "--user", "x@y.example", "hello")
    assert stranger.returncode == 2
    assert "x@y.example is no member" in stranger.stderr


def _send_to_another_thread(process: subprocess.Popen[str], number: int) -> None:
    """The kernel may have any thread meet a signal, while Python's handlers wait for the main thread."""
    threads = {int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()}
    other = min(threads - {process.pid})
    assert ctypes.CDLL(None).tgkill(process.pid, other, number) == 0


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("number", "status", "send"),
    [
        (signal.SIGINT, 130, subprocess.Popen.send_signal),
        (signal.SIGTERM, 143, _send_to_another_thread),
        *([(signal.SIGHUP, 129, subprocess.Popen.send_signal)] if IS_FULL else []),
    ],
)
def test_a_signal_stops_ask_in_good_order(
    begin: Begin,
    number: int,
    status: int,
    send: Callable[[subprocess.Popen[str], int], None],
) -> None:
    """REL-1571: the turn is stopped at once, by whichever thread met it, and only the last line is told."""
    process = begin("ask", "--workspace", "demo", "--bud", "notes", "Make a slow report")
    assert process.stdout is not None
    for line in process.stdout:
        if '"status":"running"' in line and "tool_call.changed" in line:
            break
    send(process, number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (status, "")
    assert '"status": "cancelled"' in out.splitlines()[-1]


@pytest.mark.sqlite
def test_who_stops_reading_stops_ask(begin: Begin) -> None:
    """REL-1571: without a word about the pipe."""
    process = begin("ask", "--workspace", "demo", "--bud", "notes", "Make a slow report")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 1
    assert process.stderr.read() == ""


@pytest.mark.sqlite
@pytest.mark.parametrize("option", ["--no-color", "--help"])
def test_a_command_whose_reader_left_ends_quietly(begin: Begin, option: str) -> None:
    """REL-2174: `manage.py verify_audit | head` ended with a traceback. The exit code is the usual one."""
    process = begin("verify_audit", option)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait() == 128 + signal.SIGPIPE
