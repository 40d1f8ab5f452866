"""A person says what becomes of a call whose outcome is unknown: once, and then the turn goes on."""

from __future__ import annotations

import logging
from typing import Final
from uuid import UUID

from django.db.models import Exists, Max, OuterRef, Q
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.models import AuditEntry
from audit.services import EntryDraft, Ref, record
from audit.services.call_outcomes import KNOWN_END
from chat.engine.call_outcomes import settle_from_log
from chat.engine.rows import move_call
from chat.live.recording import Changes, changing
from chat.models import ToolCall
from chat.services.turns import queue_again
from chat.values import Resolution, ToolCallStatus, TurnStatus
from mcp_servers.models import McpTool
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.errors import Conflict, DomainError, InvalidInput, PermissionDenied
from workspaces.jobs.sweeping import sweep
from workspaces.roles import Permission, require

logger = logging.getLogger(__name__)

LONGEST_NOTE = 2_000
_MOST_EXPIRED: Final = 500
"""In one round; the next one goes on."""
_STATUS = {
    Resolution.RUN_AGAIN: ToolCallStatus.REPEATED,
    Resolution.MARK_DONE: ToolCallStatus.MARKED_DONE,
    Resolution.GIVE_UP: ToolCallStatus.GIVEN_UP,
}
_NOT_AGAIN = (
    "Whether this call took effect is unknown. The user decided not to run it again. "
    "Do not repeat it unless they ask for it."
)


def resolve_call(
    *, call: ToolCall, resolution: Resolution, actor: Actor, note: str = ""
) -> ToolCall:
    """Run a call of unknown outcome again, take it as done, or give it up.

    Running it again is a new call, with an approval of its own where its tool asks for one.

    If the log knows by now how the call ended, that counts, and nothing is run again.

    Returns:
        The call that was decided about, or the new one in its place.

    Raises:
        Conflict: it has been decided, the turn has ended, or its tool is gone.
        PermissionDenied: not the person who asked.
        InvalidInput: the note is too long.
        AuditUnavailable: it could not be recorded, so nothing was decided.
    """
    require(actor, Permission.USE_CHAT, workspace_id=call.workspace_id)
    if len(note) > LONGEST_NOTE:
        raise InvalidInput(
            fields={"note": [_("At most %(most)s characters.") % {"most": LONGEST_NOTE}]}
        )
    with changing(call.turn.conversation_id, call.workspace_id) as changes:
        call = _fetch(call.pk, call.workspace_id)
        if actor.user_id != call.turn.asked_by_id:
            raise PermissionDenied(_("Only the person who asked can decide about this call."))
        if call.status != ToolCallStatus.OUTCOME_UNKNOWN:
            raise Conflict(_("This has been decided already."))
        if TurnStatus(call.turn.status) not in (
            TurnStatus.RUNNING,
            TurnStatus.WAITING_FOR_APPROVAL,
            TurnStatus.WAITING_FOR_INPUT,
        ):
            raise Conflict(_("The answer has ended. Retry it, or ask again."))
        return _resolve(call, resolution, note.strip(), actor, changes)


def expire_resolutions() -> int:
    """Give up every call of unknown outcome that nobody has said a word about in time."""
    overdue = ToolCall.objects.across_workspaces().filter(
        Q(resolution_due_at=None) | Q(resolution_due_at__lte=database_now()),
        status=ToolCallStatus.OUTCOME_UNKNOWN.value,
        turn__status=TurnStatus.WAITING_FOR_INPUT.value,
    )
    rows = overdue.select_related("turn")
    return sweep(rows, _expire, label="expire_resolutions", most=_MOST_EXPIRED)


def _expire(overdue: ToolCall) -> bool:
    workspace_id = overdue.workspace_id
    with changing(overdue.turn.conversation_id, workspace_id) as changes:
        call = _fetch(overdue.pk, workspace_id)
        actor = Actor.system(
            label="approvals",
            source=Source.TASK,
            workspace_id=workspace_id,
            on_behalf_of=call.turn.asked_by.email,
        )
        if call.status != ToolCallStatus.OUTCOME_UNKNOWN:
            return False
        _resolve(call, Resolution.GIVE_UP, "Nobody decided in time.", actor, changes)
    return True


def settle_known() -> int:
    """Settle calls of unknown outcome whose end has come into the log since; how many."""
    known = AuditEntry.objects.across_workspaces().filter(
        KNOWN_END, call_id=OuterRef("pk"), workspace_id=OuterRef("workspace_id")
    )
    unknown = ToolCall.objects.across_workspaces().filter(
        Exists(known), status=ToolCallStatus.OUTCOME_UNKNOWN.value
    )
    ids = list(unknown.values_list("pk", "workspace_id", "turn__conversation_id")[:500])
    number = 0
    for call_id, workspace_id, conversation_id in ids:
        try:
            with changing(conversation_id, workspace_id) as changes:
                call = _fetch(call_id, workspace_id)
                if call.status == ToolCallStatus.OUTCOME_UNKNOWN and settle_from_log(call):
                    changes.tool_call(call)
                    queue_again(call.turn, changes)
                    number += 1
        except DomainError as error:
            logger.warning("call_not_settled", extra={"call": str(call_id), "code": error.code})
    return number


def _resolve(
    call: ToolCall, resolution: Resolution, note: str, actor: Actor, changes: Changes
) -> ToolCall:
    if settle_from_log(call):
        # Its end was recorded after all, so there is nothing to decide.
        changes.tool_call(call)
        queue_again(call.turn, changes)
        return call
    again = _repeat(call) if resolution is Resolution.RUN_AGAIN else None
    move_call(call, _STATUS[resolution])
    call.resolution_note = note
    call.resolved_by_id = actor.user_id
    call.model_text = _words(resolution, note)
    call.save()
    _record(call, resolution, actor)
    changes.tool_call(call)
    if again is not None:
        again.save(force_insert=True)
        changes.tool_call(again)
    queue_again(call.turn, changes)
    return again or call


def _repeat(call: ToolCall) -> ToolCall:
    """The same call anew: nothing of the first one counts for it but what was asked."""
    tools = McpTool.objects.for_workspace(call.workspace_id)
    if not call.builtin and tools.find(call.tool_id) is None:
        raise Conflict(_("This tool no longer exists."))
    siblings = ToolCall.objects.for_workspace(call.workspace_id).filter(message_id=call.message_id)
    last = siblings.aggregate(last=Max("position"))["last"]
    return ToolCall(
        workspace_id=call.workspace_id,
        turn=call.turn,
        message_id=call.message_id,
        position=last + 1,
        repeats=call,
        provider_call_id=call.provider_call_id,
        function_name=call.function_name,
        server_id=call.server_id,
        server_name=call.server_name,
        tool_id=call.tool_id,
        tool_name=call.tool_name,
        tool_title=call.tool_title,
        builtin=call.builtin,
        artifact=call.artifact,
        definition_hash=call.definition_hash,
        annotations=call.annotations,
        input_schema=call.input_schema,
        arguments=call.arguments,
        proposed_arguments=call.proposed_arguments,
    )


def _words(resolution: Resolution, note: str) -> str:
    """What the model reads as the result."""
    if resolution is Resolution.RUN_AGAIN:
        return "This call was made again."
    remark = f" Their note: {note}" if note else ""
    if resolution is Resolution.MARK_DONE:
        return f"The connection was lost, but the user says that this call took effect.{remark}"
    return _NOT_AGAIN + remark


def _record(call: ToolCall, resolution: Resolution, actor: Actor) -> None:
    turn = call.turn
    record(
        EntryDraft(
            action=Action.TOOL_CALL_RESOLVED,
            actor=actor,
            workspace_id=call.workspace_id,
            call_id=call.pk,
            server=Ref(id=call.server_id, name=call.server_name) if call.server_id else None,
            tool=Ref(id=call.tool_id, name=call.tool_name) if call.tool_id else None,
            conversation_id=turn.conversation_id,
            turn_id=turn.pk,
            details={"as": resolution.value, "note": call.resolution_note[:1000]},
        )
    )


def _fetch(call_id: UUID, workspace_id: UUID) -> ToolCall:
    rows = ToolCall.objects.for_workspace(workspace_id)
    return rows.select_related("turn", "decided_by").fetch(call_id)
