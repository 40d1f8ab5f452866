"""A call of a client, through the gate, and its outcome as the protocol tells it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types
from mcp.shared.exceptions import MCPError
from uuid_utils.compat import uuid7

from audit.actions import Action, Outcome
from mcp_servers.client.errors import (
    ApprovalMissing,
    ChangesRefused,
    InputMissing,
    ToolNotFound,
)
from mcp_servers.client.hidden_text import strip_hidden_json
from mcp_servers.client.results import REPORTED
from mcp_servers.client.values import ToolCallOutcome, ToolCallRequest
from mcp_servers.endpoint.asking import (
    UNFIT,
    InputReply,
    NoOpenQuestion,
    PausingCaller,
    ask,
    take_up,
)
from mcp_servers.endpoint.content import as_block, as_text, readable
from mcp_servers.endpoint.offering import ASKS, find
from mcp_servers.endpoint.unknown_names import find_unoffered, tell_unknown
from mcp_servers.gate import UNASKED, call_tool, refuse_unoffered
from workspaces.database import in_database
from workspaces.errors import Conflict, DomainError

if TYPE_CHECKING:
    from mcp_servers.client.values import Progress
    from mcp_servers.endpoint.callers import EndpointCaller
    from mcp_servers.endpoint.offering import FoundTool

NOBODY_ASKED: Final = "The tool asked a question that Trellis cannot put to a person in this MCP client. In a chat of Trellis it can."
"""For models, so in English."""


async def call(
    caller: EndpointCaller,
    name: str,
    arguments: Mapping[str, Any],
    *,
    on_progress: Callable[[Progress], None],
    revision: str,
    can_be_asked: bool = False,
    reply: InputReply | None = None,
) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
    """Call the tool that the client knows by this name. What a rule or the server refuses is a result with an error.

    Args:
        on_progress: hears how far the tool is. Must not block.
        revision: of the protocol, that the client speaks.
        can_be_asked: the client puts questions of servers to its person, and makes the call again with the answers.
        reply: those answers.

    Raises:
        MCPError: no tool has this name, or the answers belong to no open question.
        ChangesRefused: the client's token allows it only tools that just read.
    """
    found = await in_database(find, caller, name)
    if found is None:
        return await in_database(_refuse, caller, name, arguments)
    aside, call_id, checkpoint = PausingCaller(on_progress), uuid7(), None
    try:
        if reply is not None:
            taken_up = await in_database(take_up, caller, found.tool_id, arguments, reply)
            call_id, checkpoint = taken_up.call_id, taken_up.checkpoint
        request = ToolCallRequest(
            call_id=call_id,
            workspace_id=caller.workspace_id,
            tool_id=found.tool_id,
            arguments=arguments,
            actor=caller.actor,
            offered_definition_hash=found.definition_hash,
            reads_only=caller.reads_only,
            can_wait_elsewhere=can_be_asked,
            checkpoint=checkpoint,
        )
        return as_wire(await call_tool(request, caller=aside), found, revision)
    except InputMissing:
        return await in_database(ask, caller, found.tool_id, arguments, call_id, aside.kept)
    except NoOpenQuestion as error:
        raise MCPError(mcp_types.INVALID_PARAMS, UNFIT) from error
    except ChangesRefused:
        raise
    except ApprovalMissing as error:
        return _refused(f"{error.message} {ASKS}")
    except (ToolNotFound, Conflict) as error:
        raise MCPError(mcp_types.INVALID_PARAMS, error.message) from error
    except DomainError as error:
        return _refused(_message_of(error))


def _refuse(
    caller: EndpointCaller, name: str, arguments: Mapping[str, Any]
) -> mcp_types.CallToolResult:
    """Refuse a call of what the client is not offered, on record: with the reason, if it is a tool that its person may know of."""
    tool_id = find_unoffered(caller, name)
    try:
        if tool_id is None:
            tell_unknown(caller, Action.TOOL_CALL_REFUSED, name)
            raise _unknown(name)
        refuse_unoffered(
            ToolCallRequest(
                call_id=uuid7(),
                workspace_id=caller.workspace_id,
                tool_id=tool_id,
                arguments=arguments,
                actor=caller.actor,
            )
        )
    except ToolNotFound as error:
        raise _unknown(name) from error
    except DomainError as error:
        return _refused(_message_of(error))


def _unknown(name: str) -> MCPError:
    return MCPError(mcp_types.INVALID_PARAMS, f"Unknown tool: {name[:200]}")


def as_wire(outcome: ToolCallOutcome, found: FoundTool, revision: str) -> mcp_types.CallToolResult:
    """An outcome as `tools/call` answers it."""
    blocks = [as_block(part, found.server_id, found.addresses) for part in outcome.content]
    content = [readable(block, revision) for block in blocks]
    if outcome.message and not (outcome.message == REPORTED and content):
        content.insert(0, as_text(outcome.message))
    if outcome.truncated:
        content.append(as_text("The rest of this result was cut off."))
    if UNASKED in outcome.details:
        content.append(as_text(NOBODY_ASKED))
    structured = None
    if isinstance(outcome.structured, dict):
        structured = strip_hidden_json(outcome.structured)
    return mcp_types.CallToolResult(
        content=content,
        structured_content=structured,
        is_error=outcome.outcome is not Outcome.OK,
    )


def _refused(message: str) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult(content=[as_text(message)], is_error=True)


def _message_of(error: DomainError) -> str:
    """An error with what is wrong at each field."""
    fields = getattr(error, "fields", None) or {}
    faults = [f"{name}: {' '.join(words)}" for name, words in fields.items()]
    return " ".join([error.message, *faults])
