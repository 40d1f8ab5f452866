"""The same reading call, asked for several times in one step: made once, and its result given to all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from chat.models import ToolCall, Turn
from chat.values import ToolCallStatus
from mcp_servers.client.canonical import canonical_json
from mcp_servers.client.values import ToolCallOutcome
from mcp_servers.gate.recorded import recorded_outcome
from workspaces.database import in_database

_Key = tuple[UUID | None, str, bytes]


class IdenticalResults:
    """What the calls of one step have brought, for those that ask for the very same. On one loop."""

    def __init__(self) -> None:
        self._first: dict[_Key, asyncio.Future[ToolCallOutcome | None]] = {}

    async def call_once(
        self,
        call: ToolCall,
        turn: Turn,
        make: Callable[[ToolCallOutcome | None], Awaitable[ToolCallOutcome]],
    ) -> ToolCallOutcome:
        """Make a call, with the result of an identical one if there is one.

        Args:
            make: sends it through the gate, which writes its entries, and takes the known result where it may.
        """
        if not _just_reads(call):
            return await make(None)
        key = (call.tool_id, call.definition_hash, canonical_json(call.arguments))
        while (first := self._first.get(key)) is not None:
            known = await asyncio.shield(first)
            if known is not None:
                return await make(known)
        first = self._first[key] = asyncio.get_running_loop().create_future()
        outcome = None
        try:
            # Others of the step may have ended before somebody approved this one, or in another process.
            outcome = await make(await in_database(_of_sibling, call) if turn.attempt > 1 else None)
            return outcome
        finally:
            if outcome is None:
                del self._first[key]  # it was not made, so the next one is the first
            first.set_result(outcome)


def _just_reads(call: ToolCall) -> bool:
    """By the word of a trusted server; and not one that goes on where it stopped."""
    hints = call.annotations
    is_plain = not call.builtin and call.checkpoint is None and call.repeats_id is None
    return is_plain and bool(hints.get("is_trusted") and hints.get("read_only"))


def _of_sibling(call: ToolCall) -> ToolCallOutcome | None:
    """What an identical call of this step has brought."""
    rows = ToolCall.objects.for_workspace(call.workspace_id).filter(
        message_id=call.message_id,
        status=ToolCallStatus.SUCCEEDED.value,
        tool_id=call.tool_id,
        definition_hash=call.definition_hash,
    )
    for row in rows.exclude(pk=call.pk).only("pk", "arguments"):
        if row.arguments == call.arguments:
            found = recorded_outcome(call.workspace_id, row.pk)
            if found is not None and found[1]:
                return found[0]
    return None
