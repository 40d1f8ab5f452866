"""Reads the lists of a server: all pages, within bounds, and only those it says it has."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext_noop as _

from mcp_servers.client.connections.facts import RawItem, ServerListing
from mcp_servers.client.connections.failures import CallFailed, RpcError, in_words_of_server
from mcp_servers.client.errors import ConnectionFailed, ConnectTimedOut, NotAnMcpServer
from mcp_servers.client.sdk import mcp_types
from mcp_servers.client.self_description import clean_offers

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from mcp.client.session import ClientSession

    from mcp_servers.client.connections.connection import Connection

MAX_LIST_PAGES: Final = 50
"""Of each list."""
MAX_TOOLS: Final = 2000
MAX_RESOURCES: Final = 5000
MAX_PROMPTS: Final = 1000
LIST_SECONDS: Final = 30.0
"""For all pages of all lists together."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """One of a server's lists."""

    method: str
    words: str
    most: int
    types: Callable[[], tuple[type[mcp_types.PaginatedRequest], type[mcp_types.CacheableResult]]]
    """Of its request and its result."""


_TOOLS: Final = _Kind(
    "tools/list", "tool", MAX_TOOLS, lambda: (mcp_types.ListToolsRequest, mcp_types.ListToolsResult)
)
_RESOURCES: Final = _Kind(
    "resources/list",
    "resource",
    MAX_RESOURCES,
    lambda: (mcp_types.ListResourcesRequest, mcp_types.ListResourcesResult),
)
_TEMPLATES: Final = _Kind(
    "resources/templates/list",
    "resource template",
    MAX_RESOURCES,
    lambda: (mcp_types.ListResourceTemplatesRequest, mcp_types.ListResourceTemplatesResult),
)
_PROMPTS: Final = _Kind(
    "prompts/list",
    "prompt",
    MAX_PROMPTS,
    lambda: (mcp_types.ListPromptsRequest, mcp_types.ListPromptsResult),
)


@dataclass(slots=True)
class _Read:
    """One list as far as it was read."""

    items: list[RawItem] = field(default_factory=list)
    warning: str = ""
    ttl_seconds: float = math.inf
    is_public: bool = True


async def read_lists(connection: Connection, *, tools_only: bool = False) -> ServerListing:
    """Everything a server offers, as it sends it.

    A server whose tools cannot be read has no list. One whose resources or prompts cannot be read has its tools, and
    a warning.

    Raises:
        ConnectionFailed: the list of tools did not come, or is none.
        CallFailed: the connection was lost.
    """
    started = time.monotonic()
    assert connection.facts is not None
    capabilities = connection.facts.capabilities
    unread: set[str] = set()
    others: dict[str, _Read] = {}
    try:
        async with asyncio.timeout(LIST_SECONDS), connection.list_lock:
            tools = await _read_tools(connection, capabilities)
            for name, kind, capability in (
                ("resources", _RESOURCES, "resources"),
                ("resource_templates", _TEMPLATES, "resources"),
                ("prompts", _PROMPTS, "prompts"),
            ):
                if tools_only or capability not in capabilities:
                    continue
                others[name] = await _read_other(connection, kind)
                if others[name].warning.startswith("The server did not"):
                    unread.add(name)
    except TimeoutError as error:
        raise ConnectTimedOut(_("The server did not list its tools in time.")) from error
    reads = [tools, *others.values()]
    # In a thread, because lists may be long.
    await asyncio.to_thread(_clean, reads, connection.spec.workspace_id)
    ttl = min(read.ttl_seconds for read in reads)
    return ServerListing(
        facts=connection.facts,
        tools=tuple(tools.items),
        resources=tuple(others["resources"].items) if "resources" in others else (),
        resource_templates=tuple(others["resource_templates"].items)
        if "resource_templates" in others
        else (),
        prompts=tuple(others["prompts"].items) if "prompts" in others else (),
        warning=tools.warning,
        warnings=tuple(read.warning for read in reads if read.warning),
        unread=frozenset(unread),
        ttl_seconds=None if math.isinf(ttl) else ttl,
        cache_scope="public" if all(read.is_public for read in reads) else "private",
        latency_ms=round((time.monotonic() - started) * 1000),
    )


def _clean(reads: list[_Read], workspace_id: UUID) -> None:
    """Take secrets of the workspace out of what the server says about itself."""
    for read in reads:
        read.items, left_out = clean_offers(read.items, workspace_id)
        if left_out:
            read.warning = f"{read.warning} {left_out} left out: the name holds a secret.".strip()


async def _read_tools(connection: Connection, capabilities: dict[str, Any]) -> _Read:
    if "tools" not in capabilities:
        return _Read(warning="The server offers no tools.")
    try:
        return await _read_pages(connection, _TOOLS)
    except CallFailed as failure:
        if failure.kind == "unreadable":
            raise NotAnMcpServer(
                _("The server's tool list does not follow the protocol.")
            ) from failure
        raise
    except RpcError as error:
        if error.rpc_code == mcp_types.METHOD_NOT_FOUND:
            return _Read(warning="The server offers no tools.")
        raise _did_not_list(error) from error


def _did_not_list(error: RpcError) -> ConnectionFailed:
    """That there is no list of tools; those who manage the server read what it said."""
    failure = ConnectionFailed(_("The server did not list its tools."))
    failure.advice = in_words_of_server(error.message)
    return failure


async def _read_other(connection: Connection, kind: _Kind) -> _Read:
    """One of the lists that a server can do without."""
    try:
        return await _read_pages(connection, kind)
    except RpcError as error:
        if error.rpc_code == mcp_types.METHOD_NOT_FOUND:
            return _Read()
        return _Read(warning=f"The server did not list its {kind.words}s.")
    except CallFailed as failure:
        if failure.kind in ("broken", "closed", "session_lost", "session_refused", "unreachable"):
            raise
        return _Read(warning=f"The server did not list its {kind.words}s.")


async def _read_pages(connection: Connection, kind: _Kind) -> _Read:
    read = _Read()
    seen: set[str] = set()
    cursor: str | None = None
    for _page in range(MAX_LIST_PAGES):
        result = await _read_page(connection, kind, cursor)
        read.items.extend(connection.tap.page)
        if _says_how_long(result):
            read.ttl_seconds = min(read.ttl_seconds, result.ttl_ms / 1000)
            read.is_public = read.is_public and result.cache_scope == "public"
        else:
            read.is_public = False
        if len(read.items) > kind.most:
            del read.items[kind.most :]
            read.warning = (
                f"The server offers more than {kind.most} {kind.words}s; the rest is left out."
            )
            return read
        cursor = getattr(result, "next_cursor", None)
        if not cursor:
            return read
        if cursor in seen:
            read.warning = f"The server's {kind.words} list turns in a circle; it was cut there."
            return read
        seen.add(cursor)
    read.warning = f"The server's {kind.words} list has more than {MAX_LIST_PAGES} pages; the rest is left out."
    return read


def _says_how_long(result: mcp_types.CacheableResult) -> bool:
    # Older revisions have no such word, and the SDK takes the fields out of their answers.
    return "ttl_ms" in result.model_fields_set


async def _read_page(
    connection: Connection, kind: _Kind, cursor: str | None
) -> mcp_types.CacheableResult:
    params = mcp_types.PaginatedRequestParams(cursor=cursor)

    async def ask(session: ClientSession) -> mcp_types.CacheableResult:
        if kind is _TOOLS:
            # The session learns from this one which arguments go into headers.
            return await session.list_tools(params=params)
        request, result = kind.types()
        return await session.send_request(request(params=params), result)

    return await connection.request(ask)
