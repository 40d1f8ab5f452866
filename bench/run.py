"""`python -m bench.run`, called by `manage.py bench`: a database of its own, two peers, and a table."""

from __future__ import annotations

import asyncio
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from config.keys import generate_keys


def main() -> int:
    """Measure, and print one line for each measure."""
    with (
        tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder,
        _peer("model") as model_port,
        _peer("tools") as tools_port,
    ):
        _prepare(folder)
        from bench.ground import make_ground
        from bench.measures import measure_all
        from mcp_servers.connections import runtime

        ground = make_ground(
            model_url=f"http://127.0.0.1:{model_port}/v1",
            tools_url=f"http://127.0.0.1:{tools_port}/mcp",
        )
        rows = asyncio.run(measure_all(ground))
        runtime.shutdown(2.0)
    database = "PostgreSQL" if os.environ.get("DATABASE_URL") else "SQLite"
    sys.stdout.write(f"{platform.machine()}, {os.cpu_count()} cores, {database}\n")
    for row in rows:
        sys.stdout.write(f"{row.as_text()}\n")
    return 0


def _prepare(folder: str) -> None:
    """Django on a fresh database, whatever the caller's environment says."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    if url := os.environ.get("TEST_DATABASE_URL"):
        os.environ["DATABASE_URL"] = url
    os.environ |= {
        **generate_keys(),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "TRELLIS_DATA_DIR": folder,
        "TRELLIS_PUBLIC_ORIGINS": "http://localhost:8000",
        "TRELLIS_ALLOWED_NETWORKS": "127.0.0.0/8",
        "TRELLIS_OLLAMA_URL": "off",
        "LOG_LEVEL": "ERROR",
    }
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0, interactive=False)


@contextmanager
def _peer(name: str) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen([sys.executable, "-m", "bench.peers", name, str(port)])  # noqa: S603
    try:
        _wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(port: int, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("a peer did not start")


if __name__ == "__main__":
    sys.exit(main())
