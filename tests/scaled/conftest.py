"""An installation that is not running yet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from config.bootstrap import child_environment
from config.keys import generate_keys
from tests.ports import free_port
from tests.scaled.installation import Installation


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
