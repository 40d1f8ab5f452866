"""One process at a time serves a data folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError

from config.env import ROOT
from config.installation import folder_lock
from config.installation.folder_lock import AlreadyServed, hold, is_held
from config.management.commands.up import Command

HOLDER = (
    "import sys\n"
    "from pathlib import Path\n"
    "from config.installation.folder_lock import hold\n"
    "with hold(Path(sys.argv[1]), waiting=lambda: None):\n"
    "    print('held', flush=True)\n"
    "    sys.stdin.read()\n"
)


def test_a_second_server_is_refused_until_the_first_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1581: it waits for one that may be about to end, says who holds the folder, and has it once that one was killed."""
    listed: list[str] = []
    assert not is_held(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        assert is_held(tmp_path)
        monkeypatch.setattr(folder_lock, "LEAVING_SECONDS", 0.5)
        with (
            pytest.raises(AlreadyServed, match=f"process {first.pid}"),
            hold(tmp_path, waiting=lambda: listed.append("waits")),
        ):
            raise AssertionError("two have it")
        assert listed == ["waits"]
        first.kill()
    with hold(tmp_path, waiting=lambda: listed.append("waits")):
        assert listed == ["waits"]
        assert is_held(tmp_path)
    assert not is_held(tmp_path)


def test_a_folder_that_takes_no_writes_is_told_at_the_start(tmp_path: Path) -> None:
    """REL-2005: on a full disk `up` ended with a traceback."""
    with (
        pytest.raises(CommandError, match=r"takes no writes .* disk is full or read-only"),
        Command()._held(tmp_path / "gone"),
    ):
        raise AssertionError("it serves")
