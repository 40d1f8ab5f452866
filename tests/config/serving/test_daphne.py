"""What the server below the product does by itself, on the wire."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, BinaryIO

import pytest

from config.bootstrap import ROOT
from tests.ports import free_port

SERVER = """
import asyncio, json, os, psutil, resource, signal, sys
from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from config.serving.daphne_limits import (
    end_all_of_daphne,
    let_daphne_say_why,
    let_daphne_send_at_once,
    limit_bodies_of_daphne,
    limit_sockets_of_daphne,
    name_statuses_of_daphne,
)
from config.serving.edge import BodyLimit

MOST = 200 * 1024 * 1024

turns = []

async def count_turns():
    while True:
        turns.append(1)
        await asyncio.sleep(0)

async def answer(send, **told):
    body = json.dumps(told).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})

async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        if scope["path"] == "/much/":
            for number in range(400):
                await send({"type": "websocket.send", "text": f"{number} " + "x" * number * 100})
        if scope["path"] == "/large/":
            await send({"type": "websocket.send", "text": "x" * 3_000_000})
        if scope["path"] == "/ws/ended":
            return
        try:
            while (await receive())["type"] != "websocket.disconnect":
                await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            print("cleaned up", flush=True)
            raise
        return
    if scope["path"] == "/fails":
        raise RuntimeError("on purpose")
    if scope["path"] == "/killed-at-the-end":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"y" * 30_000_000})
        asyncio.get_running_loop().call_later(0.2, os.kill, os.getpid(), signal.SIGKILL)
        return
    if scope["path"] in ("/streamed", "/killed-halfway"):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(3):
            await send({"type": "http.response.body", "body": b"x" * 50_000, "more_body": True})
            await asyncio.sleep(0.01)
        if scope["path"] == "/killed-halfway":
            os.kill(os.getpid(), signal.SIGKILL)
        await send({"type": "http.response.body", "body": b"y" * 2_000_000})
        return
    if scope["path"].startswith("/status/"):
        await send({"type": "http.response.start", "status": int(scope["path"][8:]), "headers": []})
        await send({"type": "http.response.body", "body": b""})
        return
    if scope["path"] == "/fails-halfway":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError("on purpose")
    read, most, more = 0, 0, True
    turns.clear()
    counting = asyncio.create_task(count_turns())
    while more:
        message = await receive()
        read, more = read + len(message["body"]), message["more_body"]
        most = max(most, psutil.Process().memory_info().rss >> 20)
    counting.cancel()
    await answer(send, root=scope["root_path"], read=read, memory=most, turns=len(turns))

if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
limit_bodies_of_daphne(lambda path: MOST)
let_daphne_say_why()
name_statuses_of_daphne()
let_daphne_send_at_once()
end_all_of_daphne()
limit_sockets_of_daphne('too much')
port = int(sys.argv[1])
Server(
    BodyLimit(application, most_bytes=lambda path: MOST),
    endpoints=build_endpoint_description_strings(host="127.0.0.1", port=port),
    ready_callable=lambda: print("ready", flush=True),
).run()
"""


@contextmanager
def serving(*limits: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    number = free_port()
    command = [sys.executable, "-c", SERVER, str(number), *limits]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield number, process
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving() as (number, _process):
        yield number


def answer_to(port: int, head: str, body: bytes = b"") -> bytes:
    """All that comes until the server closes the connection."""
    request = f"{head}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection(("127.0.0.1", port), 20) as line:
        line.sendall(request.encode() + b"\r\n" + body)
        return line.makefile("rb").read()


def told_by(answer: bytes) -> Any:
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def test_nobody_says_by_a_header_where_the_pages_begin(port: int) -> None:
    """SEC-657: redirects and links would lead to the site that it names."""
    for place in ("https://evil.example", "/elsewhere"):
        answer = answer_to(port, f"GET / HTTP/1.1\r\nDaphne-Root-Path: {place}")
        assert told_by(answer)["root"] == ""


def test_newer_statuses_have_a_name(port: int) -> None:
    """REL-3062: the library's table ends before them."""
    for status in (422, 429):
        answer = answer_to(port, f"GET /status/{status} HTTP/1.1")
        assert answer.startswith(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode())


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        (f"GET /api/search/?q={'x' * 20_000} HTTP/1.1", 414, "address_too_long"),
        (f"GET /api/search/ HTTP/1.1\r\nX-Long: {'x' * 20_000}", 431, None),
    ],
)
def test_what_is_too_long_is_refused_in_words(
    port: int, head: str, status: int, code: str | None
) -> None:
    """REL-1566: with a status, and for programs in their shape, instead of a connection that ends."""
    answer = answer_to(port, head)
    assert answer.split(b" ")[1] == str(status).encode()
    if code is None:
        assert b"A header is too long." in answer
    else:
        assert b"Content-Type: application/json" in answer
        assert [one["code"] for one in told_by(answer)["errors"]] == [code]


def test_a_body_that_is_too_large_is_refused_in_words(port: int) -> None:
    """REL-1566: for programs in their shape, and before any of it is read."""
    with socket.create_connection(("127.0.0.1", port), 20) as line:
        head = f"POST /api/x/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: {10**12}\r\n\r\n"
        line.sendall(head.encode())
        answer = line.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert [one["code"] for one in told_by(answer)["errors"]] == ["too_large"]


def test_a_body_that_finds_no_room_on_the_disk_is_refused_in_words() -> None:
    """REL-2237: the connection broke off, and neither the sender nor the log knew why. What needs no disk goes on."""
    with serving("500000") as (port, _):
        for size in (400_000, 3_000_000, 501_000):
            answer = answer_to(port, "POST /api/x/ HTTP/1.1", b"x" * size)
            if size < 500_000:
                assert told_by(answer)["read"] == size
            else:
                assert answer.startswith(b"HTTP/1.1 507 ")
                assert [one["code"] for one in told_by(answer)["errors"]] == ["no_room"]


def test_who_sends_all_of_a_body_that_is_too_large_reads_why_it_was_refused(port: int) -> None:
    """REL-1621: as a proxy does, which would see a broken server where the connection is reset, and ask it no more."""
    piece = b"x" * 1024 * 1024
    with socket.create_connection(("127.0.0.1", port), 20) as line:
        head = f"POST /api/x/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(piece) * 210}\r\n\r\n"
        line.sendall(head.encode())
        for _ in range(210):
            line.sendall(piece)
        answer = line.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert [one["code"] for one in told_by(answer)["errors"]] == ["too_large"]


def test_what_stands_behind_a_refused_request_is_not_answered(port: int) -> None:
    """REL-1621: it may be a part of the request that nobody has read."""
    with socket.create_connection(("127.0.0.1", port), 20) as line:
        line.sendall(
            f"GET /?q={'x' * 20_000} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        )
        answer = line.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 414 ")
    assert answer.count(b"HTTP/1.1") == 1


def test_a_large_body_is_read_piece_by_piece(port: int) -> None:
    """SEC-655, SEC-658: as much memory as for a small one, all of it arrives, and others have their turns meanwhile."""
    listed = [
        told_by(answer_to(port, "POST / HTTP/1.1", b"x" * size))
        for size in (1, 70 * 1024, 60 * 1024 * 1024)
    ]
    assert [one["read"] for one in listed] == [1, 70 * 1024, 60 * 1024 * 1024]
    assert listed[2]["memory"] - listed[0]["memory"] < 20
    assert listed[2]["turns"] > 60 * 1024 * 1024 // (64 * 1024) // 2


def test_an_answer_that_fails_halfway_ends_there_and_harms_nobody_else(port: int) -> None:
    """REL-1422, REL-2006: whoever reads it sees that it is not whole, also where no length and no end is sent. The server goes on to clean up after others."""
    answer = answer_to(port, "GET /fails-halfway HTTP/1.1")
    assert answer.startswith(b"HTTP/1.1 200")
    assert not answer.endswith(b"0\r\n\r\n")
    assert answer_to(port, "GET /fails HTTP/1.1").startswith(b"HTTP/1.1 500")
    with pytest.raises(ConnectionResetError):
        answer_to(port, "GET /fails-halfway HTTP/1.0")


def test_an_answer_whose_process_is_killed_does_not_look_whole() -> None:
    """REL-2239: also where no length and no end is sent. One that comes to its end arrives whole."""
    with serving() as (port, process):
        whole = answer_to(port, "GET /streamed HTTP/1.0").partition(b"\r\n\r\n")[2]
        assert (len(whole), whole[-1:]) == (2_150_000, b"y")
        with pytest.raises(ConnectionResetError):
            answer_to(port, "GET /killed-halfway HTTP/1.0")
        assert process.wait() == -signal.SIGKILL


def test_what_waits_to_be_sent_is_part_of_an_answer() -> None:
    """REL-2239: whoever reads slowly has not all of it when the application is done."""
    with serving() as (port, process), socket.create_connection(("127.0.0.1", port), 20) as line:
        line.sendall(b"GET /killed-at-the-end HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert process.wait() == -signal.SIGKILL
        with pytest.raises(ConnectionResetError):
            line.makefile("rb").read()


def socket_to(port: int, path: str = "/ws/") -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port), 20)
    line.sendall(
        f"GET {path} HTTP/1.1\r\n".encode()
        + b"Host: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):  # and no byte of what follows
        head += line.recv(1)
    assert head.startswith(b"HTTP/1.1 101")
    return line


def frame(kind: int, content: bytes = b"") -> bytes:
    """One that is short, and masked by zeros."""
    return bytes([0x80 | kind, 0x80 | len(content)]) + bytes(4) + content


TEXT, PING, CLOSED = 1, 9, bytes([0x88, 2]) + (1008).to_bytes(2, "big")


def test_a_socket_that_sends_faster_than_it_is_read_is_closed(port: int) -> None:
    """SEC-659, REL-3291: it is told why. What waits for the application has an end; a page's own bursts are far below."""
    with socket_to(port) as line:
        line.sendall(frame(TEXT, b"hello") * 40)
        line.settimeout(0.5)
        with pytest.raises(TimeoutError):
            line.recv(1)
        line.settimeout(20)
        line.sendall(frame(TEXT, b"hello") * 100)
        stream = line.makefile("rb")
        assert text_of(stream) == "too much"
        assert stream.read(len(CLOSED)) == CLOSED


def test_pings_are_answered_now_and_then(port: int) -> None:
    """SEC-659: answers that nobody reads do not pile up."""
    with socket_to(port) as line:
        line.sendall(frame(PING, b"there?") * 1000 + frame(8))
        stream = line.makefile("rb").read()
    assert stream.count(b"there?") in {1, 2}


@pytest.mark.parametrize("kind", [0x00, 0x8A])
def test_frames_that_make_no_message_have_an_end(port: int, kind: int) -> None:
    """SEC-987: pieces of a message without end, and pongs that nobody asked for; what a proxy breaks up is far below."""
    piece = bytes([kind, 0x80]) + bytes(4)
    with socket_to(port) as line:
        line.settimeout(5)
        line.sendall(bytes([TEXT, 0x80]) + bytes(4) + piece * 1000 + frame(PING, b"there?"))
        assert b"there?" in line.recv(4096)
        with pytest.raises(ConnectionError):
            line.sendall(piece * 4000)
            line.recv(1)
    assert answer_to(port, "GET / HTTP/1.1").startswith(b"HTTP/1.1 200")


def text_of(stream: BinaryIO) -> str:
    """The next message: frames of a server are not masked (RFC 6455, section 5.2)."""
    kind, size = stream.read(2)
    assert kind == 0x80 | TEXT
    if size > 125:
        size = int.from_bytes(stream.read(2 if size == 126 else 8))
    return stream.read(size).decode()


def test_what_is_sent_at_once_keeps_its_order(port: int) -> None:
    """REL-1455: eight megabytes for somebody who begins to read late; each message is whole."""
    with socket_to(port, "/much/") as line:
        # By then the server has sent what the network holds, and keeps the rest.
        assert answer_to(port, "GET / HTTP/1.1").startswith(b"HTTP/1.1 200")
        reader = line.makefile("rb")
        listed = [text_of(reader) for _ in range(400)]
    assert listed == [f"{number} " + "x" * number * 100 for number in range(400)]


def test_a_page_is_sent_what_is_larger_than_it_may_send_itself(port: int) -> None:
    """REL-1823: a chat with long messages is one frame of more than a mebibyte. A page sends no such thing."""
    with socket_to(port, "/large/") as line:
        assert text_of(line.makefile("rb")) == "x" * 3_000_000
        size = 2 * 1024 * 1024
        line.sendall(bytes([0x80 | TEXT, 0xFF]) + size.to_bytes(8, "big") + bytes(4))
        with pytest.raises(ConnectionResetError):
            line.recv(1)


def test_who_leaves_while_much_is_sent_harms_nobody(port: int) -> None:
    """REL-1455: the server finds out, and answers others."""
    for _ in range(3):
        with socket_to(port, "/much/") as line:
            line.recv(1000)
        assert answer_to(port, "GET / HTTP/1.1").startswith(b"HTTP/1.1 200")


def test_what_serves_a_page_cleans_up_at_the_end_of_the_process() -> None:
    """REL-1505: also beside a socket that nothing serves any more, and that the other side keeps open."""
    with serving() as (number, process):
        with socket_to(number, "/ws/ended"), socket_to(number):
            time.sleep(2.5)  # then the server has noticed that nothing serves the first one
            process.terminate()
            output, _errors = process.communicate(timeout=20)
        assert output == b"cleaned up\n"
