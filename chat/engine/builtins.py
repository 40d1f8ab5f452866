"""Calls of built-in tools within a turn: each through the gate, as itself or as the server's tool that it stands for."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from django.utils.translation import gettext_noop as _

from audit.actions import Outcome
from audit.services import Ref
from chat.artifacts.calls import READERS, run_builtin, saved_outcome, version_asked_for
from chat.artifacts.meaning import KnowledgeQuery
from chat.artifacts.readings import is_converted, read_version
from chat.artifacts.transfers import arguments_for_gate, keep_received, pin
from chat.engine.counting import count_beside, turn_payer
from chat.engine.leases import Lease
from chat.engine.requests import builtin_request, request_to_send
from chat.engine.rows import fetch_call, held_turn
from chat.engine.trust import may_read_resource
from chat.engine.turn_cache import TurnContext
from chat.models import ToolCall
from chat.providers.base import ProviderSpec, TokenCount
from chat.providers.known_models import embedding_prices
from chat.tools.builtin import on_demand
from chat.tools.builtin.files import RESOURCE, SPEC_OF, TRANSFERS, is_sending
from chat.tools.toolset import resolve_toolset
from chat.values import BuiltinTool
from mcp_servers.client.schemas import check_arguments
from mcp_servers.client.values import ResourceRequest, TextPart, ToolCallOutcome, ToolCallRequest
from mcp_servers.gate import (
    BuiltinRequest,
    Caller,
    call_builtin,
    call_tool,
    read_resource,
    refuse_builtin,
)
from mcp_servers.registry.consent.policy import OUTSIDE_WAS_READ
from workspaces.database import in_database
from workspaces.errors import DomainError


async def call_built_in(
    lease: Lease, call: ToolCall, task: TurnContext, caller: Caller
) -> ToolCallOutcome:
    """Run a built-in tool.

    Raises:
        As gate.call_tool() and gate.call_builtin().
    """
    request = builtin_request(call, task.turn, task.bud, task.actor)
    if call.builtin in on_demand.SPEC_OF:
        return await call_builtin(request, partial(_look_up, call, task))
    if call.builtin not in TRANSFERS:
        if call.builtin == BuiltinTool.SEARCH_KNOWLEDGE:
            return await _search(call, task, request)
        if call.builtin in READERS:
            await _read_first(call, task)
        run = partial(run_builtin, call, task.turn.conversation, task.bud, task.actor)
        return await call_builtin(request, run)
    call = await in_database(_prepare, lease, call, task, request)
    outcome = await _transfer(call, task, caller)
    if is_sending(call) or outcome.is_error:
        return outcome
    return await in_database(_keep, call, task, outcome)


async def _search(call: ToolCall, task: TurnContext, request: BuiltinRequest) -> ToolCallOutcome:
    """Search the bud's files by words, and by meaning where they were prepared for that."""
    payer = turn_payer(task.turn, task.bud, task.actor, "search of knowledge files")
    sought = KnowledgeQuery(task.bud, str(call.arguments.get("query")), payer)
    run = partial(run_builtin, call, task.turn.conversation, task.bud, task.actor, sought)
    outcome = await call_builtin(request, run, first=sought.ask)
    if sought.spec is not None and sought.usage.prompt:
        await in_database(_count_search, task, sought.spec, sought.usage)
    return outcome


def _count_search(task: TurnContext, spec: ProviderSpec, usage: TokenCount) -> None:
    prices = embedding_prices(task.turn.workspace_id, spec)
    count_beside(task.turn.workspace_id, task.turn.conversation_id, usage, prices)


async def _read_first(call: ToolCall, task: TurnContext) -> None:
    """Have a document's text at hand before the call that asks for it; what is wrong with it the call will tell."""
    with suppress(DomainError):
        check_arguments(SPEC_OF[call.builtin].input_schema, call.arguments)
        version = await in_database(version_asked_for, call, task.turn.conversation)
        if is_converted(version):
            await read_version(call.workspace_id, version.pk)


def _look_up(call: ToolCall, task: TurnContext) -> ToolCallOutcome:
    """Tell what servers and tools there are for this turn."""
    toolset = resolve_toolset(task.bud, task.turn.conversation)
    if call.builtin == BuiltinTool.MCP_LIST_SERVERS:
        text = on_demand.list_servers(toolset.of_servers)
    else:
        text = on_demand.list_tools(toolset.of_servers, call.arguments, toolset.notes_on_demand)
    return ToolCallOutcome(outcome=Outcome.OK, content=(TextPart(text=text),))


def _prepare(lease: Lease, call: ToolCall, task: TurnContext, request: BuiltinRequest) -> ToolCall:
    """Settle what is sent, and keep it in the row before anybody is asked."""
    if not task.bud.makes_artifacts:
        refuse_builtin(request, _("This assistant makes no files."))
    if call.tool_id is None and not may_read_resource(call, task.turn, task.bud):
        refuse_builtin(
            request,
            _(
                "This address could carry data out, and %(source)s. Only addresses that the server has"
                " named can be read now. Ask the user to name the address or the server."
            )
            % {"source": task.turn.untrusted_source or OUTSIDE_WAS_READ},
        )
    if call.artifact is not None or not is_sending(call):
        return call
    try:
        with held_turn(lease) as (changes, _turn):
            row = fetch_call(lease.workspace_id, call.pk)
            row.artifact = pin(row, task.turn.conversation)
            row.save(update_fields=["artifact", "updated_at"])
            changes.tool_call(row)
    except DomainError as error:
        refuse_builtin(request, error.message)
    return row


async def _transfer(call: ToolCall, task: TurnContext, caller: Caller) -> ToolCallOutcome:
    if call.tool_id is not None:
        return await call_tool(await in_database(_server_request, call, task), caller=caller)
    assert call.server_id is not None
    assert call.tool_name == RESOURCE
    read = await read_resource(
        ResourceRequest(
            call_id=call.pk,
            workspace_id=call.workspace_id,
            server_id=call.server_id,
            uri=str(call.arguments["resource"]),
            actor=task.actor,
            bud=Ref(id=task.bud.pk, name=task.bud.name),
            conversation_id=task.turn.conversation_id,
            turn_id=task.turn.pk,
        ),
        caller=caller,
    )
    return ToolCallOutcome(
        outcome=read.outcome,
        content=read.content,
        message=read.message,
        duration_ms=read.duration_ms,
        truncated=read.truncated,
        details=read.details,
    )


def _server_request(call: ToolCall, task: TurnContext) -> ToolCallRequest:
    """The call of the server's tool, with the content of the file in it."""
    request = request_to_send(call, task.turn, task.bud, task.actor)
    return replace(request, arguments=arguments_for_gate(call))


def _keep(call: ToolCall, task: TurnContext, outcome: ToolCallOutcome) -> ToolCallOutcome:
    """What the server gave becomes a file, and the model reads only that it did."""
    nothing: dict[str, Any] = {"content": (), "structured": None, "truncated": False}
    if outcome.truncated:
        message = "The result is larger than this server's results may be, and was not saved."
        return replace(outcome, outcome=Outcome.TOOL_ERROR, message=message, **nothing)
    try:
        saved = keep_received(
            call,
            task.turn.conversation,
            task.actor,
            content=outcome.content,
            structured=outcome.structured,
        )
    except DomainError as error:
        return replace(outcome, outcome=Outcome.TOOL_ERROR, message=error.message, **nothing)
    made = saved_outcome(saved, verb="Saved")
    return replace(
        outcome,
        **{**nothing, "content": made.content},
        details={**outcome.details, **made.details},
    )
