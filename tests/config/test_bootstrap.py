"""Set-up: every step once, skipped while its files are the same, and told plainly when it fails."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
import venv
from pathlib import Path
from typing import IO, NoReturn

import psutil
import pytest

import manage
from config import bootstrap
from tests.patience import PATIENCE, wait_until


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A project of empty files, and the commands that set-up would run in it."""
    commands: list[str] = []
    web = tmp_path / "chat" / "web"
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(bootstrap, "PYTHON", tmp_path / ".venv" / "bin" / "python")
    monkeypatch.setattr(bootstrap, "STATE", tmp_path / ".venv" / ".trellis")
    monkeypatch.setattr(bootstrap, "EXTRA", tmp_path / "extra-packages.txt")
    monkeypatch.setattr(bootstrap, "WEB", web)
    monkeypatch.setattr(bootstrap, "STATIC", tmp_path / "staticfiles")
    locks = {"runtime": tmp_path / "runtime.lock", "dev": tmp_path / "dev.lock"}
    monkeypatch.setattr(bootstrap, "LOCKS", locks)
    (web / "src").mkdir(parents=True)
    for path in (
        *locks.values(),
        web / "package.json",
        web / "package-lock.json",
        web / "src/a.ts",
    ):
        path.write_text(path.name)

    def run(command: list[str], **_: object) -> None:
        line = " ".join(command)
        commands.append(line)
        if "collectstatic" in line:
            bootstrap.STATIC.mkdir(exist_ok=True)
        elif "build" in line:
            (web / "dist").mkdir(exist_ok=True)
            (web / "dist" / "manifest.json").write_text("{}")
        elif " ci " in line:
            (web / "node_modules").mkdir(exist_ok=True)
        elif "install" in line:
            (tmp_path / ".venv" / "bin" / "uv").touch()

    def create(folder: Path, **_: object) -> None:
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").touch()

    monkeypatch.setattr(bootstrap, "_run", run)
    monkeypatch.setattr(bootstrap, "_index_settings", dict)
    monkeypatch.setattr(venv, "create", create)
    monkeypatch.setattr(bootstrap, "_works", lambda python: python.exists())
    return commands


def steps(ran: list[str]) -> list[str]:
    """What was done since the last look, in short."""
    names = {
        "collectstatic": "static",
        "extra-packages": "extra",
        "install": "uv",
        "sync": "packages",
        " ci ": "npm",
        "build": "web",
    }
    found = [next(name for part, name in names.items() if part in line) for line in ran]
    ran.clear()
    return found


def test_everything_is_made_once(ran: list[str]) -> None:
    """Ours: the second start makes nothing."""
    bootstrap.prepare("runtime", with_web=True)
    assert "--omit=dev" in " ".join(ran)
    assert steps(ran) == ["uv", "packages", "npm", "web", "static"]
    bootstrap.prepare("runtime", with_web=True)
    assert steps(ran) == []


def test_collecting_static_files_builds_the_web_app_first(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2251: On a fresh machine, `manage.py collectstatic` builds the web app before it collects it."""

    class Reached(Exception):
        pass

    def reexec(_: object) -> NoReturn:
        raise Reached

    monkeypatch.setattr(bootstrap, "reexec", reexec)
    with pytest.raises(Reached):
        manage.main(["manage.py", "collectstatic", "--no-input"])
    assert "web" in steps(ran)


def test_only_what_changed_is_made_again(ran: list[str]) -> None:
    """Ours: by content, file by file."""
    bootstrap.prepare("runtime", with_web=True)
    ran.clear()
    (bootstrap.WEB / "src" / "a.ts").write_text("changed")
    bootstrap.prepare("runtime", with_web=True)
    assert steps(ran) == ["web", "static"]
    bootstrap.LOCKS["runtime"].write_text("changed")
    bootstrap.prepare("runtime", with_web=True)
    assert steps(ran) == ["packages", "static"]
    (bootstrap.WEB / "dist" / "manifest.json").unlink()
    bootstrap.prepare("runtime", with_web=True)
    assert steps(ran) == ["web"]


def test_a_style_sheet_that_is_served_as_it_stands_is_served_anew(ran: list[str]) -> None:
    """Ours: else an update of it alone would show the old one for ever."""
    bootstrap.prepare("runtime", with_web=True)
    ran.clear()
    (bootstrap.WEB / "public").mkdir()
    (bootstrap.WEB / "public" / "admin.css").write_text("p {}")
    bootstrap.prepare("runtime", with_web=True)
    assert any("collectstatic" in line for line in ran)


def test_up_and_test_do_not_undo_each_other(ran: list[str]) -> None:
    """Ours: what has the test tools serves both."""
    bootstrap.prepare("runtime", with_web=True)
    ran.clear()
    bootstrap.prepare("dev", with_web=True)
    assert "--omit=dev" not in " ".join(ran)
    assert steps(ran) == ["packages", "npm"]
    for kind in ("runtime", "dev", "runtime"):
        bootstrap.prepare(kind, with_web=True)
        assert steps(ran) == []


def test_further_packages_come_back_with_each_new_version(ran: list[str]) -> None:
    """REL-2685: they are taken out with whatever the lock does not know, so they follow it, with its versions."""
    bootstrap.EXTRA.write_text("django-storages[s3]\n")
    bootstrap.prepare("runtime", with_web=False)
    assert steps(ran) == ["uv", "packages", "extra"]
    bootstrap.prepare("runtime", with_web=False)
    assert steps(ran) == []
    bootstrap.LOCKS["runtime"].write_text("changed")
    bootstrap.prepare("runtime", with_web=False)
    assert steps(ran) == ["packages", "extra"]
    bootstrap.EXTRA.unlink()
    bootstrap.prepare("runtime", with_web=False)
    assert steps(ran) == ["packages"]


def test_what_is_added_keeps_the_versions_of_the_lock() -> None:
    """REL-2685: names, versions and markers, without hashes and remarks."""
    lock = """# made by a tool
amqp==5.4.2 \\
    --hash=sha256:93
    # via kombu
async-timeout==5.0.1 ; python_full_version < '3.11.3' \\
    --hash=sha256:39
"""
    pins = "amqp==5.4.2\nasync-timeout==5.0.1 ; python_full_version < '3.11.3'\n"
    assert bootstrap._pins_of(lock) == pins


def test_a_failed_step_is_tried_again(ran: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: what was finished before it stays."""
    works = bootstrap._run

    def fail(command: list[str], **_: object) -> None:
        if " ci " in " ".join(command):
            raise bootstrap.SetupFailed("no network")
        works(command)

    monkeypatch.setattr(bootstrap, "_run", fail)
    with pytest.raises(bootstrap.SetupFailed, match="no network"):
        bootstrap.prepare("runtime", with_web=True)
    monkeypatch.setattr(bootstrap, "_run", works)
    ran.clear()
    bootstrap.prepare("runtime", with_web=True)
    assert steps(ran) == ["npm", "web", "static"]


def test_an_old_python_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours."""
    monkeypatch.setattr(bootstrap, "OLDEST_PYTHON", (9, 9))
    with pytest.raises(bootstrap.SetupFailed, match=r"3\.11"):
        bootstrap.prepare("runtime", with_web=False)


def test_a_python_without_ensurepip_says_which_package_is_missing(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1891: as Debian and Ubuntu come."""
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(bootstrap.SetupFailed, match=r"apt install python3\.\d+-venv"):
        bootstrap.prepare("runtime", with_web=False)
    assert ran == []


def test_set_up_needs_the_standard_library_only() -> None:
    """Ours: on a fresh machine nothing else is there; ``-I -S`` leaves site-packages out."""
    script = f"import sys; sys.path.insert(0, {str(bootstrap.ROOT)!r}); import config.bootstrap"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_modules_are_compiled_once_even_where_bytecode_is_forbidden() -> None:
    """Ours: it halves a start, and nothing is written among the sources."""
    environment = bootstrap.with_bytecode({"PYTHONDONTWRITEBYTECODE": "1", "LANG": "C"})
    assert environment == {
        "LANG": "C",
        "PYTHONPYCACHEPREFIX": str(bootstrap.VENV / ".cache" / "bytecode"),
    }
    assert bootstrap.with_bytecode({"LANG": "C"}) == {"LANG": "C"}


def test_commands_that_start_tests_and_benches_get_their_packages() -> None:
    """Ours: on a fresh machine `manage.py soak` would otherwise end without a library that only tests need."""
    commands = Path(__file__).parents[2] / "config" / "management" / "commands"
    starts = re.compile(r'"-m", "(?:tests|bench)\.')
    starting = {path.stem for path in commands.glob("*.py") if starts.search(path.read_text())}
    assert starting | {"test"} == bootstrap.TOOL_COMMANDS


TOOL = (
    "import os, subprocess, sys, time\n"
    "if len(sys.argv) == 3:\n"
    "    child = subprocess.Popen([sys.executable, *sys.argv[:2]], close_fds=True)\n"
    "    child.wait()\n"
    "while True:\n"
    "    open(sys.argv[1], 'a').write('.')\n"
    "    time.sleep(0.02)\n"
)


def test_what_a_tool_started_ends_with_the_set_up(tmp_path: Path) -> None:
    """REL-1585: after Ctrl-C nothing writes on, so the next start finds no half-removed folder under it."""
    tool, written = tmp_path / "tool.py", tmp_path / "written"
    tool.write_text(TOOL)
    script = (
        # A shell has what it starts in the background ignore Ctrl-C, and that is inherited.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"import sys; sys.path.insert(0, {str(bootstrap.ROOT)!r})\n"
        "from config import bootstrap\n"
        f"bootstrap._run([sys.executable, {str(tool)!r}, {str(written)!r}, 'start another'])\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as set_up:
        try:
            wait_until(lambda: written.exists() and written.stat().st_size > 0)
            set_up.send_signal(signal.SIGINT)
            assert set_up.wait(PATIENCE) != 0
        finally:
            set_up.kill()
    assert not any(
        str(tool) in (one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])
    )


STANDS_STILL_ONCE = (
    "import pathlib, sys, time\n"
    "begun = pathlib.Path(sys.argv[1])\n"
    "is_first = not begun.exists()\n"
    "begun.touch()\n"
    "if is_first or sys.argv[2] == 'always':\n"
    "    time.sleep(3600)\n"
)


@pytest.mark.parametrize("how", ["once", "always"])
def test_a_download_that_stands_still_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """REL-1585: npm waits for ever where a connection is open and nothing comes."""
    monkeypatch.setattr(bootstrap, "_LOADING_SECONDS", 2.0)
    monkeypatch.setattr(bootstrap, "_LOADING_TRIES", 4 if how == "once" else 2)
    command = [sys.executable, "-c", STANDS_STILL_ONCE, str(tmp_path / "begun"), how]
    if how == "once":
        bootstrap._load(command)
        return
    with pytest.raises(
        bootstrap.SetupFailed, match=r"did not end in \d+ minutes\. Check the network"
    ):
        bootstrap._load(command)


def test_what_outlives_a_killed_set_up_keeps_the_next_one_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1585: two never write the same folder."""
    tool, written = tmp_path / "tool.py", tmp_path / "written"
    tool.write_text(TOOL)
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    script = (
        f"import sys; sys.path.insert(0, {str(bootstrap.ROOT)!r})\n"
        "from pathlib import Path\n"
        "from config import bootstrap\n"
        f"bootstrap.VENV = Path({str(tmp_path)!r})\n"
        "with bootstrap._alone():\n"
        f"    bootstrap._run([sys.executable, '-c', 'import os, sys; print(os.getpid(), file=open(sys.argv[1], \"w\"));"
        f" import time; time.sleep(60)', {str(written)!r}])\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as set_up:
        wait_until(lambda: written.exists() and written.read_text().endswith("\n"))
        set_up.kill()
    orphan = int(written.read_text())
    with (tmp_path / ".trellis.lock").open("w") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.kill(orphan, signal.SIGKILL)
        wait_until(lambda: can_lock(lock))


def can_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_an_environment_that_was_cut_off_is_made_anew(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1585: its interpreter may start already, and its pip not."""

    def create(folder: Path, **_: object) -> None:
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin" / "python").touch()

    def cut_off(folder: Path, **_: object) -> None:
        create(folder)
        raise KeyboardInterrupt

    monkeypatch.setattr(venv, "create", cut_off)
    with pytest.raises(KeyboardInterrupt):
        bootstrap.prepare("runtime", with_web=False)
    made: list[Path] = []

    def count(folder: Path, **_: object) -> None:
        made.append(folder)
        create(folder)

    monkeypatch.setattr(venv, "create", count)
    bootstrap.prepare("runtime", with_web=False)
    bootstrap.prepare("runtime", with_web=False)
    assert made == [bootstrap.VENV]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "/srv/x"),
            "/srv/x belongs to somebody",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
    ],
)
def test_a_folder_that_cannot_be_written_is_one_clear_line(
    ran: list[str], monkeypatch: pytest.MonkeyPatch, error: OSError, message: str
) -> None:
    """REL-1586: another user than before, or a full disk."""

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(venv, "create", refuse)
    with pytest.raises(bootstrap.SetupFailed, match=message):
        bootstrap.prepare("runtime", with_web=False)
