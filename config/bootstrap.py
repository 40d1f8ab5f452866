"""Makes what the product runs on: the virtual environment, the locked packages, Node and the web build.

Standard library only, because this runs on the bare Python of a fresh machine. Each step is skipped while the content
of the files it depends on is the one it last saw, so a second start costs milliseconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STATE = VENV / ".trellis"
WEB = ROOT / "chat" / "web"
STATIC = ROOT / "staticfiles"
LOCKS = {
    "runtime": ROOT / "config" / "requirements.lock",
    "dev": ROOT / "config" / "requirements-dev.lock",
}
EXTRA = ROOT / "extra-packages.txt"
"""What one installation needs besides, a package a line. People write it; a later version of Trellis keeps it."""
TOOL_COMMANDS = frozenset({"test", "bench", "soak", "chaos", "conformance"})
"""Commands that start modules of ``tests`` or ``bench``, and so need what the tests need."""
WEB_COMMANDS = frozenset({"up", "test", "collectstatic"})
"""Commands that need the web app. The environment's own ``collectstatic`` takes what is built."""
UV = "uv==0.13.8"
OLDEST_PYTHON = (3, 11)
_ENDING_SECONDS = 5.0
_LOADING_SECONDS = 300.0
"""Of one try to load packages. npm waits for ever for the rest of a download whose connection stands still."""
_LOADING_TRIES = 4

Kind = Literal["runtime", "dev"]
"""``dev`` holds everything ``runtime`` holds and the tools of the tests, so it serves both."""


_lock: int | None = None
"""Tools inherit it: what outlives a set-up that was killed keeps the next one waiting instead of writing beside it."""


class SetupFailed(Exception):
    """A step of the set-up failed; the text is for people."""


class ToolTimedOut(SetupFailed):
    """A tool had not ended in its time, and was ended."""


def is_inside() -> bool:
    """Whether this interpreter is the virtual environment's own."""
    return Path(sys.prefix).resolve() == VENV.resolve()


def reexec(argv: Sequence[str]) -> NoReturn:
    """Go on in the virtual environment's interpreter, in this same process."""
    sys.stdout.flush()
    os.execve(PYTHON, [str(PYTHON), *argv], with_bytecode(os.environ))  # noqa: S606


def prepare(kind: Kind, *, with_web: bool) -> None:
    """Bring the environment to what the locks say.

    Raises:
        SetupFailed: a step did not work; what was made so far is kept, and the next start goes on from there.
    """
    if sys.version_info < OLDEST_PYTHON:
        raise SetupFailed(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}.")
    if os.name != "posix":
        raise SetupFailed("Trellis runs on Linux and macOS; on Windows, use WSL.")
    try:
        VENV.mkdir(exist_ok=True)
        with _alone():
            _make_environment(kind)
            if with_web:
                _make_web(kind)
    except PermissionError as error:
        raise SetupFailed(
            f"{error.filename or VENV} belongs to somebody else, so this user cannot change it. "
            "Start Trellis as the user who set it up, or give that user's files to this one (chown)."
        ) from None
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise SetupFailed(f"{error.strerror or error}{where}.") from None


@contextmanager
def _alone() -> Iterator[None]:
    """Let one set-up run at a time; a second one waits and then finds everything done."""
    import fcntl  # not on Windows, where prepare() has said so already

    # Not ".lock": that one is uv's own, and it would wait for us for five minutes.
    global _lock
    with (VENV / ".trellis.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another set-up of this folder to finish …", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        _lock = lock.fileno()
        try:
            yield
        finally:
            _lock = None


def _version() -> str:
    """Such as 3.13."""
    return ".".join(map(str, sys.version_info[:2]))


def _make_environment(kind: Kind) -> None:
    if not _is_whole():
        with _progress("virtual environment"):
            if find_spec("ensurepip") is None:
                raise SetupFailed(
                    "This Python cannot make virtual environments: its module ensurepip is missing. On Debian and"
                    f" Ubuntu it is a package of its own: apt install python{_version()}-venv. Then run the same"
                    " command again."
                )
            venv.create(VENV, with_pip=True, clear=False)
        shutil.rmtree(STATE, ignore_errors=True)
        STATE.mkdir()
        _write_state("environment", {"made": "whole"})
    held = _read_state("packages")
    # An environment with the tools of the tests stays one; otherwise "up" and "test" would undo each other's work.
    target: Kind = "dev" if kind == "dev" or held.get("kind") == "dev" else "runtime"
    wanted = {"kind": target, "hash": _hash([LOCKS["runtime"], LOCKS[target], EXTRA])}
    if held == wanted:
        return
    if not (VENV / "bin" / "uv").exists() or _read_state("uv").get("version") != UV:
        with _progress("package installer"):
            _run(
                [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV]
            )
        _write_state("uv", {"version": UV})
    with _progress("Python packages" + (" and test tools" if target == "dev" else "")):
        lock = str(LOCKS[target])
        _install(
            ["sync", "--require-hashes", lock], or_else=["install", "--require-hashes", "-r", lock]
        )
    if EXTRA.is_file():
        with _progress(f"packages of {EXTRA.name}"), tempfile.TemporaryDirectory() as folder:
            pins = Path(folder, "pins.txt")
            pins.write_text(_pins_of(LOCKS[target].read_text()))
            added = ["install", "-r", str(EXTRA), "-c", str(pins)]
            _install(added, or_else=added)
    _write_state("packages", wanted)


def _install(arguments: Sequence[str], *, or_else: Sequence[str]) -> None:
    """Have uv change the packages, or else pip, which may know an index, a proxy or a certificate that uv does not."""
    uv = [str(PYTHON), "-m", "uv", "pip", arguments[0], "--quiet", "--python", str(PYTHON)]
    try:
        _run([*uv, *arguments[1:]], env=_index_settings())
    except SetupFailed:
        _run([str(PYTHON), "-m", "pip", or_else[0], "--quiet", *or_else[1:]])


def _pins_of(lock: str) -> str:
    """The versions of a lock file, without their hashes: whatever is added must leave them as they are."""
    pins = [line for line in lock.splitlines() if line and line[0] not in " #-"]
    return "".join(line.rstrip(" \\") + "\n" for line in pins)


def _make_web(kind: Kind) -> None:
    npm = str(VENV / "bin" / "npm")
    manifests = [WEB / "package.json", WEB / "package-lock.json"]
    held = _read_state("node_modules")
    target: Kind = "dev" if kind == "dev" or held.get("kind") == "dev" else "runtime"
    wanted = {"kind": target, "hash": _hash(manifests)}
    if held != wanted or not (WEB / "node_modules").is_dir():
        with _progress("web packages" + (" and test tools" if target == "dev" else "")):
            _load([npm, "ci", "--loglevel=error", *([] if target == "dev" else ["--omit=dev"])])
        _write_state("node_modules", wanted)
    # The style sheet is made from the classes that the templates use, so they are sources of the build as well.
    sources = [
        *manifests,
        *sorted(WEB.glob("*.ts")),
        *sorted(WEB.glob("*.json")),
        *_files(WEB / "public"),
        *_files(WEB / "src"),
        *_files(ROOT / "templates"),
        *(path for folder in sorted(ROOT.glob("*/*/templates")) for path in _files(folder)),
    ]
    built = {"hash": _hash(sources)}
    if _read_state("web") != built or not (WEB / "dist" / "manifest.json").exists():
        with _progress("web app"):
            _run([npm, "run", "--silent", "build"], cwd=WEB)
        _write_state("web", built)
    collected = {"packages": _hash([LOCKS["runtime"]]), "web": built["hash"]}
    held = _read_state("static")
    if held != collected or not STATIC.is_dir():
        with _progress("compressed files"):
            _collect_static(from_scratch=held.get("packages") != collected["packages"])
        _write_state("static", collected)


def _collect_static(*, from_scratch: bool) -> None:
    """Gather the static files of the web app and of the packages, and compress them once for all starts.

    Args:
        from_scratch: for files of other packages, whose times may be older than those of their copies. Otherwise files
            of earlier web builds stay, for pages that are still open.
    """
    unused = [f"--ignore={name}" for name in ("*.map", "rest_framework", "redoc", "*es-bundle*")]
    clear = ["--clear"] if from_scratch and STATIC.is_dir() else []
    _run(
        [str(PYTHON), "manage.py", "collectstatic", "--no-input", "--verbosity=0", *unused, *clear],
        # Not the owner's own data: nothing of it is needed, and keys would be made there.
        env={
            "TRELLIS_DATA_DIR": str(VENV / ".cache" / "data"),
            "TRELLIS_STATIC_ROOT": str(STATIC),
            "DATABASE_URL": "",
            "REDIS_URL": "",
        },
    )


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []


def _hash(paths: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in paths:
        if path.is_file():
            total.update(f"{path.relative_to(ROOT)}\0".encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _read_state(name: str) -> dict[str, str]:
    try:
        state = json.loads((STATE / name).read_text())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _write_state(name: str, state: Mapping[str, str]) -> None:
    draft = STATE / f".{name}"
    draft.write_text(json.dumps(state))
    draft.replace(STATE / name)


def _is_whole() -> bool:
    """Whether the environment was made to its end and its interpreter starts.

    One whose making was cut off can have an interpreter that starts and a pip that does not.
    """
    is_made = bool(_read_state("environment") or _read_state("packages") or _read_state("uv"))
    return is_made and _works(PYTHON)


def _works(python: Path) -> bool:
    """Whether the environment's interpreter starts; a moved or half-made one does not."""
    if not python.exists():
        return False
    if is_inside():
        return True
    return (
        subprocess.run(
            [str(python), "-c", "import pip"], capture_output=True, check=False
        ).returncode
        == 0
    )


@contextmanager
def _progress(what: str) -> Iterator[None]:
    """Print what is being made, and how long it took."""
    print(f"  {what} …", end="", flush=True)
    start = time.monotonic()
    try:
        yield
    except BaseException:
        print(" failed", flush=True)
        raise
    print(f" {time.monotonic() - start:.1f} s", flush=True)


def with_bytecode(environment: Mapping[str, str]) -> dict[str, str]:
    """The same environment, in which modules are compiled once and not at every start.

    Whoever forbids bytecode does not want it among the sources: it is kept in the virtual environment's folder then.
    It halves the time of a start.
    """
    env = dict(environment)
    if env.pop("PYTHONDONTWRITEBYTECODE", ""):
        env.setdefault("PYTHONPYCACHEPREFIX", str(VENV / ".cache" / "bytecode"))
    return env


def child_environment() -> dict[str, str]:
    """The environment for tools: our own programs first, and caches that work without a home folder."""
    env = with_bytecode(os.environ)
    env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    env.pop("PYTHONHOME", None)
    home = env.get("HOME", "")
    if not home or not os.access(home, os.W_OK):
        cache = VENV / ".cache"
        env |= {
            "HOME": str(cache),
            "UV_CACHE_DIR": str(cache / "uv"),
            "npm_config_cache": str(cache / "npm"),
        }
        cache.mkdir(exist_ok=True)
    return env


def _index_settings() -> dict[str, str]:
    """Tell uv of the package index, mirrors and certificates that pip is configured with."""
    listed = subprocess.run(
        [str(PYTHON), "-m", "pip", "config", "list"],
        capture_output=True,
        text=True,
        check=False,
        env=child_environment(),
    ).stdout
    found: dict[str, str] = {}
    names = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "cert": "SSL_CERT_FILE",
    }
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        name = names.get(key.rpartition(".")[2])
        if name and name not in os.environ:
            found[name] = " ".join(value.strip().strip("'\"").split())
    if "UV_INDEX" in found:
        # As pip does: the best match of all indexes. What is installed is fixed by the hashes of the lock anyway.
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return found


def _load(command: Sequence[str]) -> None:
    """Run npm. Where it stands still it is started again: what it has loaded stays, so each try goes on from there."""
    for _ in range(_LOADING_TRIES - 1):
        with suppress(ToolTimedOut):
            return _run(command, cwd=WEB, seconds=_LOADING_SECONDS)
    return _run(command, cwd=WEB, seconds=_LOADING_SECONDS)


def _run(
    command: Sequence[str],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> None:
    """Run one tool quietly; what it said is shown only if it failed. If this process is told to end, it ends first.

    Raises:
        SetupFailed: it failed.
        ToolTimedOut: it had not ended after so many seconds.
    """
    with tempfile.TemporaryFile() as output:
        try:
            tool = subprocess.Popen(
                command,
                cwd=cwd,
                env={**child_environment(), **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A group of its own: npm starts others, and those would go on without it.
                start_new_session=True,
                pass_fds=() if _lock is None else (_lock,),
            )
        except FileNotFoundError:
            raise SetupFailed(
                f"{command[0]} is missing. Delete {VENV} and start again: everything in it is made anew."
            ) from None
        try:
            tool.wait(seconds)
        except subprocess.TimeoutExpired:
            _end(tool)
            raise ToolTimedOut(
                f"{' '.join(command[:4])} … did not end in {(seconds or 0) / 60:.0f} minutes. Check the network, and start again:"
                " what was loaded stays."
            ) from None
        except BaseException:
            _end(tool)
            raise
        if tool.returncode != 0:
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines()
            tail = "\n".join(lines[-30:])
            raise SetupFailed(f"{' '.join(command[:4])} … failed:\n{tail}")


def _end(tool: subprocess.Popen[bytes]) -> None:
    """End a tool and all that it started, and wait until none of them writes any more."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        end = time.monotonic() + _ENDING_SECONDS
        while time.monotonic() < end:
            try:
                os.killpg(tool.pid, number)
            except (
                ProcessLookupError,
                PermissionError,
            ):  # macOS says the latter of one that has ended
                return
            tool.poll()
            time.sleep(0.05)
