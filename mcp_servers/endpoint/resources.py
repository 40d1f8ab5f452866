"""Resources of the servers that a client may use: listed from our rows, and read through the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import mcp_types
import mcp_types.version
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from uuid_utils.compat import uuid7

from audit.actions import Action
from mcp_servers.client.errors import ToolNotFound
from mcp_servers.client.hidden_text import strip_hidden
from mcp_servers.client.values import (
    AudioPart,
    EmbeddedResourcePart,
    ImagePart,
    ResourceLinkPart,
    ResourceRequest,
    TextPart,
)
from mcp_servers.endpoint.addresses import Addresses
from mcp_servers.endpoint.client_servers import servers_of
from mcp_servers.endpoint.paging import count_fitting, cursor_after, rows_after
from mcp_servers.endpoint.unknown_names import tell_unknown
from mcp_servers.gate import read_resource
from mcp_servers.models import McpResource
from workspaces.database import in_database
from workspaces.errors import DomainError

if TYPE_CHECKING:
    from mcp_servers.client.values import ContentPart
    from mcp_servers.endpoint.addresses import Address
    from mcp_servers.endpoint.callers import EndpointCaller

Entry = TypeVar("Entry", mcp_types.Resource, mcp_types.ResourceTemplate)

NOT_FOUND_BEFORE: Final = -32002
"""The code of revisions before 2026-07-28; that one has invalid parameters instead."""
CUT_OFF: Final = "The rest of this resource was cut off."
NOT_GIVEN: Final = "This content is too large or damaged, and is left out."


def list_resources(
    caller: EndpointCaller, cursor: str
) -> tuple[list[mcp_types.Resource], str | None]:
    """One page of what may be read, and the cursor of the next. Two statements."""
    addresses, rows, following = _page(caller, cursor, is_template=False)
    listed = [
        mcp_types.Resource(
            uri=addresses.outward(row.server_id, row.uri), size=row.size, **_about(row)
        )
        for row in rows
    ]
    return _fitting(listed, rows, following)


def list_templates(
    caller: EndpointCaller, cursor: str
) -> tuple[list[mcp_types.ResourceTemplate], str | None]:
    """One page of templates for addresses, and the cursor of the next. Two statements."""
    addresses, rows, following = _page(caller, cursor, is_template=True)
    listed = [
        mcp_types.ResourceTemplate(
            uri_template=addresses.outward(row.server_id, row.uri), **_about(row)
        )
        for row in rows
    ]
    return _fitting(listed, rows, following)


async def read(
    caller: EndpointCaller, address: str, *, revision: str
) -> mcp_types.ReadResourceResult:
    """Read what a client means by this address, through the gate.

    Raises:
        MCPError: there is none, it may not be read now, or its server did not give it.
    Source: MCP specification, "Resources": Error Handling.
    """
    addresses, meant = await in_database(_find, caller, address)
    if meant is None:
        await in_database(tell_unknown, caller, Action.RESOURCE_READ_REFUSED, address)
        raise _not_found(address, revision)
    request = ResourceRequest(
        call_id=uuid7(),
        workspace_id=caller.workspace_id,
        server_id=meant.server_id,
        uri=meant.uri,
        actor=caller.actor,
    )
    try:
        outcome = await read_resource(request)
    except ToolNotFound as error:
        raise _not_found(address, revision) from error
    except DomainError as error:
        raise MCPError(mcp_types.INVALID_REQUEST, error.message) from error
    if outcome.details.get("rpc_code") in (NOT_FOUND_BEFORE, mcp_types.INVALID_PARAMS):
        raise _not_found(address, revision)
    if outcome.is_error:
        raise MCPError(mcp_types.INTERNAL_ERROR, outcome.message)
    contents = [_content(part, meant, addresses) for part in outcome.content]
    if outcome.truncated:
        contents.append(mcp_types.TextResourceContents(uri=address, text=CUT_OFF))
    return mcp_types.ReadResourceResult(contents=contents)


def _page(
    caller: EndpointCaller, cursor: str, *, is_template: bool
) -> tuple[Addresses, list[McpResource], str | None]:
    servers = servers_of(caller)
    rows: Any = McpResource.objects.for_workspace(caller.workspace_id).usable()
    rows = rows.filter(server_id__in=[one.pk for one in servers], is_template=is_template)
    page, following = rows_after(rows, cursor)
    return Addresses(servers), list(page), following


def _fitting(
    listed: list[Entry], rows: list[McpResource], following: str | None
) -> tuple[list[Entry], str | None]:
    """As many as one answer holds, and where the next one goes on."""
    fits = count_fitting(listed)
    return listed[:fits], following if fits == len(listed) else cursor_after(rows[fits - 1])


def _find(caller: EndpointCaller, address: str) -> tuple[Addresses, Address | None]:
    addresses = Addresses(servers_of(caller))
    return addresses, addresses.inward(address)


def _about(row: McpResource) -> dict[str, Any]:
    """What lists tell of a resource or template. What a server says in hidden characters stays here."""
    return {
        "name": strip_hidden(row.name) or row.uri,
        "title": strip_hidden(row.title) or None,
        "description": strip_hidden(row.description) or None,
        "mime_type": row.mime_type or None,
        "annotations": _annotations(row.annotations),
    }


def _annotations(stored: Any) -> mcp_types.Annotations | None:
    """As the server gave them, if they are as the protocol has them."""
    try:
        return mcp_types.Annotations.model_validate(stored) if stored else None
    except ValidationError:
        return None


def _content(
    part: ContentPart, meant: Address, addresses: Addresses
) -> mcp_types.TextResourceContents | mcp_types.BlobResourceContents:
    """One part of what was read, as the protocol has it: text without what people do not see, everything else in base64."""
    own = addresses.outward(*meant)
    match part:
        case ImagePart() | AudioPart():
            return mcp_types.BlobResourceContents(uri=own, mime_type=part.mime_type, blob=part.data)
        case EmbeddedResourcePart(text=None):
            uri = addresses.outward(meant.server_id, part.uri)
            if part.data is None:
                return mcp_types.TextResourceContents(uri=uri, text=NOT_GIVEN)
            return mcp_types.BlobResourceContents(uri=uri, mime_type=part.mime_type, blob=part.data)
        case EmbeddedResourcePart():
            uri = addresses.outward(meant.server_id, part.uri)
            return mcp_types.TextResourceContents(
                uri=uri, mime_type=part.mime_type, text=strip_hidden(part.text or "")
            )
        case TextPart():
            return mcp_types.TextResourceContents(uri=own, text=strip_hidden(part.text))
        case ResourceLinkPart():
            return mcp_types.TextResourceContents(uri=own, text=part.uri)


def _not_found(address: str, revision: str) -> MCPError:
    is_of_today = revision in mcp_types.version.MODERN_PROTOCOL_VERSIONS
    code = mcp_types.INVALID_PARAMS if is_of_today else NOT_FOUND_BEFORE
    return MCPError(code, "Resource not found", {"uri": address[:2048]})
