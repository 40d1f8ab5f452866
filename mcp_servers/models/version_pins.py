"""Programs that stay what they were: an exact version in the command, and a hash over the files that it runs.

A package runner without a version fetches whatever was published last, at every start. A file that changed since the
platform's owner put it into the catalogue may be anything. Neither is started.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from django.utils.translation import gettext_noop as _

from mcp_servers.models.programs import OWN_INTERPRETER

CHANGED: Final = _(
    "Its program has changed since the platform's owner put it into the program catalogue. It starts again once they"
    " have looked at it there, and offer it with its files as they are now."
)

_NODE_RUNNERS: Final = frozenset({"npx", "bunx", "pnpx"})
_PYTHON_RUNNERS: Final = frozenset({"uvx", "pipx"})
_CONTAINERS: Final = frozenset({"docker", "podman", "nerdctl"})
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ash", "ksh"})
_TWO_WORDS: Final = {
    ("npm", "exec"): "npx",
    ("npm", "x"): "npx",
    ("pnpm", "dlx"): "npx",
    ("yarn", "dlx"): "npx",
    ("bun", "x"): "npx",
    ("uv", "tool"): "uvx",
    ("uv", "x"): "uvx",
    ("deno", "run"): "deno",
}
_NODE_PIN: Final = re.compile(r"(?:@[\w.~-]+/)?[\w.~-]+@\d+\.\d+\.\d+(?:[-+][\w.+-]+)?")
_PYTHON_PIN: Final = re.compile(r"[\w.-]+(?:\[[\w,.-]+\])?(?:==|@)\d+(?:\.\d+)+[\w.+!-]*")
_VERSION: Final = re.compile(r"(?:==|@)\d+(?:\.\d+)+[\w.+!-]*")
_DIGEST: Final = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")
_WITH_VALUE: Final = frozenset(
    {"-p", "--package", "--from", "--with", "--spec", "--python", "-c", "--call", "--index-url"}
)
_WHAT_RUNS: Final = frozenset({"-p", "--package", "--from", "--spec"})
_SCRIPTS: Final = frozenset({".js", ".mjs", ".cjs", ".ts", ".py", ".pyz", ".jar", ".sh"})
_MAX_FILES: Final = 500
_MAX_FILE_BYTES: Final = 64 * 1024 * 1024


def version_problem(command: str, args: Sequence[str]) -> str:
    """Why a command does not name an exact version, in words for the platform's owner; empty if it does."""
    name, rest = _runner(command, list(args))
    if any(re.search(r"[@:]latest$", arg) for arg in rest):
        return _("It asks for the latest version. Name an exact one.")
    if name in _SHELLS and any(arg.startswith("-") and "c" in arg for arg in rest[:3]):
        return _("It runs a shell's text, which names no version. Name the program itself.")
    if name in _NODE_RUNNERS | _PYTHON_RUNNERS and not _package(rest):
        return _names_no_package(rest)
    if name in _NODE_RUNNERS:
        package = _package(rest)
        if not package.startswith(("/", "./")) and not _NODE_PIN.fullmatch(package):
            return _("“%(package)s” names no exact version, such as %(value)s@1.2.3.") % {
                "package": package[:100],
                "value": package[:60].partition("@")[0] or "package",
            }
    if name in _PYTHON_RUNNERS:
        package = _package([arg for arg in rest if arg != "run"])
        if not _PYTHON_PIN.fullmatch(package):
            return _("“%(package)s” names no exact version, such as package==1.2.3.") % {
                "package": package[:100]
            }
    if name in _CONTAINERS and "run" in rest and not any(map(_DIGEST.fullmatch, rest)):
        return _("Its image is not named by digest (name@sha256:…).")
    return ""


def is_there(command: str) -> bool:
    """Whether this machine can run a command."""
    return command == OWN_INTERPRETER or (Path(command).is_file() and os.access(command, os.X_OK))


def missing_files(command: str, args: Sequence[str]) -> list[str]:
    """What a command runs that this machine does not have: the program, a script, or a module of `python -m`."""
    missing = [] if is_there(command) else [command]
    if command == OWN_INTERPRETER and args[:1] == ["-m"]:
        missing += [name for name in args[1:2] if not any(_module_files(name))]
    scripts = [Path(arg) for arg in args if arg.startswith("/") and "{" not in arg]
    return missing + [str(one) for one in scripts if one.suffix in _SCRIPTS and not one.exists()]


def runs_packages(command: str, args: Sequence[str] = ()) -> bool:
    """Whether a command fetches a package by its name, and runs it."""
    return _runner(command, list(args))[0] in _NODE_RUNNERS | _PYTHON_RUNNERS


def stands_for(word: str, pinned: str) -> bool:
    """Whether a word such as ``package`` or ``package@latest`` means the package that is named with a version."""
    version = pinned.removeprefix(word.removesuffix("@latest"))
    return version != pinned and _VERSION.fullmatch(version) is not None


def program_hash(command: str, args: Sequence[str]) -> str:
    """SHA-256 over the files that a command runs; empty if none of them can be read.

    These are the program itself, files among its arguments, and the package behind ``python -m``; not the platform's
    own interpreter, which changes with the platform.
    """
    total = hashlib.sha256()
    found = False
    for path in islice(_files(command, args), _MAX_FILES):
        digest = _hashes.of(path)
        if digest:
            found = True
            total.update(f"{path.name}\0{digest}\n".encode())
    return total.hexdigest() if found else ""


def _runner(command: str, args: list[str]) -> tuple[str, list[str]]:
    name = Path(command).name.removesuffix(".cmd").removesuffix(".exe")
    while name == "env" and args:
        args = [arg for arg in args if "=" not in arg and not arg.startswith("-")]
        name, args = (Path(args[0]).name, args[1:]) if args else ("", [])
    if args and (name, args[0]) in _TWO_WORDS:
        return _TWO_WORDS[(name, args[0])], [arg for arg in args[1:] if arg != "run"]
    return name, args


def _package(args: Sequence[str]) -> str:
    """What a package runner runs: the named package, else the first argument that is no option."""
    words = iter(args)
    for word in words:
        option, has_value, value = word.partition("=")
        if option in _WITH_VALUE:
            given = value if has_value else next(words, "")
            if option in _WHAT_RUNS:
                return given
        elif not word.startswith("-"):
            return word
    return ""


def _names_no_package(args: Sequence[str]) -> str:
    for arg in args:
        if arg.startswith("-") and " " in arg:
            return _("“%(argument)s” holds several arguments. Enter each by itself.") % {
                "argument": arg[:100]
            }
    # Without one, npx starts a shell that reads what Trellis writes to it.
    return _("It names no package to run, such as package@1.2.3.")


def _files(command: str, args: Sequence[str]) -> Iterator[Path]:
    if command != OWN_INTERPRETER:
        yield Path(command)
    elif len(args) >= 2 and args[0] == "-m":
        yield from _module_files(args[1])
    for arg in args:
        if arg.startswith("/") and "{" not in arg and Path(arg).is_file():
            yield Path(arg)


def _module_files(name: str) -> Iterator[Path]:
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return
    if found is None or found.origin is None:
        return
    origin = Path(found.origin)
    if found.submodule_search_locations:
        yield from sorted(origin.parent.rglob("*.py"))
    else:
        yield origin


class _Hashes:
    """Hashes of files, kept while date, size and place stay the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[tuple[int, ...], str]] = {}

    def of(self, path: Path) -> str:
        try:
            found = path.stat()
            stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
            if found.st_size > _MAX_FILE_BYTES:
                return f"size {found.st_size}"
            with self._lock:
                known = self._known.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            return ""
        with self._lock:
            self._known[path] = (stamp, digest)
        return digest


_hashes: Final = _Hashes()
