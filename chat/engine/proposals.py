"""What the model asks for, looked up in what it was offered; nothing else can be called."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_noop as _

from chat.engine.answers import ProposedCall
from chat.engine.context import LimitReached
from chat.engine.turn_cache import EarlierCalls, Identity
from chat.models import Message, ToolCall, Turn
from chat.providers.base import AskedCall
from chat.providers.errors import BrokenArguments
from chat.tools.builtin.files import TRANSFERS, find_target
from chat.tools.builtin.on_demand import unwrap
from chat.tools.offered import OfferedTool
from chat.tools.toolset import Toolset
from chat.values import BuiltinTool
from mcp_servers.client.canonical import canonical_json, parse_arguments
from mcp_servers.client.errors import InvalidArguments
from workspaces.database.prepared import PreparedRows

MOST_IDENTICAL_STEPS = 3
"""In so many steps of a turn the model may ask for the same call. How often within one step is its own affair."""
MOST_CALLS_IN_STEP = 32
_MOST_SCHEMA = 2_000
_MOST_NAMED = 20


def read_earlier(turn: Turn) -> EarlierCalls:
    """The calls of a turn's earlier steps."""
    calls = _EARLIER_CALLS.all(turn.workspace_id, turn.pk)
    messages = _EARLIER_MESSAGES.all(turn.workspace_id, turn.pk)
    return with_calls(EarlierCalls(Counter()), messages, calls)


def with_calls(
    earlier: EarlierCalls, messages: Iterable[Message], calls: Iterable[ToolCall]
) -> EarlierCalls:
    """The same with the calls of further steps."""
    asked = {
        (
            call.message_id,
            (_name_of(call.function_name, call.tool_id), canonical_json(call.proposed_arguments)),
        )
        for call in calls
    }
    return EarlierCalls(
        earlier.counts + Counter(identity for _, identity in asked),
        earlier.has_broken
        or any(message.json_meta.get("has_broken_arguments") for message in messages),
    )


def _earlier_calls(workspace_id: UUID, turn_id: UUID) -> Any:
    rows = ToolCall.objects.for_workspace(workspace_id).filter(turn_id=turn_id)
    return rows.only("message_id", "function_name", "tool_id", "proposed_arguments").order_by()


def _earlier_messages(workspace_id: UUID, turn_id: UUID) -> Any:
    rows = Message.objects.for_workspace(workspace_id).filter(turn_id=turn_id)
    return rows.only("json_meta").order_by()


_EARLIER_CALLS = PreparedRows[ToolCall](_earlier_calls, UUID, UUID)
_EARLIER_MESSAGES = PreparedRows[Message](_earlier_messages, UUID, UUID)


def propose(
    toolset: Toolset,
    asked: Sequence[AskedCall],
    earlier: EarlierCalls,
    *,
    in_words: bool = False,
) -> tuple[ProposedCall, ...]:
    """Look up each call; what cannot be run says why, in words for the model.

    Args:
        in_words: the model can only write, so a tool's own name or `server.tool` will do where it means one tool alone.

    Raises:
        LimitReached: the same call in one step after the other.
        BrokenArguments: it was told before that its arguments cannot be read, and they cannot be read again.
    """
    proposals: list[ProposedCall] = []
    ids: set[str] = set()
    for position, call in enumerate(asked):
        tool = toolset.find(call.name, in_words=in_words)
        name = tool.function_name if tool is not None else call.name
        arguments: dict[str, Any] | None = None
        target: OfferedTool | None = None
        error = ""
        is_broken = False
        if tool is None:
            error = _unknown(toolset, call.name, in_words=in_words)
            _check_not_again(earlier, (call.name[:200], b"{}"), call.name)
        elif position >= MOST_CALLS_IN_STEP:
            error = f"More than {MOST_CALLS_IN_STEP} calls in one step."
        else:
            called = tool
            try:
                arguments = parse_arguments(call.arguments)
            except InvalidArguments as fault:
                if earlier.has_broken:
                    raise BrokenArguments from fault
                is_broken = True
                schema = json.dumps(tool.input_schema)[:_MOST_SCHEMA]
                error = f"{fault.message} The arguments must fit this schema: {schema}"
            else:
                if tool.builtin in TRANSFERS:
                    found = find_target(toolset.of_servers, tool.builtin, arguments)
                    target, error = (None, found) if isinstance(found, str) else (found, "")
                elif tool.builtin == BuiltinTool.MCP_CALL_TOOL:
                    meant = unwrap(toolset.of_servers, arguments)
                    if isinstance(meant, str) and toolset.blocked:
                        known = unwrap(toolset.blocked, arguments)
                        meant = meant if isinstance(known, str) else known
                    if isinstance(meant, str):
                        error = meant
                    else:
                        # From here on it is a call of that tool, for policy, people and the log.
                        called, arguments = meant
                identity = (_name_of(name, called.tool_id), canonical_json(arguments))
                _check_not_again(earlier, identity, called.full_name)
                tool = called
        # Some servers repeat ids; within a step they have to differ.
        call_id = call.id if call.id not in ids else f"{call.id}_{position}"
        ids.add(call_id)
        proposals.append(
            ProposedCall(
                provider_call_id=call_id[:200],
                function_name=name[:200],
                arguments_text=call.arguments if arguments is not None else "{}",
                arguments=arguments,
                tool=tool,
                target=target,
                is_broken=is_broken,
                error=error,
                sent=call.arguments,
            )
        )
    return tuple(proposals)


def _name_of(function_name: str, tool_id: UUID | None) -> str:
    """What tells calls apart: the name that the model used, and of the one that stands for all tools which it was."""
    is_for_all = function_name == BuiltinTool.MCP_CALL_TOOL and tool_id is not None
    return str(tool_id) if is_for_all else function_name


def _check_not_again(earlier: EarlierCalls, identity: Identity, name: str) -> None:
    if earlier.counts[identity] >= MOST_IDENTICAL_STEPS:
        raise LimitReached(
            _("The answer was stopped because the model kept repeating the same call to %(name)s.")
            % {"name": name[:100]}
        )


def _unknown(toolset: Toolset, name: str, *, in_words: bool) -> str:
    meant = toolset.meant_by(name) if in_words else ()
    if meant:
        listed = ", ".join(tool.function_name for tool in meant[:_MOST_NAMED])
        return f"Several tools are named {name[:200]!r}. Use one of these names: {listed}."
    if not toolset.tools:
        return f"There is no tool named {name[:200]!r} here: no tools can be used now."
    names = list(toolset.by_name)
    others = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
    return f"There is no tool named {name[:200]!r} here. These can be called: {others}."
