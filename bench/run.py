"""`python -m bench.run`, called by `manage.py bench`: a database of its own, two peers, and a table."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.installation import forms_of, own_or_none, peer, prepare, running
from bench.processes import free_port
from bench.results import write_table

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
    with running([python, script, tools_url, str(port)], port):
        yield f"http://127.0.0.1:{port}/mcp"


if __name__ == "__main__":
    sys.exit(main())
