"""The official client, as somebody's program uses it."""

from __future__ import annotations

from typing import Any

import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client

from mcp_servers.client.connections.runtime import run_sync
from tests.patience import PATIENCE


def use_notes(url: str, http: httpx2.AsyncClient, mode: Any) -> None:
    """List the tools at an endpoint, and call one that reads notes."""

    async def use() -> tuple[list[str], Any]:
        async with (
            http,
            mcp.Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            listed = await client.list_tools()
            called = await client.call_tool("notes__list_notes", {})
            return [tool.name for tool in listed.tools], called

    names, called = run_sync(use(), PATIENCE)
    assert "notes__list_notes" in names
    assert not called.is_error
