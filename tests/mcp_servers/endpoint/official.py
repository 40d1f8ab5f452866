"""The official client, as somebody's program uses it."""

from __future__ import annotations

from typing import Any

import httpx2
import mcp
import mcp_types
from mcp.client.streamable_http import streamable_http_client

from mcp_servers.client.connections.runtime import run_sync
from tests.patience import PATIENCE


def use_notes(url: str, http: httpx2.AsyncClient, mode: Any) -> None:
    """Use what an endpoint offers: list the tools, call one that reads notes, read the resource with all notes, and fill in a prompt."""

    async def use() -> tuple[list[str], Any, str]:
        async with (
            http,
            mcp.Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            listed = await client.list_tools()
            called = await client.call_tool("notes__list_notes", {})
            resources = (await client.list_resources()).resources
            (content,) = (await client.read_resource(resources[0].uri)).contents
            assert isinstance(content, mcp_types.TextResourceContents)
            prompts = (await client.list_prompts()).prompts
            filled = await client.get_prompt(prompts[0].name, {"name": "Milk"})
            assert "Milk" in str(filled.messages[0].content)
            return [tool.name for tool in listed.tools], called, content.text

    names, called, text = run_sync(use(), PATIENCE)
    assert text
    assert "notes__list_notes" in names
    assert not called.is_error
