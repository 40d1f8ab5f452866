"""Processes from the same code that share a database and Redis, and somebody who uses them."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from config.bootstrap import PYTHON, ROOT, VENV
from tests.patience import PATIENCE

START_SECONDS = 300


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


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
