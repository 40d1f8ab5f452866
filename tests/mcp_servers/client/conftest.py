"""A server with every feature, over every transport."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_servers.client.spec import ConnectionSpec
from tests.fakes.full_server import PROGRAM, FullServer, full_server
from tests.fakes.mcp_server import Handler, RawServer
from tests.mcp_servers.client.helpers import program, spec_for

TRANSPORTS = ["streamable_http", "sse", "websocket", "stdio"]


class Everywhere:
    """One server, reachable over each transport."""

    def __init__(self, server: FullServer, port: int, home: Path) -> None:
        self.server = server
        self.port = port
        self._home = home

    def spec(self, transport: str, **fields: Any) -> ConnectionSpec:
        """A connection over this transport; for stdio to a process of its own."""
        if transport == "stdio":
            return spec_for(program(PROGRAM, self._home / "home"), **fields)
        urls = {
            "streamable_http": f"http://127.0.0.1:{self.port}/mcp",
            "sse": f"http://127.0.0.1:{self.port}/sse",
            "websocket": f"ws://127.0.0.1:{self.port}/ws",
        }
        return spec_for(urls[transport], transport=transport, **fields)


@pytest.fixture
def everywhere(tmp_path: Path) -> Iterator[Everywhere]:
    """The server with every feature."""
    with full_server() as (server, listening):
        yield Everywhere(server, listening.port, tmp_path)


@pytest.fixture
def raw() -> Iterator[Any]:
    """Builds misbehaving servers, and ends them."""
    made: list[RawServer] = []

    def build(
        handlers: dict[str, Handler] | None = None, tools: list[Any] | None = None
    ) -> RawServer:
        made.append(RawServer(handlers, tools))
        return made[-1]

    yield build
    for server in made:
        server.stop()
