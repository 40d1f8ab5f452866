"""What each command does: one service each, with the page's own rows. Gives what the page is told on success."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from chat.engine.attaching import FileRef, Ref, ResourceRef
from chat.services.approvals import decide
from chat.services.branches import edit_message, regenerate, show_branch
from chat.services.comparing import choose_answer, compare_answer
from chat.services.inputs import answer_input
from chat.services.queue import edit_queued, remove_queued, send_queued_now
from chat.services.resolutions import resolve_call
from chat.services.seen_answers import mark_seen
from chat.services.turns import (
    QueuedSend,
    continue_turn,
    rate_turn,
    retry_turn,
    send_or_queue,
    stop_turn,
)
from chat.sockets.socket_access import SocketAccess
from chat.values import Decision, Remember
from chat.wire import commands

Answer = dict[str, UUID]
"""The ids of what came into being, as `Accepted` names them."""


def _send(access: SocketAccess, command: commands.Send) -> Answer:
    sent = send_or_queue(
        conversation=access.conversation(command.conversation_id),
        client_id=command.client_id,
        text=command.text,
        attachments=[_ref(one) for one in command.attachments],
        when_busy=command.when_busy,
        bud_id=command.bud_id,
        compare=[(one.provider_id, one.name) for one in command.compare],
        actor=access.actor,
    )
    if isinstance(sent, QueuedSend):
        return {"queued_id": sent.message.pk}
    return {"message_id": sent.message.pk, "turn_id": sent.turn.pk}


def _ref(name: commands.ResourceName | commands.FileName) -> Ref:
    if isinstance(name, commands.FileName):
        return FileRef(**name.model_dump())
    return ResourceRef(**name.model_dump())


def _edit_message(access: SocketAccess, command: commands.EditMessage) -> Answer:
    message = access.message(command.message_id)
    sent = edit_message(
        message=message, client_id=command.client_id, text=command.text, actor=access.actor
    )
    return {"message_id": sent.message.pk, "turn_id": sent.turn.pk}


def _regenerate(access: SocketAccess, command: commands.Regenerate) -> Answer:
    turn = access.turn(command.turn_id)
    model = command.model
    begun = regenerate(
        turn=turn,
        client_id=command.client_id,
        wish=command.wish,
        model=(model.provider_id, model.name) if model else None,
        actor=access.actor,
    )
    return {"turn_id": begun.pk}


def _compare(access: SocketAccess, command: commands.Compare) -> Answer:
    turn = access.turn(command.turn_id)
    model = (command.model.provider_id, command.model.name)
    begun = compare_answer(turn=turn, client_id=command.client_id, model=model, actor=access.actor)
    return {"turn_id": begun.pk}


def _choose(access: SocketAccess, command: commands.Choose) -> Answer:
    choose_answer(turn=access.turn(command.turn_id), actor=access.actor)
    return {}


def _continue(access: SocketAccess, command: commands.Continue) -> Answer:
    continue_turn(turn=access.turn(command.turn_id), actor=access.actor)
    return {}


def _rate(access: SocketAccess, command: commands.Rate) -> Answer:
    turn = access.turn(command.turn_id)
    rate_turn(turn=turn, rating=command.rating, reason=command.reason, actor=access.actor)
    return {}


def _show_branch(access: SocketAccess, command: commands.ShowBranch) -> Answer:
    message = access.message(command.message_id)
    show_branch(message=message, actor=access.actor)
    return {}


def _edit_queued(access: SocketAccess, command: commands.EditQueued) -> Answer:
    queued = access.queued(command.queued_id)
    edit_queued(queued=queued, text=command.text, actor=access.actor)
    return {}


def _remove_queued(access: SocketAccess, command: commands.RemoveQueued) -> Answer:
    queued = access.queued(command.queued_id)
    remove_queued(queued=queued, actor=access.actor)
    return {}


def _send_queued(access: SocketAccess, command: commands.SendQueued) -> Answer:
    queued = access.queued(command.queued_id)
    send_queued_now(queued=queued, actor=access.actor)
    return {}


def _resolve(access: SocketAccess, command: commands.Resolve) -> Answer:
    call = access.tool_call(command.tool_call_id)
    resolve_call(call=call, resolution=command.resolution, note=command.note, actor=access.actor)
    return {}


def _stop(access: SocketAccess, command: commands.Stop) -> Answer:
    turn = access.turn(command.turn_id)
    stop_turn(turn=turn, actor=access.actor)
    return {}


def _retry(access: SocketAccess, command: commands.Retry) -> Answer:
    turn = access.turn(command.turn_id)
    retry_turn(turn=turn, actor=access.actor)
    return {}


def _decide(access: SocketAccess, command: commands.Decide) -> Answer:
    call = access.tool_call(command.tool_call_id)
    is_approval = command.decision == "approve"
    decide(
        call=call,
        decision=Decision.APPROVED if is_approval else Decision.REFUSED,
        actor=access.actor,
        arguments=command.arguments if is_approval else None,
        note=command.note,
        remember=command.remember if is_approval else Remember.NOT,
    )
    return {}


def _answer_input(access: SocketAccess, command: commands.AnswerInput) -> Answer:
    request = access.input_request(command.input_request_id)
    answer_input(
        request=request, action=command.action, content=command.content, actor=access.actor
    )
    return {}


def _seen(access: SocketAccess, command: commands.Seen) -> Answer:
    conversation = access.conversation(command.conversation_id)
    mark_seen(conversation=conversation, until=command.until, actor=access.actor)
    return {}


HANDLERS: Mapping[type[Any], Callable[[SocketAccess, Any], Answer]] = {
    commands.Seen: _seen,
    commands.Send: _send,
    commands.EditMessage: _edit_message,
    commands.Regenerate: _regenerate,
    commands.Compare: _compare,
    commands.Choose: _choose,
    commands.Continue: _continue,
    commands.Rate: _rate,
    commands.ShowBranch: _show_branch,
    commands.EditQueued: _edit_queued,
    commands.RemoveQueued: _remove_queued,
    commands.SendQueued: _send_queued,
    commands.Resolve: _resolve,
    commands.Stop: _stop,
    commands.Retry: _retry,
    commands.Decide: _decide,
    commands.AnswerInput: _answer_input,
}
"""Commands that change rows; those about the page's own view are the consumer's."""
