"""Prompts of the servers that a client may use: named as tools are, and fetched through the gate."""

from __future__ import annotations

import logging
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import mcp_types
from mcp.shared.exceptions import MCPError
from uuid_utils.compat import uuid7

from audit.actions import Action
from audit.storable import storable
from mcp_servers.client.connections.completion import complete
from mcp_servers.client.errors import ToolNotFound
from mcp_servers.client.hidden_text import strip_hidden
from mcp_servers.client.tool_names import NamedTool, may_name, name_tools
from mcp_servers.client.values import PromptRequest
from mcp_servers.endpoint.addresses import Addresses
from mcp_servers.endpoint.client_servers import servers_of
from mcp_servers.endpoint.content import as_block, readable
from mcp_servers.endpoint.paging import PAGE, count_fitting
from mcp_servers.endpoint.unknown_names import tell_unknown
from mcp_servers.gate import get_prompt
from mcp_servers.models import McpPrompt, McpResource
from mcp_servers.registry.specs import connection_spec
from workspaces.database import in_database
from workspaces.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_servers.client.spec import ConnectionSpec
    from mcp_servers.endpoint.callers import EndpointCaller
    from mcp_servers.models import McpServer

logger = logging.getLogger(__name__)

CUT_OFF: Final = "The rest of this prompt was cut off."
_LONGEST_BEGUN: Final = 1000
"""Of what somebody has typed so far."""
_MOST_CONTEXT: Final = 50


def list_prompts(caller: EndpointCaller, cursor: str) -> tuple[list[mcp_types.Prompt], str | None]:
    """One page of prompts, by name, and the cursor of the next. Three statements."""
    named = sorted(_name(caller, servers_of(caller)).items())
    start = bisect_right(named, cursor, key=lambda pair: pair[0]) if cursor else 0
    page = named[start : start + PAGE]
    rows = _usable(caller).in_bulk([prompt_id for _name, prompt_id in page])
    page_of_prompts = [
        _as_wire(name, rows[prompt_id]) for name, prompt_id in page if prompt_id in rows
    ]
    fits = count_fitting(page_of_prompts)
    if fits < len(page_of_prompts):
        return page_of_prompts[:fits], page_of_prompts[fits - 1].name
    return page_of_prompts, page[-1][0] if start + PAGE < len(named) else None


async def get(
    caller: EndpointCaller, name: str, arguments: Mapping[str, str], *, revision: str
) -> mcp_types.GetPromptResult:
    """Fetch the prompt that a client knows by this name, filled in by its server, through the gate.

    Raises:
        MCPError: there is none, it may not be used now, an argument is missing or unknown, or its server did not give it.
    Source: MCP specification, "Prompts": Error Handling.
    """
    found = await in_database(_find_for, caller, name)
    if found is None:
        await in_database(tell_unknown, caller, Action.PROMPT_GET_REFUSED, name)
        raise _unknown(name)
    prompt_id, server_id, addresses = found
    request = PromptRequest(
        call_id=uuid7(),
        workspace_id=caller.workspace_id,
        prompt_id=prompt_id,
        arguments=arguments,
        actor=caller.actor,
    )
    try:
        outcome = await get_prompt(request)
    except ToolNotFound as error:
        raise _unknown(name) from error
    except DomainError as error:
        raise MCPError(mcp_types.INVALID_PARAMS, error.message) from error
    if outcome.is_error:
        raise MCPError(mcp_types.INTERNAL_ERROR, outcome.message)
    messages = [
        mcp_types.PromptMessage(
            role="assistant" if message.role == "assistant" else "user",
            content=readable(as_block(message.content, server_id, addresses), revision),
        )
        for message in outcome.messages
    ]
    if outcome.truncated:
        rest = mcp_types.TextContent(type="text", text=CUT_OFF)
        messages.append(mcp_types.PromptMessage(role="user", content=rest))
    return mcp_types.GetPromptResult(
        description=strip_hidden(outcome.description) or None, messages=messages
    )


async def suggest(caller: EndpointCaller, params: mcp_types.CompleteRequestParams) -> list[str]:
    """What a server suggests for an argument of a prompt or template; nothing where it cannot be asked.

    Raises:
        MCPError: there is no such prompt or template.
    Source: MCP specification, "Completion".
    """
    found = await in_database(_find_reference, caller, params.ref)
    if found is None:
        raise MCPError(mcp_types.INVALID_PARAMS, "Unknown prompt or resource template")
    name, spec = found
    if spec is None:
        return []
    filled = (params.context.arguments if params.context else None) or {}
    context = dict(list(filled.items())[:_MOST_CONTEXT])
    try:
        values = await complete(
            spec,
            ref="prompt" if isinstance(params.ref, mcp_types.PromptReference) else "resource",
            name=name,
            argument=params.argument.name[:_LONGEST_BEGUN],
            value=params.argument.value[:_LONGEST_BEGUN],
            context={key: value[:_LONGEST_BEGUN] for key, value in context.items()},
        )
    except (DomainError, TimeoutError) as error:
        # Suggestions are a help and no more: without them one types.
        logger.info("no_suggestions", extra={"reason": str(error)[:200]})
        return []
    return [strip_hidden(text) for text in values]


def _find_for(caller: EndpointCaller, name: str) -> tuple[UUID, UUID, Addresses] | None:
    """The prompt with this name, its server, and how addresses are told. Two statements."""
    servers = servers_of(caller)
    found = _find(caller, servers, name)
    return (found.tool_id, found.server_id, Addresses(servers)) if found is not None else None


def _find(caller: EndpointCaller, servers: Iterable[McpServer], name: str) -> NamedTool | None:
    near = [one for one in servers if may_name(one.name, name)]
    rows = {one.tool_id: one for one in _rows(caller, near)}
    prompt_id = name_tools(rows.values()).get(name)
    return rows[prompt_id] if prompt_id is not None else None


def _find_reference(
    caller: EndpointCaller, ref: mcp_types.PromptReference | mcp_types.ResourceTemplateReference
) -> tuple[str, ConnectionSpec | None] | None:
    """What its server calls it, and what it takes to ask that; no spec: it cannot be asked now."""
    servers = servers_of(caller)
    if isinstance(ref, mcp_types.PromptReference):
        prompt = _find(caller, servers, ref.name)
        if prompt is None:
            return None
        server_id, name = prompt.server_id, prompt.tool_name
    else:
        is_storable = storable(ref.uri) == ref.uri
        meant = Addresses(servers).inward(ref.uri) if is_storable else None
        templates: Any = McpResource.objects.for_workspace(caller.workspace_id).usable()
        templates = templates.filter(is_template=True)
        if meant is None or not templates.filter(**meant._asdict()).exists():
            return None
        server_id, name = meant
    server = next(one for one in servers if one.pk == server_id)
    try:
        spec = connection_spec(server, user_id=caller.user_id)
    except DomainError:
        return name, None
    return name, None if spec.needs_sign_in else spec


def _name(caller: EndpointCaller, servers: Iterable[McpServer]) -> dict[str, UUID]:
    return name_tools(_rows(caller, servers))


def _rows(caller: EndpointCaller, servers: Iterable[McpServer]) -> list[NamedTool]:
    names = {one.pk: one.name for one in servers}
    if not names:
        return []
    rows = (
        _usable(caller)
        .filter(server_id__in=names)
        .order_by()
        .values_list("server_id", "pk", "name")
    )
    return [
        NamedTool(server_id, names[server_id], prompt_id, name)
        for server_id, prompt_id, name in rows
    ]


def _usable(caller: EndpointCaller) -> Any:
    rows: Any = McpPrompt.objects.for_workspace(caller.workspace_id)
    return rows.usable()


def _as_wire(name: str, row: McpPrompt) -> mcp_types.Prompt:
    """As `prompts/list` tells it. What a server says in hidden characters stays here."""
    return mcp_types.Prompt(
        name=name,
        title=strip_hidden(row.title) or None,
        description=strip_hidden(row.description) or None,
        arguments=[
            mcp_types.PromptArgument(
                name=one["name"],
                title=strip_hidden(str(one.get("title") or "")) or None,
                description=strip_hidden(str(one.get("description") or "")) or None,
                required=one.get("required") is True,
            )
            for one in row.arguments
        ],
    )


def _unknown(name: str) -> MCPError:
    return MCPError(mcp_types.INVALID_PARAMS, f"Unknown prompt: {name[:200]}")
