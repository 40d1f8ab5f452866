"""`python -m bench.run`, called by `manage.py bench`: a database of its own, two peers, and a table."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from bench.database import own_database
from bench.processes import free_port, wait_for
from bench.results import write_table
from config.keys import generate_keys

GATEWAY = "fastmcp==4.1.2"
"""The gateway beside which calls are measured; installed into an environment of its own."""


def main() -> int:
    """Measure, and print one line for each measure."""
    with (
        tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder,
        peer("model") as model_port,
        peer("tools") as tools_port,
        _gateway(folder, f"http://127.0.0.1:{tools_port}/mcp") as gateway_url,
        own_or_none() as database_url,
    ):
        prepare(folder, database_url)
        from bench.ground import make_ground
        from bench.measures import measure_all
        from mcp_servers.client.connections import runtime

        ground = make_ground(
            model_url=f"http://127.0.0.1:{model_port}/v1",
            tools_url=f"http://127.0.0.1:{tools_port}/mcp",
            gateway_url=gateway_url,
        )
        rows = asyncio.run(measure_all(ground))
        runtime.shutdown(2.0)
    forms = forms_of(database_url)
    sys.stdout.write(f"{platform.machine()}, {os.cpu_count()} cores, {forms}\n")
    for row in rows:
        sys.stdout.write(f"{row.as_text()}\n")
    if "--write" in sys.argv:
        write_table(forms, rows)
    return 0


def forms_of(database_url: str | None) -> str:
    """What is measured on, as the tables call it."""
    name = "PostgreSQL" if database_url else "SQLite"
    return f"{name} and Redis" if os.environ.get("REDIS_URL") else name


def own_or_none() -> AbstractContextManager[str | None]:
    """PostgreSQL where one is given, else SQLite in the folder."""
    url = os.environ.get("TEST_DATABASE_URL")
    return own_database(url) if url else nullcontext()


def prepare(folder: str, database_url: str | None) -> None:
    """Django on a fresh database, whatever the caller's environment says."""
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
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0, interactive=False)


@contextmanager
def peer(name: str) -> Iterator[int]:
    port = free_port()
    with _running([sys.executable, "-m", "bench.peers", name, str(port)], port):
        yield port


@contextmanager
def _gateway(folder: str, tools_url: str) -> Iterator[str | None]:
    """The other gateway's address; None without the flag."""
    if "--gateway" not in sys.argv:
        yield None
        return
    here, venv = Path(sys.executable).parent, Path(folder, "gateway")
    uv = [str(here / "uv"), "--quiet"]
    subprocess.run([*uv, "venv", str(venv)], check=True)  # noqa: S603
    python = str(venv / "bin" / "python")
    subprocess.run([*uv, "pip", "install", "--python", python, GATEWAY], check=True)  # noqa: S603
    port = free_port()
    script = str(Path(__file__).with_name("gateway_peer.py"))
    with _running([python, script, tools_url, str(port)], port):
        yield f"http://127.0.0.1:{port}/mcp"


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
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


if __name__ == "__main__":
    sys.exit(main())
