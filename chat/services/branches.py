"""The tree of a conversation: another wording of a question, another answer, another path, another conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from chat.artifacts.services import copy_artifacts
from chat.engine.attaching import refs_of, usable_refs
from chat.engine.beginning import TurnRequester, answer_again, begin_turn
from chat.engine.states import ACTIVE_TURNS
from chat.live.recording import changing
from chat.message_paths import newest_leaf, path_to
from chat.models import ArtifactVersion, Attachment, Conversation, Message, ToolCall, Turn
from chat.services.comparing import end_comparison
from chat.services.models import ModelNamed, find_model
from chat.services.turns import (
    QueuedSend,
    SentTurn,
    check_client_id,
    check_same,
    check_text,
    check_usable,
    digest_of,
    find_mentioned,
    find_sent,
    must_be_idle,
)
from chat.values import MessageRole, TitleSource, TurnStatus, Wish
from workspaces.actors import Actor
from workspaces.delivery.announcements import Announcement, announce
from workspaces.errors import Conflict, InvalidInput
from workspaces.models import User
from workspaces.roles import Permission, require
from workspaces.words.formats import whole

LONGEST_FORK = 1_000
"""Messages of one path; a fork is one transaction."""


def edit_message(*, message: Message, client_id: str, text: str, actor: Actor) -> SentTurn:
    """Ask differently: the new wording is a sibling of the old one, with the same attachments, and is answered.

    The same `client_id` again gives the same message and turn.

    Raises:
        InvalidInput: not a person's message, no text, or the bud is for its owner alone.
        Conflict: the conversation is still being answered, or the client id stands for something else.
    """
    require(actor, Permission.USE_CHAT, workspace_id=message.workspace_id)
    check_client_id(client_id)
    check_text(text)
    if message.role != MessageRole.USER:
        raise InvalidInput(_("You can only edit messages that a person wrote."))
    digest = digest_of("edit", str(message.pk), text)
    with changing(message.conversation_id, message.workspace_id) as changes:
        known = find_sent(changes.conversation, client_id, digest)
        if isinstance(known, QueuedSend):
            raise Conflict(_("A message with this id is already waiting to be sent."))
        if known is not None:
            return known
        must_be_idle(changes)
        mentioned = find_mentioned(changes.conversation, _mentioned_in(message), actor)
        check_usable(mentioned or changes.conversation.bud, actor)
        written, turn = begin_turn(
            changes,
            client_id=client_id,
            client_digest=digest,
            text=text,
            asker=TurnRequester.from_actor(actor),
            refs=[ref for ref in usable_refs(changes.conversation, refs_of(message)) if ref],
            parent=message.parent_id,
            mentioned=mentioned,
        )
        return SentTurn(written, turn, is_new=True)


def _mentioned_in(message: Message) -> UUID | None:
    """The bud that a question was for, in place of the conversation's."""
    turns = Turn.objects.for_workspace(message.workspace_id).filter(user_message=message)
    return turns.order_by("-pk").values_list("mentioned_bud_id", flat=True).first()


def regenerate(
    *,
    turn: Turn,
    client_id: str,
    actor: Actor,
    wish: Wish = Wish.NONE,
    model: ModelNamed | None = None,
) -> Turn:
    """Answer a question again; the new answer is a sibling of the earlier one.

    The same `client_id` again gives the same turn.

    Args:
        wish: how the answer shall differ; the model reads the earlier one with it.
        model: provider and name of the one that answers, this once.

    Raises:
        Conflict: the conversation is still being answered, or the client id stands for something else.
        InvalidInput: the bud's model is fixed, there is no such model here, or the bud is for its owner alone.
    """
    require(actor, Permission.USE_CHAT, workspace_id=turn.workspace_id)
    check_client_id(client_id)
    with changing(turn.conversation_id, turn.workspace_id) as changes:
        turns = Turn.objects.for_workspace(turn.workspace_id)
        begun = turns.filter(conversation_id=turn.conversation_id, client_id=client_id).first()
        if begun is not None:
            asked = (begun.user_message_id, begun.wish)
            check_same(str(asked), str((turn.user_message_id, wish.value)))
            return begun
        bud = turn.mentioned_bud or changes.conversation.bud
        check_usable(bud, actor)
        chosen = find_model(bud=bud, provider_id=model[0], name=model[1]) if model else None
        must_be_idle(changes)
        question = Message.objects.for_workspace(turn.workspace_id).fetch(turn.user_message_id)
        return answer_again(
            changes,
            question=question,
            client_id=client_id,
            asker=TurnRequester.from_actor(actor),
            revises=turn.pk,
            wish=wish.value,
            chosen_model=chosen,
            mentioned_bud=turn.mentioned_bud,
        )


def show_branch(*, message: Message, actor: Actor) -> Conversation:
    """Show the path through this message, down to the newest message below it; the next one goes on from there.

    Of answers that stand side by side, this chooses the message's.

    Raises:
        Conflict: the conversation is still being answered.
    """
    require(actor, Permission.USE_CHAT, workspace_id=message.workspace_id)
    with changing(message.conversation_id, message.workspace_id) as changes:
        must_be_idle(changes)
        changes.conversation.leaf_id = newest_leaf(message.workspace_id, message.pk)
        changes.save_with_number("leaf_id")
        if changes.conversation.comparison is not None:
            end_comparison(message, changes)
        changes.conversation_row(turn_status=None)
        return changes.conversation


def fork_conversation(
    *, message: Message, client_id: str, owner: User, actor: Actor
) -> Conversation:
    """A new conversation with a copy of the path that ends with this answer. Nothing is run again.

    The same `client_id` again gives the same conversation.

    Raises:
        InvalidInput: not an answer, or a path too long to copy.
        Conflict: the answer is not complete, or the client id stands for something else.
    """
    require(actor, Permission.USE_CHAT, workspace_id=message.workspace_id)
    check_client_id(client_id)
    if message.role != MessageRole.ASSISTANT:
        raise InvalidInput(_("Choose an answer to fork from."))
    workspace_id = message.workspace_id
    digest = digest_of("fork", str(message.pk))
    mine = Conversation.objects.for_workspace(workspace_id).filter(owner=owner)
    made = mine.select_related("bud").filter(client_id=client_id).first()
    if made is not None:
        check_same(made.client_digest, digest)
        return made
    # Nothing of it may begin, end or be deleted while it is copied; and of two commands that come at once, one waits.
    with changing(message.conversation_id, workspace_id) as changes:
        made = mine.select_related("bud").filter(client_id=client_id).first()
        if made is not None:
            check_same(made.client_digest, digest)
            return made
        if message.turn_id is not None:
            turn = Turn.objects.for_workspace(workspace_id).fetch(message.turn_id)
            if TurnStatus(turn.status) in ACTIVE_TURNS:
                raise Conflict(_("Please wait until the answer is complete, or stop it."))
        return _fork(message, changes.conversation, client_id, digest, owner)


def _fork_title(old: Conversation) -> str:
    """In a list, nobody could tell two chats of one name apart. A fork of a fork is named as one of the first chat."""
    longest = Conversation._meta.get_field("title").max_length
    named = _("Fork of %(title)s")
    first, _place, last = named.partition("%(title)s")
    title = old.title
    if old.forked_from and title.startswith(first) and title.endswith(last):
        title = title[len(first) : len(title) - len(last)]
    return (named % {"title": title})[:longest] if title else ""


def _fork(
    message: Message, old: Conversation, client_id: str, digest: str, owner: User
) -> Conversation:
    workspace_id = message.workspace_id
    path = list(path_to(workspace_id, _end_of_turn(message), LONGEST_FORK + 1))
    if len(path) > LONGEST_FORK:
        refusal = _(
            "There are more than %(most)s messages up to here, which is too many for a fork. Fork at an earlier answer."
        )
        raise InvalidInput(refusal % {"most": whole(LONGEST_FORK)})
    new = Conversation.objects.create(
        workspace_id=workspace_id,
        owner=owner,
        bud_id=old.bud_id,
        title=_fork_title(old),
        title_source=old.title_source or TitleSource.MESSAGE.value,
        client_id=client_id,
        client_digest=digest,
        forked_from=old.pk,
        mcp_config_overrides=old.mcp_config_overrides,
        chosen_model_id=old.chosen_model_id,
        folder_id=old.folder_id,
        is_temporary=old.is_temporary,
        has_files=old.has_files,
    )
    messages = _copy_path(path, new)
    _copy_attachments(messages, copy_artifacts(source=old, target=new), new)
    _copy_turns(path, messages, new)
    Conversation.objects.for_workspace(workspace_id).filter(pk=new.pk).update(
        leaf=messages[path[-1].pk]
    )
    announce(
        workspace_id,
        Announcement(kind="conversation.changed", id=str(new.pk), user_id=str(owner.pk)),
    )
    return Conversation.objects.for_workspace(workspace_id).select_related("bud").fetch(new.pk)


def _end_of_turn(message: Message) -> UUID:
    """A turn is forked whole: the last of its messages. What was imported has none."""
    if message.turn_id is None:
        return message.pk
    rows = Message.objects.for_workspace(message.workspace_id).filter(role=message.role)
    steps = rows.filter(turn=message.turn).order_by("-step")
    last: UUID = steps.values_list("pk", flat=True)[:1].get()
    return last


def _copy_path(path: Sequence[Message], new: Conversation) -> dict[UUID, Message]:
    """Copies of the messages, by the originals' ids; their turns are set when those exist."""
    copies: dict[UUID, Message] = {}
    for place, row in enumerate(path, start=1):
        parent = copies.get(row.parent_id) if row.parent_id else None
        copies[row.pk] = _copy(
            row,
            conversation=new,
            parent=parent,
            turn=None,
            order_key=place,
            client_id=None,
            client_digest="",
        )
    Message.objects.bulk_create(copies.values())
    return copies


def _copy_attachments(
    messages: dict[UUID, Message], versions: dict[UUID, ArtifactVersion], new: Conversation
) -> None:
    """What the messages took along; files are those of the new conversation, as far as they were not deleted."""

    def changes_of(row: Attachment) -> dict[str, Any]:
        version = versions.get(row.version_id) if row.version_id else None
        file = {**row.file, "id": str(version.artifact_id)} if row.file and version else row.file
        return {"message": messages[row.message_id], "version": version, "file": file}

    rows = Attachment.objects.for_workspace(new.workspace_id).filter(message__in=list(messages))
    _copy_all(rows, changes_of)


def _copy_turns(path: Sequence[Message], messages: dict[UUID, Message], new: Conversation) -> None:
    """The turns that answered, as they ended, with their calls as cards. What they cost was paid elsewhere."""
    workspace_id = new.workspace_id
    ids = {row.turn_id for row in path if row.turn_id and row.role == MessageRole.ASSISTANT}
    turns: dict[UUID, Turn] = {}
    for turn in Turn.objects.for_workspace(workspace_id).filter(pk__in=ids).order_by("pk"):
        turns[turn.pk] = _copy(
            turn,
            conversation=new,
            user_message=messages[turn.user_message_id],
            client_id=None,
            can_retry=False,
            lease_owner="",
            lease_until=None,
            stop_requested_at=None,
            prompt_tokens=0,
            cached_tokens=0,
            completion_tokens=0,
            cost=None,
            revises=None,
            comparison=None,
            place=0,
            rating="",
            rating_reason="",
            rated_at=None,
        )
    Turn.objects.bulk_create(turns.values())
    answered = {turn.user_message_id: turn for turn in turns.values()}
    for row in path:
        copy = messages[row.pk]
        own = turns.get(row.turn_id) if row.role == MessageRole.ASSISTANT and row.turn_id else None
        copy.turn = own or answered.get(copy.pk)
    Message.objects.for_workspace(workspace_id).bulk_update(messages.values(), ["turn"])
    _copy_all(
        ToolCall.objects.for_workspace(workspace_id).filter(message__in=list(messages)),
        lambda row: {
            "message": messages[row.message_id],
            "turn": turns[row.turn_id],
            "approval_id": None,
            "checkpoint": None,
            "repeats": None,
        },
    )


def _copy_all(rows: Any, changes_of: Any) -> None:
    copies = [_copy(row, **changes_of(row)) for row in rows]
    if copies:
        type(copies[0])._default_manager.bulk_create(copies)


def _copy(row: Any, **changed: Any) -> Any:
    """A row with the same values but these, under an id of its own."""
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    for name in ("id", "created_at", "updated_at"):
        del values[name]
    copy = type(row)(id=uuid7(), **values)
    for name, value in changed.items():
        setattr(copy, name, value)
    return copy
