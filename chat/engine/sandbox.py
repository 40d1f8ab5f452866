"""What a check's call gives where the gate calls nothing: its recording, or a refusal that says so."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from chat.check_shapes import CheckShape, recording_for
from chat.engine import calls
from chat.engine.leases import Lease
from chat.engine.rows import fetch_call
from chat.engine.turns import Work
from chat.models import CheckResult, ToolCall
from chat.values import ToolCallStatus
from mcp_servers.client.values import Outcome, TextPart, ToolCallOutcome

_NO_RECORDING: Final = "The check has no recorded result for this call."
_RECORDED_ERROR: Final = "The recorded result is an error."


def answer_from_recording(lease: Lease, call_id: UUID, *, message: str) -> Work | None:
    """Commit the recorded result of a call that the gate did not let through, or that there is none.

    Gives what follows if it was its step's last.

    Args:
        message: why it was not let through.
    """
    call = fetch_call(lease.workspace_id, call_id)
    outcome = _recorded(call, lease.conversation_id)
    if outcome is None:
        calls.refuse_call(lease, call_id, message=f"{message} {_NO_RECORDING}")
        return None
    if call.status == ToolCallStatus.QUEUED:
        calls.start_call(lease, call_id)
    return calls.finish_call(lease, call_id, outcome, work_ms=0)


def _recorded(call: ToolCall, conversation_id: UUID) -> ToolCallOutcome | None:
    rows = CheckResult.objects.for_workspace(call.workspace_id)
    result = rows.filter(conversation_id=conversation_id).first()
    if result is None:
        return None
    found = recording_for(
        CheckShape.model_validate(result.expected).recordings,
        server=call.server_name,
        tool=call.tool_name,
        arguments=call.arguments,
    )
    if found is None:
        return None
    content = (TextPart(text=found.result),) if found.result else ()
    if found.is_error:
        return ToolCallOutcome(outcome=Outcome.TOOL_ERROR, message=_RECORDED_ERROR, content=content)
    return ToolCallOutcome(outcome=Outcome.OK, content=content)
