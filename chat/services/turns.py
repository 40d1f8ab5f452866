"""What a person does to a turn: send, stop, retry. Each may be repeated and come from any process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from django.db import transaction
from uuid_utils.compat import uuid7

from chat.engine import runner
from chat.engine.endings import end_turn
from chat.engine.states import ACTIVE_TURNS, RETRYABLE_TURNS, WAITING_TURNS
from chat.models import Conversation, Message, Turn
from chat.models.turns import ACTIVE
from chat.recording import Changes, changing
from chat.services.attachments import ResourceRef, attach, check_refs
from chat.values import MessageRole, MessageStatus, TurnStatus
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.roles import Permission, require

LONGEST_MESSAGE = 100_000
_CLIENT_ID = re.compile(r"^[A-Za-z0-9_.:-]{1,64}$")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Sent:
    message: Message
    turn: Turn
    is_new: bool


def send_message(
    *,
    conversation: Conversation,
    client_id: str,
    text: str,
    actor: Actor,
    attachments: Sequence[ResourceRef] = (),
) -> Sent:
    """Store a person's message and start the turn that answers it.

    The same `client_id` again gives the same message and turn: nothing is stored or run twice.

    Raises:
        InvalidInput: no text, too much of it, a malformed client id, or resources that cannot be attached.
        Conflict: the conversation is still being answered.
    """
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    _check(client_id, text)
    with changing(conversation.pk, conversation.workspace_id) as changes:
        messages = Message.objects.for_workspace(conversation.workspace_id)
        in_conversation = messages.filter(conversation=conversation)
        known = in_conversation.filter(client_id=client_id).select_related("turn").first()
        if known is not None and known.turn is not None:
            return Sent(known, known.turn, is_new=False)
        turns = Turn.objects.for_workspace(conversation.workspace_id)
        if turns.filter(conversation=conversation, status__in=ACTIVE).exists():
            raise Conflict("Please wait until the answer is complete, or stop it.")
        refs = check_refs(changes.conversation, attachments)
        before = in_conversation.last()
        # Each names the other; the database checks that when the transaction ends.
        turn_id = uuid7()
        message = Message.objects.create(
            workspace_id=conversation.workspace_id,
            conversation=conversation,
            turn_id=turn_id,
            parent=before,
            role=MessageRole.USER.value,
            text=text,
            status=MessageStatus.COMPLETE.value,
            order_key=(before.order_key if before else 0) + 1,
            client_id=client_id,
        )
        assert actor.user_id is not None  # require() lets no anonymous one through
        turn = Turn.objects.create(
            id=turn_id,
            workspace_id=conversation.workspace_id,
            conversation=conversation,
            user_message=message,
            asked_by_id=actor.user_id,
            source=actor.source.value,
            ip_address=actor.ip_address,
            request_id=actor.request_id,
            token_id=actor.token_id,
        )
        attach(message, changes.conversation, refs)
        _touch(changes, text)
        changes.message(message)
        changes.turn(turn)
        _wake(turn)
    return Sent(message, turn, is_new=True)


def stop_turn(*, turn: Turn, actor: Actor) -> Turn:
    """Stop a turn wherever it runs; one that has ended stays as it is."""
    require(actor, Permission.USE_CHAT, workspace_id=turn.workspace_id)
    _require_own(turn, actor)
    with changing(turn.conversation_id, turn.workspace_id) as changes:
        turn = Turn.objects.for_workspace(turn.workspace_id).fetch(turn.pk)
        if TurnStatus(turn.status) not in ACTIVE_TURNS:
            return turn
        turn.stop_requested_at = database_now()
        turn.save(update_fields=["stop_requested_at", "updated_at"])
        is_held = turn.lease_until is not None and turn.lease_until > database_now()
        if is_held:
            transaction.on_commit(partial(runner.stop, turn.pk))
        else:
            end_turn(turn, TurnStatus.CANCELLED, changes, can_retry=True)
    return turn


def retry_turn(*, turn: Turn, actor: Actor) -> Turn:
    """Go on with a turn that failed or was stopped, from its last finished step.

    Raises:
        Conflict: it cannot be retried, or another turn is under way.
    """
    require(actor, Permission.USE_CHAT, workspace_id=turn.workspace_id)
    _require_own(turn, actor)
    with changing(turn.conversation_id, turn.workspace_id) as changes:
        turns = Turn.objects.for_workspace(turn.workspace_id)
        turn = turns.fetch(turn.pk)
        if TurnStatus(turn.status) not in RETRYABLE_TURNS or not turn.can_retry:
            raise Conflict("This cannot be tried again.")
        others = turns.filter(conversation_id=turn.conversation_id)
        if others.filter(status__in=ACTIVE).exists() or others.filter(pk__gt=turn.pk).exists():
            raise Conflict("The conversation has gone on since.")
        turn.status = TurnStatus.QUEUED.value
        turn.error_code = turn.error_message = turn.notice = ""
        turn.can_retry = False
        turn.stop_requested_at = turn.finished_at = None
        turn.work_ms = 0
        turn.save()
        changes.turn(turn)
        _wake(turn)
    return turn


def queue_again(turn: Turn, changes: Changes) -> None:
    """A decision has been made: whoever takes the turn goes on with it.

    A turn that somebody holds finds out by itself, as soon as its open calls have ended.
    """
    if TurnStatus(turn.status) not in WAITING_TURNS or turn.lease_until is not None:
        return
    turn.status = TurnStatus.QUEUED.value
    turn.save(update_fields=["status", "updated_at"])
    changes.turn(turn)
    _wake(turn)


def _wake(turn: Turn) -> None:
    transaction.on_commit(partial(runner.wake, turn.pk, turn.workspace_id))


def _require_own(turn: Turn, actor: Actor) -> None:
    if actor.user_id != turn.asked_by_id and actor.user_id is not None:
        raise PermissionDenied("Only the person who asked can do that.")


def _check(client_id: str, text: str) -> None:
    fields: dict[str, list[str]] = {}
    if not _CLIENT_ID.match(client_id):
        fields["client_id"] = ["1 to 64 letters, digits or . : _ -"]
    if not text.strip():
        fields["text"] = ["Write something first."]
    elif len(text) > LONGEST_MESSAGE:
        fields["text"] = [f"At most {LONGEST_MESSAGE} characters."]
    elif _UNSTORABLE.search(text):
        fields["text"] = ["This text holds characters that cannot be stored."]
    if fields:
        raise InvalidInput(fields=fields)


def _touch(changes: Changes, text: str) -> None:
    """The conversation moves to the top, and takes its title from the first message."""
    conversation = changes.conversation
    conversation.last_message_at = database_now()
    if not conversation.title:
        conversation.title = title_from(text)
    changes.save_with_number("last_message_at", "title")


def title_from(text: str, *, longest: int = 60) -> str:
    """A title out of a message: its first line, cut at a word."""
    line = " ".join(text.strip().splitlines()[0].split()) if text.strip() else ""
    if len(line) <= longest:
        return line
    cut = line[:longest].rsplit(" ", 1)[0] or line[:longest]
    return f"{cut}…"
