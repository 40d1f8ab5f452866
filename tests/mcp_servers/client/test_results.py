"""Results of tools that are errors by their own word."""

from __future__ import annotations

import base64
from uuid import uuid4

import pytest

from mcp_servers.client.errors import ASKS_BACK
from mcp_servers.client.results import read_result
from mcp_servers.client.sdk import mcp_types
from mcp_servers.client.values import AudioPart, ContentPart, EmbeddedResourcePart


@pytest.mark.parametrize(
    ("sentence", "is_about_asking"),
    [
        (
            "elicitation via server-initiated requests is unavailable on 2026-07-28 connections.",
            True,
        ),
        ("Error executing tool ask: the request has no back-channel", True),
        ("the disk is full", False),
    ],
)
def test_a_tool_that_cannot_ask_is_told_as_such(sentence: str, is_about_asking: bool) -> None:
    """REL-1605: FastMCP and the SDK make it an error of the tool; whoever manages the server is offered the switch."""
    result = mcp_types.CallToolResult(
        content=[mcp_types.TextContent(type="text", text=sentence)], is_error=True
    )
    outcome = read_result(
        result, workspace_id=uuid4(), limit_bytes=1000, output_schema=None, duration_ms=1
    )
    assert (outcome.details.get("kind") == "asks_back") is is_about_asking
    assert (outcome.message == ASKS_BACK) is is_about_asking


def embedded(mime_type: str | None, data: bytes) -> ContentPart:
    """What becomes of a file that a tool gives as bytes."""
    blob = mcp_types.BlobResourceContents(
        uri="made://file", mime_type=mime_type, blob=base64.b64encode(data).decode()
    )
    result = mcp_types.CallToolResult(
        content=[mcp_types.EmbeddedResource(type="resource", resource=blob)]
    )
    outcome = read_result(
        result, workspace_id=uuid4(), limit_bytes=1000, output_schema=None, duration_ms=1
    )
    (part,) = outcome.content
    return part


@pytest.mark.parametrize(
    "mime_type",
    [
        "text/csv",
        "text/csv; charset=utf-8",
        "Text/Markdown",
        "application/json",
        "application/geo+json",
        "image/svg+xml",
        "application/csv",
    ],
)
def test_text_that_a_tool_gives_as_bytes_is_text(mime_type: str) -> None:
    """REL-2111: FastMCP gives every file as bytes; the model and the person read what is text."""
    part = embedded(mime_type, "a,b\n1,ü\n".encode())
    assert part == EmbeddedResourcePart(uri="made://file", mime_type=mime_type, text="a,b\n1,ü\n")


@pytest.mark.parametrize(
    ("mime_type", "data"),
    [
        ("application/pdf", b"%PDF-1.7"),
        ("text/csv", b"\xff\xfe\x00"),
        ("text/plain", b"a\x00b"),
        (None, b"a,b"),
    ],
)
def test_bytes_that_are_no_text_stay_bytes(mime_type: str | None, data: bytes) -> None:
    """REL-2111: neither another kind, nor what only claims to be text."""
    part = embedded(mime_type, data)
    assert isinstance(part, EmbeddedResourcePart)
    assert part.text is None
    assert part.data == base64.b64encode(data).decode()


def test_sound_that_a_tool_gives_as_a_file_can_be_heard() -> None:
    """REL-2111: as a picture among a tool's files is a picture."""
    data = base64.b64encode(b"RIFF").decode()
    assert embedded("audio/wav", b"RIFF") == AudioPart(mime_type="audio/wav", data=data)


def test_sound_that_does_not_fit_beside_the_rest_is_kept_as_a_file() -> None:
    """REL-2111: nothing is cut then, so nobody is told that something was."""
    blob = base64.b64encode(b"RIFF" * 40).decode()
    contents = mcp_types.BlobResourceContents(uri="made://a", mime_type="audio/wav", blob=blob)
    result = mcp_types.CallToolResult(
        content=[
            mcp_types.TextContent(type="text", text="x" * 900),
            mcp_types.EmbeddedResource(type="resource", resource=contents),
        ]
    )
    outcome = read_result(
        result, workspace_id=uuid4(), limit_bytes=1000, output_schema=None, duration_ms=1
    )
    assert outcome.content[1] == EmbeddedResourcePart(
        uri="made://a", mime_type="audio/wav", data=blob
    )
    assert not outcome.truncated
