"""Plays scenarios for the suite's clients, in one process with one database."""

from __future__ import annotations

import io
import json
import socketserver
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connections

from mcp_servers.client.connections import runtime
from tests.conformance import connecting, signing_in
from tests.conformance.suite import AUTHORIZATION


class _Handler(socketserver.StreamRequestHandler):
    """One scenario."""

    def handle(self) -> None:
        task = json.loads(self.rfile.readline())
        output, code = io.StringIO(), 0
        try:
            _play(task, output)
        except BaseException:
            output.write(traceback.format_exc())
            code = 1
        finally:
            connections.close_all()
        answer = {"code": code, "said": output.getvalue()}
        self.wfile.write(f"{json.dumps(answer)}\n".encode())


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def _play(task: dict[str, Any], output: io.StringIO) -> None:
    if task["scenario"].startswith(AUTHORIZATION):
        signing_in.play(task["url"], task["context"], output.write)
    else:
        work = connecting.play(task["url"], task["context"], output.write)
        runtime.run_sync(work, connecting.SECONDS + 5)


@contextmanager
def playing(path: Path) -> Iterator[None]:
    """Play scenarios for whoever comes to this socket."""
    with _Server(str(path), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="player", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            runtime.shutdown(2.0)
