"""What every measurement needs: Django on a fresh database, and peers that run beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from bench.database import own_database
from bench.processes import free_port, wait_for
from config.keys import generate_keys


def forms_of(database_url: str | None) -> str:
    """What is measured on, as the tables call it."""
    name = "PostgreSQL" if database_url else "SQLite"
    return f"{name} and Redis" if os.environ.get("REDIS_URL") else name


def own_or_none() -> AbstractContextManager[str | None]:
    """PostgreSQL where one is given, else SQLite in the folder."""
    url = os.environ.get("TEST_DATABASE_URL")
    return own_database(url) if url else nullcontext()


def prepare(folder: str, database_url: str | None) -> None:
    """Django on a fresh database, with its tables."""
    set_up(folder, database_url)
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)


def set_up(folder: str, database_url: str | None) -> None:
    """Django on a fresh database, which has no tables yet, whatever the caller's environment says."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    if database_url:
        os.environ["DATABASE_URL"] = database_url
    if url := os.environ.get("TEST_REDIS_URL"):
        os.environ["REDIS_URL"] = url
    os.environ |= {
        **generate_keys(),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "TRELLIS_DATA_DIR": folder,
        "TRELLIS_PUBLIC_ORIGINS": "http://localhost:8000",
        "TRELLIS_ALLOWED_NETWORKS": "127.0.0.0/8",
        "TRELLIS_OLLAMA_URL": "off",
        "TRELLIS_API_RATE": "1000000/min",
        "LOG_LEVEL": "ERROR",
    }
    import django

    django.setup()


@contextmanager
def peer(name: str) -> Iterator[int]:
    port = free_port()
    with running([sys.executable, "-m", "bench.peers", name, str(port)], port):
        yield port


@contextmanager
def running(command: list[str], port: int) -> Iterator[None]:
    """Run a program until the end of the block, once it listens."""
    process = subprocess.Popen(command)  # noqa: S603
    try:
        wait_for(port)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:  # somebody's stream is still open
            process.kill()
