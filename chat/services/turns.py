"""What a person does to a turn: send, stop, retry. Each may be repeated and come from any process."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max, Min
from django.utils.translation import gettext as _

from chat.engine import runner
from chat.engine.attaching import Ref, check_refs
from chat.engine.beginning import SendContext, TurnRequester, begin_turn, path_end, wait_again
from chat.engine.context import OWNERS_ALONE
from chat.engine.endings import end_turn
from chat.engine.reading import (
    find_active_turn,
    find_last_answer,
    find_queued_message,
    find_sent_message,
    standing_of,
)
from chat.engine.states import ACTIVE_TURNS, RETRYABLE_TURNS, WAITING_TURNS
from chat.engine.waking import wake
from chat.live.recording import Changes, changing
from chat.models import Bud, Conversation, Message, QueuedMessage, Turn
from chat.models.turns import ACTIVE
from chat.providers.errors import ContextTooLong
from chat.services.models import ModelNamed, find_compared
from chat.values import Rating, TurnStatus, WhenBusy
from mcp_servers.client.canonical import JsonValue, canonical_json
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from workspaces.roles import Permission, require
from workspaces.words.names import is_seen

LONGEST_MESSAGE = 100_000
LONGEST_REASON = 1_000
"""Of a rating, in characters."""
MOST_QUEUED = 20
_CLIENT_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class SentTurn:
    message: Message
    turn: Turn
    is_new: bool


@dataclass(frozen=True, slots=True)
class QueuedSend:
    """The message waits for the running turn to end."""

    message: QueuedMessage
    is_new: bool


def send_message(
    *,
    conversation: Conversation,
    client_id: str,
    text: str,
    actor: Actor,
    attachments: Sequence[Ref] = (),
) -> SentTurn:
    """Store a person's message and start the turn that answers it.

    The same `client_id` again gives the same message and turn: nothing is stored or run twice.

    Raises:
        InvalidInput: no text, too much of it, a malformed client id, or resources that cannot be attached.
        Conflict: the conversation is still being answered, or the client id stands for something else.
    """
    sent = send_or_queue(
        conversation=conversation,
        client_id=client_id,
        text=text,
        actor=actor,
        attachments=attachments,
        when_busy=WhenBusy.REFUSE,
    )
    if isinstance(sent, QueuedSend):
        raise Conflict(_("This message is waiting for the current answer to end."))
    return sent


def send_or_queue(
    *,
    conversation: Conversation,
    client_id: str,
    text: str,
    actor: Actor,
    when_busy: WhenBusy,
    attachments: Sequence[Ref] = (),
    bud_id: UUID | None = None,
    compare: Sequence[ModelNamed] = (),
) -> SentTurn | QueuedSend:
    """The same; and while a turn runs, let the message wait for its end, or stop that turn for it.

    Args:
        bud_id: the bud that answers this message, in place of the conversation's.
        compare: two or three models that answer it side by side, in place of one.

    Raises:
        NotFound: the conversation was deleted meanwhile.
        InvalidInput: as above, there is no such bud or model, the bud's model is fixed, or the bud is for its
            owner alone.
        Conflict: a turn runs and the message shall not wait, too many wait already, or the client id stands for
            something else.
    """
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    check_client_id(client_id)
    check_text(text, may_be_empty=bool(attachments))
    named: list[JsonValue] = [str(bud_id)] if bud_id else []
    if compare:
        named.append([[str(provider_id), name] for provider_id, name in compare])
    digest = digest_of("send", text, [ref.as_json() for ref in attachments], *named)
    mentioned = find_mentioned(conversation, bud_id, actor)
    with changing(conversation.pk, conversation.workspace_id) as changes:
        _must_be_there(changes)
        state = standing_of(changes.conversation, client_id, mentioned)
        known = find_sent(conversation, client_id, digest) if state.knows_message else None
        if known is not None:
            return known
        _check_mentioned(conversation, bud_id, mentioned)
        check_usable(mentioned or changes.conversation.bud, actor)
        compared = find_compared(bud=mentioned or changes.conversation.bud, names=compare)
        refs = check_refs(changes.conversation, attachments)
        asker = TurnRequester.from_actor(actor)
        if not state.is_active:
            message, turn = begin_turn(
                changes,
                client_id=client_id,
                client_digest=digest,
                text=text,
                asker=asker,
                refs=refs,
                parent=path_end(changes),
                known=SendContext(actor, state),
                mentioned=mentioned,
                compared=compared,
            )
            return SentTurn(message, turn, is_new=True)
        if when_busy is WhenBusy.REFUSE:
            raise Conflict(_("Please wait until the answer is complete, or stop it."))
        queued = _put_in_queue(
            changes,
            refs,
            asker,
            client_id=client_id,
            client_digest=digest,
            text=text,
            mentioned_bud=mentioned,
            compare=[
                {"id": str(one.pk), "provider_id": _text(one.provider_id), "name": one.model}
                for one in compared
            ]
            or None,
        )
        if when_busy is WhenBusy.INTERRUPT:
            interrupt(queued, changes)
            return find_sent(conversation, client_id, digest) or QueuedSend(queued, is_new=True)
        return QueuedSend(queued, is_new=True)


def find_mentioned(conversation: Conversation, bud_id: UUID | None, actor: Actor) -> Bud | None:
    """The bud that a message is for, where it is another than the conversation's and the person may use it."""
    if bud_id is None or bud_id == conversation.bud_id:
        return None
    rows = Bud.objects.for_workspace(conversation.workspace_id).usable_by(actor.user_id)
    bud: Bud | None = rows.filter(is_draft=False).select_related("provider").find(bud_id)
    return bud


def _check_mentioned(conversation: Conversation, bud_id: UUID | None, bud: Bud | None) -> None:
    if bud_id is None or bud_id == conversation.bud_id:
        return
    if bud is None:
        raise InvalidInput(fields={"bud_id": [_("You have no such bud in this workspace.")]})
    if bud.is_archived:
        raise InvalidInput(fields={"bud_id": [_("This bud is archived.")]})


def check_usable(bud: Bud, actor: Actor) -> None:
    """Refuse a bud that is somebody else's alone by now, in chats that began with it, too.

    Raises:
        InvalidInput: it is.
    """
    if not bud.is_usable_by(actor.user_id):
        raise InvalidInput(fields={"bud_id": [_(OWNERS_ALONE)]})


def _text(value: UUID | None) -> str | None:
    return str(value) if value is not None else None


def interrupt(queued: QueuedMessage, changes: Changes) -> None:
    """Stop what runs for the sake of a message that waits; that one is sent as soon as it has ended."""
    rows = QueuedMessage.objects.for_workspace(queued.workspace_id)
    first = rows.filter(conversation=changes.conversation).aggregate(first=Min("order_key"))
    queued.is_next = True
    queued.held_after, queued.held_after_turn = "", None
    queued.order_key = max(0, first["first"] - 1)
    queued.save(
        update_fields=[
            *("is_next", "held_after", "held_after_turn", "order_key"),
            "updated_at",
        ]
    )
    changes.queue()
    for turn in active_turns(changes.conversation):
        stop_in(turn, changes)


def digest_of(*parts: JsonValue) -> str:
    """What a client id stands for: the command and all that came with it."""
    return hashlib.sha256(canonical_json(list(parts))).hexdigest()


def check_same(known: str, digest: str) -> None:
    """Refuse a client id that was used for something else, instead of taking that for an answer.

    Raises:
        Conflict: it was.
    """
    # Rows of earlier versions have no digest.
    if known and known != digest:
        raise Conflict(
            _(
                "This client id was used for another message, so nothing was sent. Send it with a new client id."
            )
        )


def find_sent(
    conversation: Conversation, client_id: str, digest: str
) -> SentTurn | QueuedSend | None:
    """What has become of the message with this id, if it has come before.

    Raises:
        Conflict: something else came with this id.
    """
    workspace_id = conversation.workspace_id
    message = find_sent_message(workspace_id, conversation.pk, client_id)
    if message is not None and message.turn is not None:
        check_same(message.client_digest, digest)
        return SentTurn(message, message.turn, is_new=False)
    queued = find_queued_message(workspace_id, conversation.pk, client_id)
    if queued is None:
        return None
    check_same(queued.client_digest, digest)
    return QueuedSend(queued, is_new=False)


def _put_in_queue(
    changes: Changes, refs: Sequence[Ref], asker: TurnRequester, **given: Any
) -> QueuedMessage:
    conversation = changes.conversation
    rows = QueuedMessage.objects.for_workspace(conversation.workspace_id)
    waiting = rows.filter(conversation=conversation)
    if waiting.count() >= MOST_QUEUED:
        raise Conflict(
            _("%(most)s messages are already waiting. Wait until one is sent, or remove one.")
            % {"most": MOST_QUEUED}
        )
    last = waiting.aggregate(last=Max("order_key"))["last"] or _MIDDLE
    queued = QueuedMessage.objects.create(
        workspace_id=conversation.workspace_id,
        conversation=conversation,
        attachments=[ref.as_json() for ref in refs],
        order_key=last + 1,
        **given,
        **asker.columns(),
    )
    changes.queue()
    return queued


_MIDDLE = 1_000_000
"""Where a queue begins, so that there is room before it."""


def stop_turn(*, turn: Turn, actor: Actor) -> Turn:
    """Stop a turn wherever it runs; one that has ended stays as it is."""
    require(actor, Permission.USE_CHAT, workspace_id=turn.workspace_id)
    require_own(turn, actor)
    with changing(turn.conversation_id, turn.workspace_id) as changes:
        turn = Turn.objects.for_workspace(turn.workspace_id).fetch(turn.pk)
        if TurnStatus(turn.status) in ACTIVE_TURNS:
            stop_in(turn, changes)
    return turn


def stop_in(turn: Turn, changes: Changes) -> None:
    """Stop a turn in the caller's transaction. Whoever holds the turn ends it; where nobody does, it ends here."""
    turn.stop_requested_at = database_now()
    turn.save(update_fields=["stop_requested_at", "updated_at"])
    is_held = turn.lease_until is not None and turn.lease_until > database_now()
    if is_held:
        transaction.on_commit(partial(runner.stop, turn.pk))
    else:
        end_turn(turn, TurnStatus.CANCELLED, changes, can_retry=True)


def retry_turn(*, turn: Turn, actor: Actor) -> Turn:
    """Go on with a turn that failed or was stopped, from its last finished step.

    Raises:
        Conflict: it cannot be retried, or another turn is under way.
    """
    require(actor, Permission.USE_CHAT, workspace_id=turn.workspace_id)
    require_own(turn, actor)
    with changing(turn.conversation_id, turn.workspace_id) as changes:
        turns = Turn.objects.for_workspace(turn.workspace_id)
        turn = turns.fetch(turn.pk)
        if TurnStatus(turn.status) not in RETRYABLE_TURNS or not turn.can_retry:
            raise Conflict(_("This answer can't be retried."))
        if not _may_go_on(turn, changes):
            raise Conflict(
                _("The conversation has continued since, so this is no longer possible.")
            )
        wait_again(turn, changes)
        turn.status = TurnStatus.QUEUED.value
        # What was too long once is too long again, unless less of it is sent.
        turn.trims_history = turn.trims_history or turn.error_code == ContextTooLong.code
        turn.error_code = turn.error_message = turn.notice = ""
        turn.can_retry = False
        turn.stop_requested_at = turn.finished_at = None
        turn.work_ms = 0
        turn.save()
        changes.turn(turn)
        wake(turn)
    return turn


def continue_turn(*, turn: Turn, actor: Actor) -> Turn:
    """Have an answer that was cut off by its length go on where it ends.

    Raises:
        Conflict: it was not cut off, or the conversation has gone on since.
    """
    require(actor, Permission.USE_CHAT, workspace_id=turn.workspace_id)
    require_own(turn, actor)
    with changing(turn.conversation_id, turn.workspace_id) as changes:
        turn = Turn.objects.for_workspace(turn.workspace_id).fetch(turn.pk)
        if not _may_go_on(turn, changes):
            raise Conflict(
                _("The conversation has continued since, so this is no longer possible.")
            )
        last = find_last_answer(turn.workspace_id, turn.pk)
        is_cut = last is not None and bool(last.json_meta.get("is_cut"))
        if last is None or not is_cut or turn.status != TurnStatus.COMPLETED:
            raise Conflict(_("This answer was not cut off."))
        last.json_meta = {**last.json_meta, "goes_on": True}
        last.save(update_fields=["json_meta", "updated_at"])
        turn.status = TurnStatus.QUEUED.value
        turn.notice = ""
        turn.stop_requested_at = turn.finished_at = None
        turn.work_ms = 0
        turn.save()
        changes.turn(turn)
        wake(turn)
    return turn


def rate_turn(*, turn: Turn, rating: Rating, reason: str = "", actor: Actor) -> Turn:
    """Keep what the person thinks of an answer, or take it back; administrators see it, without the answer.

    Raises:
        InvalidInput: the reason is too long, or cannot be stored.
        Conflict: the answer is not complete.
    """
    require(actor, Permission.USE_CHAT, workspace_id=turn.workspace_id)
    require_own(turn, actor)
    if len(reason) > LONGEST_REASON:
        raise InvalidInput(
            fields={"reason": [_("At most %(most)s characters.") % {"most": LONGEST_REASON}]}
        )
    if _UNSTORABLE.search(reason):
        raise InvalidInput(fields={"reason": [_("This text has characters that can't be stored.")]})
    with changing(turn.conversation_id, turn.workspace_id) as changes:
        turn = Turn.objects.for_workspace(turn.workspace_id).fetch(turn.pk)
        if TurnStatus(turn.status) in ACTIVE_TURNS:
            raise Conflict(_("Please wait until the answer is complete."))
        turn.rating = rating.value
        turn.rating_reason = reason.strip() if rating else ""
        turn.rated_at = database_now() if rating else None
        turn.save(update_fields=["rating", "rating_reason", "rated_at", "updated_at"])
        changes.turn(turn)
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
    wake(turn)


def active_turn(conversation: Conversation) -> Turn | None:
    """The turn that is under way, if there is one; of several, any."""
    return find_active_turn(conversation.workspace_id, conversation.pk)


def must_be_idle(changes: Changes) -> None:
    """Raise Conflict while the conversation is being answered, and NotFound if it was deleted meanwhile."""
    _must_be_there(changes)
    if active_turn(changes.conversation) is not None:
        raise Conflict(_("Please wait until the answer is complete, or stop it."))


def _must_be_there(changes: Changes) -> None:
    """Raise NotFound if the conversation was deleted on the way here, as in another tab."""
    if changes.conversation.deleted_at is not None:
        raise NotFound(_("Conversation not found."))


def active_turns(conversation: Conversation) -> list[Turn]:
    """The turn that is under way, or those whose answers are compared."""
    turns = Turn.objects.for_workspace(conversation.workspace_id)
    return list(turns.filter(conversation=conversation, status__in=ACTIVE))


def _may_go_on(turn: Turn, changes: Changes) -> bool:
    """Whether a turn that has ended can be taken up again; one whose answer stands beside others always can.

    Raises:
        NotFound: the conversation was deleted meanwhile.
    """
    _must_be_there(changes)
    comparison = changes.conversation.comparison
    if comparison is not None and turn.comparison == comparison:
        return True
    return active_turn(changes.conversation) is None and _is_at_end(turn, changes)


def _is_at_end(turn: Turn, changes: Changes) -> bool:
    """Whether the shown path ends with this turn."""
    leaf_id = path_end(changes)
    if leaf_id is None or leaf_id == turn.user_message_id:
        return True
    messages = Message.objects.for_workspace(turn.workspace_id)
    return messages.filter(pk=leaf_id, turn=turn).exists()


def require_own(turn: Turn, actor: Actor) -> None:
    """Raise PermissionDenied unless it is the actor who asked."""
    if actor.user_id != turn.asked_by_id and actor.user_id is not None:
        raise PermissionDenied(_("Only the person who asked can do that."))


def check_client_id(client_id: str) -> None:
    """Raise InvalidInput unless a page's own id for what it does can be stored."""
    if not _CLIENT_ID.fullmatch(client_id):
        raise InvalidInput(fields={"client_id": [_("Use 1 to 64 letters, digits or . : _ -")]})


def check_text(text: str, *, may_be_empty: bool = False) -> None:
    """Raise InvalidInput unless this can be a message; what is attached may speak for itself."""
    fault = ""
    if not may_be_empty and not is_seen(text):
        fault = _("Write something first.")
    elif len(text) > LONGEST_MESSAGE:
        fault = _("At most %(most)s characters.") % {"most": LONGEST_MESSAGE}
    elif _UNSTORABLE.search(text):
        fault = _("This text has characters that can't be stored.")
    if fault:
        raise InvalidInput(fields={"text": [fault]})
