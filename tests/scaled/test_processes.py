"""Two server processes, a worker and a scheduler from the same code, on PostgreSQL and Redis."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import psycopg
import pytest

from config.bootstrap import PYTHON, ROOT, VENV, child_environment
from config.keys import generate_keys
from tests.deploy.packages import command_of
from tests.patience import PATIENCE

pytestmark = [pytest.mark.postgresql, pytest.mark.redis]
START_SECONDS = 300


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Installation:
    """Processes that share a database and Redis."""

    environment: dict[str, str]
    folder: Path
    ports: tuple[int, int]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def manage(self, *arguments: str) -> str:
        """Run a command; fails with its output if it fails."""
        done = subprocess.run(
            [str(PYTHON), "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, name: str, *command: str) -> None:
        """Start one process; its output goes to a file of its name."""
        program = str(VENV / "bin" / command[0])
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [program, *command[1:]],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def logs(self) -> str:
        """The end of every process's output."""
        return "\n".join(
            f"== {path.name}\n{path.read_text()[-2000:]}" for path in self.folder.glob("*.log")
        )

    def until(self, what: str, check: Callable[[], bool], seconds: float = START_SECONDS) -> None:
        """Wait for something that other processes do; fails with their output."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if check():
                return
            time.sleep(0.2)
        pytest.fail(f"{what} did not happen\n{self.logs()}")


class Browser:
    """Somebody who is signed in, with one cookie jar for all processes."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._jar = CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._jar))

    def fetch(self, path: str, data: bytes | None = None, **headers: str) -> str:
        """Give the body; an error status raises."""
        url = f"http://localhost:{self.port}{path}"
        request = urllib.request.Request(url, data, {"Origin": url.removesuffix(path), **headers})
        with self._opener.open(request, timeout=PATIENCE) as answer:
            return str(answer.read().decode())

    def api(self, path: str, body: Any = None) -> Any:
        """Call the REST interface."""
        headers = {"Content-Type": "application/json", "X-Workspace": "demo"}
        if body is not None:
            page = self.fetch("/accounts/password/change/")
            headers["X-CSRFToken"] = csrf_token(page)
        return json.loads(self.fetch(path, json.dumps(body).encode() if body else None, **headers))

    def sign_in(self, email: str, password: str) -> None:
        """Through the login form."""
        page = self.fetch("/accounts/login/")
        form = {"login": email, "password": password, "csrfmiddlewaretoken": csrf_token(page)}
        self.fetch("/accounts/login/", urlencode(form).encode())


def csrf_token(page: str) -> str:
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert found, page[:500]
    return found.group(1)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """An empty database of its own, and nothing running yet."""
    given = os.environ["TEST_DATABASE_URL"]
    name = f"trellis_scaled_{os.getpid()}"
    with psycopg.connect(given, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
    parts = urlsplit(given)
    ports = (free_port(), free_port())
    environment = {
        **child_environment(),
        **generate_keys(),
        "DATABASE_URL": urlunsplit(parts._replace(path=f"/{name}")),
        "REDIS_URL": f"{os.environ['TEST_REDIS_URL'].rstrip('/')}/9",
        "TRELLIS_DATA_DIR": str(tmp_path / "data"),
        "TRELLIS_PUBLIC_ORIGINS": ",".join(f"http://localhost:{port}" for port in ports),
        "TRELLIS_HEALTH_CHECK_SECONDS": "5",
        "TRELLIS_OLLAMA_URL": "off",
        "LOG_LEVEL": "INFO",
    }
    for unwanted in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ALLOWED_HOSTS", "TRELLIS_PORT"):
        environment.pop(unwanted, None)
    running = Installation(environment, tmp_path, ports)
    yield running
    for process in running.processes.values():
        process.kill()
        process.wait()
    with psycopg.connect(given, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def test_one_installation_of_many_processes(installation: Installation) -> None:
    """REL-22, REL-395: as the compose file starts them. What is asked at one process is answered at the other; each stops cleanly when told to."""
    installation.manage("migrate", "--verbosity", "0")
    installation.manage("seed_demo")
    for number, port in enumerate(installation.ports):
        here = {"0.0.0.0": "127.0.0.1", "8000": str(port)}
        server = [here.get(word, word) for word in command_of("server-1")]
        installation.start(f"server{number}", *server)
    one_child = {"4": "1"}
    installation.start("worker", *[one_child.get(word, word) for word in command_of("worker")])
    kept = {"/tmp/schedule": str(installation.folder / "beat")}
    installation.start("beat", *[kept.get(word, word) for word in command_of("scheduler")])
    for port in installation.ports:
        installation.until(f"readiness of {port}", lambda port=port: is_ready(port))  # type: ignore[misc]

    first = Browser(installation.ports[0])
    first.sign_in("member@demo.example", "trellis-demo")
    clock = next(bud for bud in first.api("/api/buds/")["results"] if bud["slug"] == "clock")
    conversation = first.api("/api/conversations/", {"bud_id": clock["id"]})
    path = f"/api/conversations/{conversation['id']}/messages/"
    sent = first.api(path, {"client_id": "one", "text": "What time is it in Tokyo?"})

    second = first  # cookies know no ports, so the same session opens the other process
    second.port = installation.ports[1]
    turn = f"/api/turns/{sent['turn']['id']}/"
    installation.until("the answer", lambda: second.api(turn)["status"] == "completed")
    calls = second.api(f"{turn}tool-calls/")
    calls = calls["results"] if isinstance(calls, dict) else calls
    assert [call["status"] for call in calls] == ["succeeded"]

    def is_checked() -> bool:
        servers = second_admin.api("/api/servers/")["results"]
        return all(server["last_checked_at"] for server in servers)

    second_admin = Browser(installation.ports[1])
    second_admin.sign_in("admin@demo.example", "trellis-demo")
    installation.until("a health check by the worker", is_checked)

    for name in ("beat", "worker", "server0", "server1"):
        installation.processes[name].send_signal(signal.SIGTERM)
    for name, process in installation.processes.items():
        assert process.wait(PATIENCE) == 0, (name, installation.logs())
