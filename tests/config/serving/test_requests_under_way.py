"""A process that is told to end answers who waits, and takes nobody else."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from config.bootstrap import ROOT
from tests.patience import PATIENCE
from tests.ports import free_port

SERVER = """
import asyncio, sys
from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from config.serving.daphne_limits import end_all_of_daphne, keep_ports_of_daphne, stop_listening
from config.lifecycle import Lifecycle, StopHook
from config.serving.requests_under_way import RequestsUnderWay

async def application(scope, receive, send):
    kind = b"text/event-stream" if scope["path"] == "/stream" else b"text/plain"
    if kind == b"text/plain":
        print("asked", flush=True)
        await asyncio.sleep(2)
    headers = [(b"content-type", kind)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if kind == b"text/event-stream":
        await send({"type": "http.response.body", "body": b"data: 1", "more_body": True})
        print("asked", flush=True)
        await asyncio.sleep(60 if scope["method"] == "GET" else 2)
    await send({"type": "http.response.body", "body": b"the whole answer"})

requests = RequestsUnderWay(application)

async def put_down():
    await stop_listening()
    print("put down", flush=True)
    await requests.finish()

keep_ports_of_daphne()
end_all_of_daphne()
lifecycle = Lifecycle(stop_hooks=[StopHook(put_down, 20)], most_seconds=30)
from workspaces.delivery import announcements
announcements.serve_from = lambda loop: None
lifecycle.attach_to_daphne()
Server(
    requests,
    endpoints=build_endpoint_description_strings(host="127.0.0.1", port=int(sys.argv[1])),
    ready_callable=lambda: print("ready", flush=True),
).run()
"""


class Serving:
    def __init__(self) -> None:
        self.port = free_port()
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(self.port)], cwd=ROOT, stdout=subprocess.PIPE
        )
        self.wait_for(b"ready\n")

    def wait_for(self, line: bytes) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == line

    def ask(self, path: str, method: str = "GET") -> socket.socket:
        line = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        line.sendall(head.encode())
        self.wait_for(b"asked\n")
        return line


@pytest.fixture
def serving() -> Iterator[Serving]:
    made = Serving()
    yield made
    made.process.kill()
    made.process.wait()


def test_who_waits_is_answered_and_nobody_else_is_taken(serving: Serving) -> None:
    """REL-1624: a form that was sent while a server is replaced is stored, and its sender hears so."""
    with serving.ask("/") as line:
        serving.process.send_signal(signal.SIGTERM)
        serving.wait_for(b"put down\n")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", serving.port), PATIENCE)
        answer = line.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"the whole answer" in answer
    assert b"connection: close" in answer.lower()
    assert serving.process.wait(PATIENCE) == 0


def test_streams_of_events_keep_nobody_waiting(serving: Serving) -> None:
    """REL-1624: their readers come back by themselves."""
    with serving.ask("/stream"):
        began = time.monotonic()
        serving.process.send_signal(signal.SIGTERM)
        assert serving.process.wait(PATIENCE) == 0
    assert time.monotonic() - began < 15


def test_a_stream_that_answers_what_was_sent_is_waited_for(serving: Serving) -> None:
    """REL-1624: nobody gets that answer a second time."""
    with serving.ask("/stream", "POST") as line:
        serving.process.send_signal(signal.SIGTERM)
        answer = line.makefile("rb").read()
    assert b"the whole answer" in answer
    assert serving.process.wait(PATIENCE) == 0
