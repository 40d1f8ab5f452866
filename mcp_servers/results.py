"""From the SDK's result of a call to the values that leave this app. Pure."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any, Final

import mcp_types

from mcp_servers import schemas
from mcp_servers.canonical import JsonValue, canonical_json, clean_text
from mcp_servers.errors import InvalidJson
from mcp_servers.values import (
    AudioPart,
    ContentPart,
    EmbeddedResourcePart,
    ImagePart,
    Outcome,
    ResourceLinkPart,
    TextPart,
    ToolCallOutcome,
)

MAX_PARTS: Final = 200


@dataclass(slots=True)
class _Budget:
    """How many bytes of content may still be kept."""

    left: int
    is_exceeded: bool = False

    def text(self, text: str) -> str:
        raw = clean_text(text).encode()
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
    limit_bytes: int,
    output_schema: dict[str, Any] | None,
    duration_ms: int,
) -> ToolCallOutcome:
    """Turn a result into an outcome within a size limit; what the tool calls an error is an outcome, too."""
    budget = _Budget(limit_bytes)
    parts = [
        part for block in result.content[:MAX_PARTS] if (part := _part(block, budget)) is not None
    ]
    if len(result.content) > MAX_PARTS:
        budget.is_exceeded = True
    structured, details = _structured(result, budget, output_schema)
    message = ""
    if result.is_error:
        message = "The tool reported an error."
    return ToolCallOutcome(
        outcome=Outcome.TOOL_ERROR if result.is_error else Outcome.OK,
        content=tuple(parts),
        structured=structured,
        message=message,
        duration_ms=duration_ms,
        truncated=budget.is_exceeded,
        details=details,
    )


def _part(block: object, budget: _Budget) -> ContentPart | None:
    if isinstance(block, mcp_types.TextContent):
        return TextPart(text=budget.text(block.text))
    if isinstance(block, mcp_types.ImageContent | mcp_types.AudioContent):
        data = budget.whole(block.data) if _is_base64(block.data) else None
        if data is None:
            return TextPart(text=f"[{block.type} left out: too large or damaged]")
        kind = ImagePart if isinstance(block, mcp_types.ImageContent) else AudioPart
        return kind(mime_type=budget.text(block.mime_type), data=data)
    if isinstance(block, mcp_types.ResourceLink):
        return ResourceLinkPart(
            uri=budget.text(str(block.uri)),
            name=budget.text(block.title or block.name),
            mime_type=budget.text(block.mime_type) if block.mime_type else None,
        )
    if isinstance(block, mcp_types.EmbeddedResource):
        resource = block.resource
        text = resource.text if isinstance(resource, mcp_types.TextResourceContents) else None
        return EmbeddedResourcePart(
            uri=budget.text(str(resource.uri)),
            mime_type=budget.text(resource.mime_type) if resource.mime_type else None,
            text=budget.text(text) if text is not None else None,
        )
    return None


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
    return value, {}
