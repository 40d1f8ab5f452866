"""Results of tools that are errors by their own word."""

from __future__ import annotations

from uuid import uuid4

import pytest

from mcp_servers.client.errors import ASKS_BACK
from mcp_servers.client.results import read_result
from mcp_servers.client.sdk import mcp_types


@pytest.mark.parametrize(
    ("said", "is_about_asking"),
    [
        (
            "elicitation via server-initiated requests is unavailable on 2026-07-28 connections.",
            True,
        ),
        ("Error executing tool ask: the request has no back-channel", True),
        ("the disk is full", False),
    ],
)
def test_a_tool_that_cannot_ask_is_told_as_such(said: str, is_about_asking: bool) -> None:
    """REL-1605: FastMCP and the SDK make it an error of the tool; whoever manages the server is offered the switch."""
    result = mcp_types.CallToolResult(
        content=[mcp_types.TextContent(type="text", text=said)], is_error=True
    )
    outcome = read_result(
        result, workspace_id=uuid4(), limit_bytes=1000, output_schema=None, duration_ms=1
    )
    assert (outcome.details.get("kind") == "asks_back") is is_about_asking
    assert (outcome.message == ASKS_BACK) is is_about_asking
