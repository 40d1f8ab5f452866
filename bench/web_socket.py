"""A client for sockets that costs next to nothing: what it measures is the server.

Source: RFC 6455, sections 4.1 (opening), 5.2 (frames) and 5.3 (masks).
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
from collections.abc import Callable
from typing import Any

Listener = Callable[[str], None]
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


class WebSocket:
    """One open socket; every text that comes is handed to `listener`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.listener: Listener = lambda text: None
        self.is_closed = False
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, port: int, path: str, *, cookie: str = "", origin: str = "") -> WebSocket:
        """Open a socket of a server on this machine.

        Raises:
            ConnectionError: it was not let in.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        host = origin.partition("://")[2] or f"127.0.0.1:{port}"
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {host}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
        ]
        lines += [f"Cookie: {cookie}"] if cookie else []
        lines += [f"Origin: {origin}"] if origin else []
        writer.write("\r\n".join([*lines, "", ""]).encode())
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        if b" 101 " not in answer.split(b"\r\n", 1)[0]:
            raise ConnectionError(answer.split(b"\r\n", 1)[0].decode())
        return cls(reader, writer)

    def say(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self._send(_TEXT, json.dumps(message).encode())

    async def ask(
        self, message: dict[str, Any], *kinds: str, seconds: float = 30
    ) -> dict[str, Any]:
        """Send one message, and wait for one of these kinds; others go to nobody."""
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        def listen(text: str) -> None:
            event = json.loads(text)
            if event["type"] in (*kinds, "error") and not answer.done():
                answer.set_result(event)

        self.listener = listen
        self.say(message)
        event = await asyncio.wait_for(answer, seconds)
        if event["type"] == "error":
            raise ConnectionError(event["message"])
        return event

    async def until_closed(self) -> None:
        """Wait until the other side has closed it, or is gone."""
        await asyncio.wait([self._reading])

    async def close(self) -> None:
        """Close it, whatever the other side says."""
        self.is_closed = True
        self._reading.cancel()
        self._writer.close()

    def _send(self, kind: int, payload: bytes) -> None:
        mask = os.urandom(4)
        size = len(payload)
        head = bytes([0x80 | kind, 0x80 | (size if size < 126 else 126)])
        head += struct.pack("!H", size) if size >= 126 else b""
        masked = bytes(one ^ mask[place % 4] for place, one in enumerate(payload))
        self._writer.write(head + mask + masked)

    async def _read(self) -> None:
        try:
            while True:
                first, second = await self._reader.readexactly(2)
                size = second & 0x7F
                if size == 126:
                    (size,) = struct.unpack("!H", await self._reader.readexactly(2))
                elif size == 127:
                    (size,) = struct.unpack("!Q", await self._reader.readexactly(8))
                payload = await self._reader.readexactly(size)
                kind = first & 0x0F
                if kind == _TEXT:
                    self._take(payload.decode())
                elif kind == _PING:
                    self._send(_PONG, payload)
                elif kind == _CLOSE:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        self.is_closed = True

    def _take(self, text: str) -> None:
        if text.startswith('{"type":"check"'):
            # The server wants to know that this page reads.
            self.say({"type": "ack", "number": json.loads(text)["number"]})
        else:
            self.listener(text)
