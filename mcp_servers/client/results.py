"""From the SDK's results of calls, resource reads and prompts to the values that leave this app."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from mcp_servers.client import schemas
from mcp_servers.client.canonical import JsonValue, canonical_json, clean_text
from mcp_servers.client.errors import ASKS_BACK, InvalidJson
from mcp_servers.client.sdk import mcp_types
from mcp_servers.client.values import (
    AudioPart,
    ContentPart,
    EmbeddedResourcePart,
    ImagePart,
    Outcome,
    PromptMessage,
    ResourceLinkPart,
    TextPart,
    ToolCallOutcome,
)
from workspaces.pictures import UnshowablePicture, clean_picture
from workspaces.redaction import redact_known

MAX_PARTS: Final = 200
MAX_PIXELS: Final = 50_000_000
"""Of all pictures of one result."""

_CANNOT_ASK: Final = ("no back-channel", "server-initiated requests is unavailable")
"""What the SDK and FastMCP make a tool say that asks in the old way over a connection of 2026-07-28."""

_AUDIO_TYPES: Final = frozenset(
    f"audio/{kind}"
    for kind in (
        "aac",
        "flac",
        "m4a",
        "mp3",
        "mp4",
        "mpeg",
        "ogg",
        "opus",
        "wav",
        "wave",
        "webm",
        "x-wav",
    )
)


_TEXT_TYPES: Final = frozenset(
    f"application/{kind}"
    for kind in (
        "csv",
        "javascript",
        "json",
        "jsonl",
        "markdown",
        "sql",
        "toml",
        "x-ndjson",
        "x-yaml",
        "xml",
        "yaml",
    )
)
"""Of files that are text although their type does not begin so."""
_TEXT_SUFFIXES: Final = ("+json", "+xml", "+yaml")
REPORTED: Final = "The tool reported an error."
"""What is said of a tool's own error, besides the tool's words."""


@dataclass(slots=True)
class _Budget:
    """How many bytes of content may still be kept."""

    left: int
    workspace_id: UUID
    """Whose secrets it is kept free of."""
    pixels: int = MAX_PIXELS
    """How many points of pictures may still be decoded."""
    files: int = 0
    """How many bytes of binary resources may still be kept; they are no part of what is shown."""
    is_exceeded: bool = False

    def __post_init__(self) -> None:
        self.files = self.left

    def file(self, data: str) -> str | None:
        """Base64 that fits and is sound."""
        if len(data) > self.files or not _is_base64(data):
            return None
        self.files -= len(data)
        return data

    def text(self, text: str) -> str:
        raw = str(redact_known(clean_text(text), workspace_id=self.workspace_id)).encode()
        if len(raw) > self.left:
            self.is_exceeded = True
            raw = raw[: self.left]
        self.left -= len(raw)
        return raw.decode(errors="ignore")

    def whole(self, text: str) -> str | None:
        """The text if all of it fits: half an image is none."""
        if len(text) > self.left:
            self.is_exceeded = True
            return None
        self.left -= len(text)
        return text


def read_result(
    result: mcp_types.CallToolResult,
    *,
    workspace_id: UUID,
    limit_bytes: int,
    output_schema: dict[str, Any] | None,
    duration_ms: int,
) -> ToolCallOutcome:
    """Turn a result into an outcome within a size limit; what the tool calls an error is an outcome, too."""
    budget = _Budget(limit_bytes, workspace_id)
    parts = [
        part for block in result.content[:MAX_PARTS] if (part := _part(block, budget)) is not None
    ]
    if len(result.content) > MAX_PARTS:
        budget.is_exceeded = True
    structured, details = _structured(result, budget, output_schema)
    message = ""
    if result.is_error:
        message = REPORTED
        if any(
            words in part.text
            for part in parts
            if isinstance(part, TextPart)
            for words in _CANNOT_ASK
        ):
            message, details = ASKS_BACK, {**details, "kind": "asks_back"}
    return ToolCallOutcome(
        outcome=Outcome.TOOL_ERROR if result.is_error else Outcome.OK,
        content=tuple(parts),
        structured=structured,
        message=message,
        duration_ms=duration_ms,
        truncated=budget.is_exceeded,
        details=details,
    )


_MOST_TEXT_AT_ONCE: Final = 64 * 1024


def is_heavy(result: mcp_types.CallToolResult) -> bool:
    """Whether reading it takes long enough to keep an event loop waiting."""
    texts = (block.text for block in result.content if isinstance(block, mcp_types.TextContent))
    return (
        not schemas.is_short(result.structured_content)
        or sum(map(len, texts)) > _MOST_TEXT_AT_ONCE
        or any(
            isinstance(block, mcp_types.ImageContent | mcp_types.EmbeddedResource)
            for block in result.content
        )
    )


def read_contents(
    result: mcp_types.ReadResourceResult, *, workspace_id: UUID, limit_bytes: int
) -> tuple[tuple[ContentPart, ...], bool]:
    """A resource's contents within a size limit, and whether something was cut. May decode pictures: not for a loop."""
    budget = _Budget(limit_bytes, workspace_id)
    parts = [_resource(contents, budget) for contents in result.contents[:MAX_PARTS]]
    return tuple(parts), budget.is_exceeded or len(result.contents) > MAX_PARTS


def read_prompt(
    result: mcp_types.GetPromptResult, *, workspace_id: UUID, limit_bytes: int
) -> tuple[tuple[PromptMessage, ...], bool]:
    """A prompt's messages within a size limit, and whether something was cut. May decode pictures: not for a loop."""
    budget = _Budget(limit_bytes, workspace_id)
    messages = [
        PromptMessage(role=str(message.role), content=part)
        for message in result.messages[:MAX_PARTS]
        if (part := _part(message.content, budget)) is not None
    ]
    return tuple(messages), budget.is_exceeded or len(result.messages) > MAX_PARTS


def _part(block: object, budget: _Budget) -> ContentPart | None:
    if isinstance(block, mcp_types.TextContent):
        return TextPart(text=budget.text(block.text))
    if isinstance(block, mcp_types.ImageContent):
        return _picture(block.data, budget)
    if isinstance(block, mcp_types.AudioContent):
        data = budget.whole(block.data) if _is_base64(block.data) else None
        if data is None or block.mime_type not in _AUDIO_TYPES:
            return TextPart(text="[audio left out: too large, damaged or of an unknown kind]")
        return AudioPart(mime_type=block.mime_type, data=data)
    if isinstance(block, mcp_types.ResourceLink):
        return ResourceLinkPart(
            uri=budget.text(str(block.uri)),
            name=budget.text(block.title or block.name),
            mime_type=budget.text(block.mime_type) if block.mime_type else None,
        )
    if isinstance(block, mcp_types.EmbeddedResource):
        return _resource(block.resource, budget)
    return None


def _resource(
    contents: mcp_types.TextResourceContents | mcp_types.BlobResourceContents, budget: _Budget
) -> ContentPart:
    mime_type = budget.text(contents.mime_type) if contents.mime_type else None
    if isinstance(contents, mcp_types.TextResourceContents):
        text = budget.text(contents.text)
        return EmbeddedResourcePart(
            uri=budget.text(str(contents.uri)), mime_type=mime_type, text=text
        )
    kind = (mime_type or "").partition(";")[0].strip().lower()
    if _is_text(kind) and (words := _words_in(contents.blob)) is not None:
        return EmbeddedResourcePart(
            uri=budget.text(str(contents.uri)), mime_type=mime_type, text=budget.text(words)
        )
    if kind.startswith("image/"):
        return _picture(contents.blob, budget)
    # Where it does not fit beside the rest, it is kept as other files are.
    is_heard = kind in _AUDIO_TYPES and len(contents.blob) <= budget.left
    if is_heard and _is_base64(contents.blob) and (data := budget.whole(contents.blob)):
        return AudioPart(mime_type=kind, data=data)
    return EmbeddedResourcePart(
        uri=budget.text(str(contents.uri)), mime_type=mime_type, data=budget.file(contents.blob)
    )


def _picture(data: str, budget: _Budget) -> ContentPart:
    if len(data) > budget.left:
        budget.is_exceeded = True
        return TextPart(text="[image left out: too large]")
    try:
        picture = clean_picture(data, max_pixels=budget.pixels)
    except UnshowablePicture as error:
        return TextPart(text=f"[image left out: {error}]")
    budget.pixels -= picture.pixels
    kept = budget.whole(picture.data)
    if kept is None:
        return TextPart(text="[image left out: too large]")
    return ImagePart(mime_type=picture.mime_type, data=kept)


def _is_text(kind: str) -> bool:
    return kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(_TEXT_SUFFIXES)


def _words_in(blob: str) -> str | None:
    """A text that was sent as bytes; None where they are none."""
    try:
        words = base64.b64decode(blob, validate=True).decode("utf-8-sig")
    except ValueError:
        return None
    return None if "\0" in words else words


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _structured(
    result: mcp_types.CallToolResult, budget: _Budget, output_schema: dict[str, Any] | None
) -> tuple[JsonValue | None, dict[str, JsonValue]]:
    value = result.structured_content
    if value is None:
        return None, {}
    try:
        size = len(canonical_json(value))
    except InvalidJson:
        return None, {"structured": "unreadable"}
    if size > budget.left:
        budget.is_exceeded = True
        return None, {"structured": "too_large"}
    if output_schema and not result.is_error and not schemas.fits(output_schema, value):
        # The tool has run; what it says in words still counts.
        return None, {"structured": "does not fit the output schema"}
    budget.left -= size
    return redact_known(value, workspace_id=budget.workspace_id), {}
