"""Parts of results and prompts, as the protocol tells them: for a model, so without what people do not see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

import mcp_types

from mcp_servers.client.hidden_text import strip_hidden
from mcp_servers.client.values import (
    AudioPart,
    ContentPart,
    EmbeddedResourcePart,
    ImagePart,
    ResourceLinkPart,
    TextPart,
)

if TYPE_CHECKING:
    from mcp_servers.endpoint.addresses import Addresses

_FIRST_WITH_LINKS: Final = "2025-06-18"


def as_block(part: ContentPart, server_id: UUID, addresses: Addresses) -> mcp_types.ContentBlock:
    """A part that came from this server, with the addresses that the client can read."""
    match part:
        case ImagePart():
            return mcp_types.ImageContent(type="image", data=part.data, mime_type=part.mime_type)
        case AudioPart():
            return mcp_types.AudioContent(type="audio", data=part.data, mime_type=part.mime_type)
        case ResourceLinkPart():
            return mcp_types.ResourceLink(
                type="resource_link",
                uri=addresses.of_link(server_id, part.uri),
                name=strip_hidden(part.name),
                mime_type=part.mime_type,
            )
        case EmbeddedResourcePart(text=None, data=str() as data):
            uri = addresses.of_link(server_id, part.uri)
            blob = mcp_types.BlobResourceContents(uri=uri, mime_type=part.mime_type, blob=data)
            return mcp_types.EmbeddedResource(type="resource", resource=blob)
        case EmbeddedResourcePart():
            text = mcp_types.TextResourceContents(
                uri=addresses.of_link(server_id, part.uri),
                mime_type=part.mime_type,
                text=strip_hidden(part.text or ""),
            )
            return mcp_types.EmbeddedResource(type="resource", resource=text)
        case TextPart():
            return as_text(part.text)


def readable(block: mcp_types.ContentBlock, revision: str) -> mcp_types.ContentBlock:
    """The block, as a client of this revision can read it: a whole answer is refused for a kind that is not known.

    Source: MCP specification, "Key Changes" of 2025-06-18.
    """
    if isinstance(block, mcp_types.ResourceLink) and revision < _FIRST_WITH_LINKS:
        return as_text(f"{block.name}: {block.uri}")
    return block


def as_text(text: str) -> mcp_types.TextContent:
    """Words."""
    return mcp_types.TextContent(type="text", text=strip_hidden(text))
