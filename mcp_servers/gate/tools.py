"""Calling a tool, through the gate."""

from __future__ import annotations

import asyncio
from functools import partial

from mcp_servers.client.values import ToolCallOutcome, ToolCallRequest
from mcp_servers.gate.abandoning import abandon_call
from mcp_servers.gate.admission import GatedCall
from mcp_servers.gate.caller import Caller
from mcp_servers.gate.checkpoints import SignInFirstCheckpoint, is_unsent, read_checkpoint
from mcp_servers.gate.observing import observed
from mcp_servers.gate.passing import pass_through, take_slot
from mcp_servers.gate.recording import completed
from mcp_servers.gate.sending import exchange
from workspaces.database import in_database
from workspaces.errors import DomainError


@observed
async def call_tool(request: ToolCallRequest, *, caller: Caller | None = None) -> ToolCallOutcome:
    """Call one tool of one MCP server, once, for whoever asks.

    Whatever the tool, the server or the line does is an outcome. When this function raises, nothing was sent, except
    for a cancellation, which reaches the server and is recorded before it goes on, and for InputMissing.

    Args:
        caller: told of progress, checkpoints, and waits for people.

    Raises:
        ToolNotFound: not in this workspace.
        PermissionDenied: the actor may not call tools there.
        CallRefused: policy, quarantine, an approval that does not fit, or a server that is left alone after failures.
        ApprovalMissing: a person has to approve this call first.
        InputMissing: a person has to answer or to sign in first; the call goes on from its checkpoint after that.
        InvalidArguments: the arguments do not fit the tool's schema.
        Busy: no free slot in time.
        CallTakenOver: another process has the call by now, and records its end.
        AuditUnavailable: the call could not be recorded; also if it ended and that could not be recorded, in which
            case its result is given to nobody.
    Source: MCP specification, "Tools": Calling Tools, Error Handling, Security Considerations.
    """
    call = GatedCall(request)
    call.begin(caller)
    checkpoint = read_checkpoint(request.checkpoint) if request.checkpoint else None
    if isinstance(checkpoint, SignInFirstCheckpoint):
        await call.caller.checkpointed("")  # from here on a crash must not lead back to this point
        checkpoint = None
    call.may_keep = checkpoint is None
    return await pass_through(
        call,
        partial(exchange, call, checkpoint),
        readmit=partial(_readmit, call) if checkpoint else None,
    )


async def _readmit(call: GatedCall) -> None:
    """Let a call go on from its checkpoint: afterwards a slot is held. If it may not go on, it ends here."""
    request = call.request
    try:
        again = partial(call.admit_again, is_unsent=is_unsent(request.checkpoint))
        _, was_cancelled = await completed(in_database(again))
        if was_cancelled:
            raise asyncio.CancelledError
        await take_slot(call)
    except DomainError as error:
        await completed(in_database(abandon_call, request, reason=error.message))
        raise
    except asyncio.CancelledError:
        if not call.caller.hands_over():
            await completed(in_database(abandon_call, request))
        raise
