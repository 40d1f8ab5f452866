"""What a person does with conversations as a whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from chat.artifacts.services import forget_contents
from chat.engine import runner
from chat.engine.endings import end_turn
from chat.engine.titles import ask_for_title
from chat.live.recording import Changes, changing
from chat.models import Bud, Conversation, Folder, QueuedMessage, Turn
from chat.models.turns import ACTIVE, most_urgent
from chat.services.buds import check_servers
from chat.services.models import choose_model
from chat.services.share_ends import drop_share
from chat.services.turns import check_client_id, check_same, digest_of
from chat.values import BulkChange, McpConfigOverrides, TitleSource, TurnStatus, parse_value
from mcp_servers.client.inputs import InputKind
from mcp_servers.models import InputRequest, InputStatus, McpServer
from mcp_servers.registry import elicitation
from mcp_servers.registry.consent.permissions import forget_permissions_in
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.delivery.announcements import Announcement, announce
from workspaces.errors import Conflict, InvalidInput, NotFound
from workspaces.holding import hold
from workspaces.models import User, Workspace
from workspaces.roles import Permission, require

LONGEST_TITLE = 200


def create_conversation(
    *,
    bud: Bud,
    owner: User,
    actor: Actor,
    client_id: str | None = None,
    mcp_config_overrides: dict[str, Any] | None = None,
    model: dict[str, Any] | None = None,
    is_temporary: bool = False,
    folder_id: UUID | None = None,
) -> Conversation:
    """Open a conversation with a bud.

    Args:
        client_id: the caller's own id for it; the same one again gives the same conversation.
        mcp_config_overrides: what it changes of the bud's tools.
        model: the provider and name of the model that answers; None: the bud's own.
        is_temporary: whether it stands in no list, and is erased some hours after its last activity.
        folder_id: where it is sorted into.

    Raises:
        InvalidInput: the bud is archived, a malformed client id, or no such server, model or folder; or it is
            temporary and to be sorted.
        Conflict: the client id stands for something else.
    """
    require(actor, Permission.USE_CHAT, workspace_id=bud.workspace_id)
    if client_id is not None:
        check_client_id(client_id)
    mine = Conversation.objects.for_workspace(bud.workspace_id).filter(owner=owner)
    made = mine.select_related("bud").filter(client_id=client_id).first() if client_id else None
    asked = [
        json.dumps(one, sort_keys=True, default=str) for one in (mcp_config_overrides, model) if one
    ]
    if is_temporary:
        asked.append("temporary")
    if folder_id is not None:
        asked.append(f"folder {folder_id}")
    digest = digest_of("new", str(bud.pk), *asked)
    if made is not None:
        check_same(made.client_digest, digest)
        return made
    if bud.is_archived:
        raise InvalidInput(fields={"bud_id": [_("This bud is archived.")]})
    new = Conversation(
        workspace_id=bud.workspace_id, bud=bud, owner=owner, is_temporary=is_temporary
    )
    _check_is_kept(new, ["folder_id"] if folder_id is not None else [])
    new.folder = find_folder(new, folder_id)
    if mcp_config_overrides:
        set_overrides(new, mcp_config_overrides)
    if model is not None:
        new.chosen_model = choose_model(bud=bud, **model)
    new.client_id = client_id
    new.client_digest = digest if client_id is not None else ""
    try:
        return _create(new)
    except IntegrityError:
        # The same command came twice at once, and the other was first.
        made = mine.select_related("bud").get(client_id=client_id)
        check_same(made.client_digest, digest)
        return made


@transaction.atomic
def _create(conversation: Conversation) -> Conversation:
    _hold_folder(conversation)
    conversation.save(force_insert=True)
    announce(
        conversation.workspace_id,
        Announcement(
            kind="conversation.changed",
            id=str(conversation.pk),
            user_id=str(conversation.owner_id),
        ),
    )
    return conversation


def update_conversation(
    *,
    conversation: Conversation,
    actor: Actor,
    title: str | None = None,
    is_pinned: bool | None = None,
    is_archived: bool | None = None,
    mcp_config_overrides: dict[str, Any] | None = None,
    bud: Bud | None = None,
    **more: Any,
) -> Conversation:
    """Rename, pin, archive, or change which bud, model and tools it uses; None leaves a value as it is.

    Args:
        bud: who answers from now on. It answers with its own model, unless one is chosen with it.
        more: `model`, the provider and name of the model that answers from now on; None: the bud's own. `folder_id`,
            where it is sorted into; None: no folder.

    Raises:
        InvalidInput: the bud is archived, or there is no such server, model or folder; or a temporary conversation is to be
            pinned, archived or sorted, which only one that is kept can be.
        Conflict: another bud or model is chosen while an answer is being written.
    """
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    with changing(conversation.pk, conversation.workspace_id) as changes:
        row = changes.conversation
        sorted_as = {"is_pinned": is_pinned, "is_archived": is_archived, **more}
        _check_is_kept(row, [name for name in _SORTS if sorted_as.get(name)])
        if title is not None:
            row.title = title.strip()[:LONGEST_TITLE]
            row.title_source = TitleSource.PERSON.value
        if is_pinned is not None:
            row.is_pinned = is_pinned
        if is_archived is not None:
            row.is_archived = is_archived
        if mcp_config_overrides is not None:
            set_overrides(row, mcp_config_overrides)
        if "folder_id" in more:
            before = row.folder_id
            row.folder = find_folder(row, more["folder_id"])
            if row.folder_id != before:
                _hold_folder(row)
        status = active_status(row)
        if bud is not None or "model" in more:
            _set_bud_and_model(row, bud, more)
            if status is not None:
                raise Conflict(_("Please wait until the answer is complete, or stop it."))
        row.save(
            update_fields=[
                "title",
                "title_source",
                "is_pinned",
                "is_archived",
                "mcp_config_overrides",
                "folder",
                "bud",
                "chosen_model",
                "updated_at",
            ]
        )
        changes.conversation_row(turn_status=status)
    return row


_SORTS = ("is_pinned", "is_archived", "folder_id")
"""Where a conversation stands in its owner's list."""


def _check_is_kept(row: Conversation, fields: Sequence[str]) -> None:
    """Refuse what would sort a conversation that stands in no list."""
    if row.is_temporary and fields:
        why = _("This chat is temporary, so it is in no list. Keep it first.")
        raise InvalidInput(fields={name: [why] for name in fields})


def keep_conversation(*, conversation: Conversation, actor: Actor) -> Conversation:
    """Make a temporary conversation a usual one. One that is usual already stays as it is.

    From now on it is in its owner's list and search, and its model may name it.
    """
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    with changing(conversation.pk, conversation.workspace_id) as changes:
        row = changes.conversation
        if row.is_temporary:
            row.is_temporary = False
            row.save(update_fields=["is_temporary", "updated_at"])
            changes.conversation_row(turn_status=active_status(row))
            if row.title_source == TitleSource.MESSAGE.value:
                transaction.on_commit(partial(ask_for_title, row.workspace_id, row.pk))
    return row


def find_folder(row: Conversation, folder_id: UUID | None) -> Folder | None:
    """A folder of the conversation's owner; None: none is wanted.

    Raises:
        InvalidInput: there is no such folder.
    """
    if folder_id is None:
        return None
    mine = Folder.objects.for_workspace(row.workspace_id).filter(owner_id=row.owner_id)
    folder: Folder | None = mine.find(folder_id)
    if folder is None:
        raise InvalidInput(fields={"folder_id": [_("You have no such folder.")]})
    return folder


def _hold_folder(row: Conversation) -> None:
    """In a transaction: have the folder of a conversation stay until it is sorted into it.

    Raises:
        InvalidInput: another tab has deleted it.
    """
    if row.folder is None:
        return
    try:
        hold(row.folder)
    except NotFound as error:
        raise InvalidInput(fields={"folder_id": [_("You have no such folder.")]}) from error


def change_conversations(
    *,
    ids: Sequence[UUID],
    change: BulkChange,
    workspace: Workspace,
    person: User,
    actor: Actor,
    folder_id: UUID | None = None,
) -> list[Conversation]:
    """Do one thing with several of a person's conversations, each in a transaction of its own.

    Gives them as they are then; those that were erased are no more, and those that another tab erased meanwhile.

    Raises:
        InvalidInput: one of them, or the folder, is not there, or a temporary one is to be sorted; then nothing is changed.
    """
    require(actor, Permission.USE_CHAT, workspace_id=workspace.pk)
    rows = Conversation.objects.for_workspace(workspace)
    is_of_deleted = change in (BulkChange.RESTORE, BulkChange.ERASE)
    mine = rows.deleted_by(person) if is_of_deleted else rows.filter(owner=person, deleted_at=None)
    found = {row.pk: row for row in mine.filter(pk__in=ids).select_related("bud", "chosen_model")}
    if len(found) != len(set(ids)):
        raise InvalidInput(fields={"ids": [_("One of these conversations no longer exists.")]})
    if change in (BulkChange.ARCHIVE, BulkChange.MOVE):
        for row in found.values():
            _check_is_kept(row, ["ids"])
    if change is BulkChange.MOVE and found:
        find_folder(next(iter(found.values())), folder_id)
    changed = []
    for pk in dict.fromkeys(ids):
        row = found[pk]
        with suppress(NotFound):  # another tab was faster; the others are changed all the same
            if (now := _change_one(row, change, actor, folder_id)) is not None:
                changed.append(now)
    return changed


def _change_one(
    row: Conversation, change: BulkChange, actor: Actor, folder_id: UUID | None
) -> Conversation | None:
    """Give it as it is then; None: it is no more."""
    match change:
        case BulkChange.ERASE:
            erase_from_trash(conversation=row, actor=actor)
            return None
        case BulkChange.DELETE:
            delete_conversation(conversation=row, actor=actor)
            return row
        case BulkChange.RESTORE:
            return restore_conversation(conversation=row, actor=actor)
        case BulkChange.MOVE:
            return update_conversation(conversation=row, actor=actor, folder_id=folder_id)
    is_archived = change is BulkChange.ARCHIVE
    return update_conversation(conversation=row, actor=actor, is_archived=is_archived)


def set_overrides(row: Conversation, given: dict[str, Any]) -> None:
    """Put what a conversation changes of its bud's tools into its row, which the caller saves.

    Raises:
        InvalidInput: it does not fit, or names a server that its owner does not have here.
    """
    overrides = parse_value(McpConfigOverrides, given, field="mcp_config_overrides")
    rows = McpServer.objects.for_workspace(row.workspace_id).visible_to(row.owner)
    # What has gone since it was named must not stand in the way of other changes.
    named = {*overrides.additional_servers, *overrides.disabled_servers}
    known = {*row.overrides.additional_servers, *row.overrides.disabled_servers}
    check_servers(named - known, rows, field="mcp_config_overrides")
    row.mcp_config_overrides = overrides.model_dump(mode="json")


def _set_bud_and_model(row: Conversation, bud: Bud | None, given: dict[str, Any]) -> None:
    if bud is not None and bud.pk != row.bud_id:
        if bud.is_archived:
            raise InvalidInput(fields={"bud_id": [_("This bud is archived.")]})
        row.bud = bud
        row.chosen_model = None
    if "model" in given:
        model = given["model"]
        row.chosen_model = choose_model(bud=row.bud, **model) if model is not None else None


def delete_conversation(*, conversation: Conversation, actor: Actor) -> None:
    """Delete a conversation. What runs in it is stopped, and what it asks is withdrawn.

    For some days it can be brought back by `restore_conversation`; then it is erased. A temporary one is erased at once.
    """
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    with changing(conversation.pk, conversation.workspace_id) as changes:
        # Its owner may have kept it in another tab since it was read.
        if changes.conversation.is_temporary or settings.TRELLIS.deleted_conversation_days == 0:
            erase_with(changes, actor)
        else:
            delete_with(changes, actor)


def delete_with(changes: Changes, actor: Actor) -> None:
    """Delete the locked conversation so that it can be brought back; in the caller's transaction."""
    row = changes.conversation
    _end_all(row, changes)
    _withdraw_inputs(row, actor)
    row.deleted_at = database_now()
    row.save(update_fields=["deleted_at", "updated_at"])
    changes.conversation_row(turn_status=None)


def restore_conversation(*, conversation: Conversation, actor: Actor) -> Conversation:
    """Bring a deleted conversation back, as it was but for what was stopped."""
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    with changing(conversation.pk, conversation.workspace_id) as changes:
        row = changes.conversation
        row.deleted_at = None
        row.save(update_fields=["deleted_at", "updated_at"])
        changes.conversation_row(turn_status=None)
    return row


def erase_conversation(*, conversation: Conversation, actor: Actor) -> None:
    """Erase a conversation with all its messages, what servers asked in it and what was allowed for it.

    The audit log keeps what was called.
    """
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    # The engine's writes take this lock first too, so that neither stands in the other's way.
    with changing(conversation.pk, conversation.workspace_id) as changes:
        erase_with(changes, actor)


def erase_from_trash(*, conversation: Conversation, actor: Actor) -> None:
    """Erase a deleted conversation.

    Raises:
        NotFound: it was erased or brought back meanwhile.
    """
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    with changing(conversation.pk, conversation.workspace_id) as changes:
        if changes.conversation.deleted_at is None:
            raise NotFound(_("This chat was brought back, so it was not erased."))
        erase_with(changes, actor)


def erase_with(changes: Changes, actor: Actor) -> None:
    """Erase the locked conversation with all that is its; in the caller's transaction."""
    conversation = changes.conversation
    _end_all(conversation, changes)
    _forget_inputs(conversation, actor)
    forget_permissions_in(conversation.workspace_id, conversation.pk, actor)
    drop_share(conversation, actor)
    changes.conversation_row(turn_status=None)
    forget_contents(conversation)
    conversation.delete()


def _end_all(conversation: Conversation, changes: Changes) -> None:
    """Send nothing more, and end what runs."""
    workspace_id = conversation.workspace_id
    QueuedMessage.objects.for_workspace(workspace_id).filter(conversation=conversation).delete()
    turns = Turn.objects.for_workspace(workspace_id)
    for turn in turns.filter(conversation=conversation, status__in=ACTIVE):
        # Ended here, and not by its holder: the log has to learn of the end while the rows are there.
        end_turn(turn, TurnStatus.CANCELLED, changes)
        transaction.on_commit(partial(runner.stop, turn.pk))


def _withdraw_inputs(conversation: Conversation, actor: Actor) -> None:
    rows = InputRequest.objects.for_workspace(conversation.workspace_id).filter(
        conversation_id=conversation.pk, status=InputStatus.PENDING.value
    )
    for call_id in set(rows.values_list("call_id", flat=True)):
        elicitation.withdraw_inputs(
            call_id=call_id, workspace_id=conversation.workspace_id, actor=actor
        )


def _forget_inputs(conversation: Conversation, actor: Actor) -> None:
    """Take back what is still open, and keep nobody's answers. What sampling has cost still counts."""
    rows = InputRequest.objects.for_workspace(conversation.workspace_id).filter(
        conversation_id=conversation.pk
    )
    _withdraw_inputs(conversation, actor)
    rows.exclude(kind=InputKind.SAMPLING.value).delete()
    rows.update(
        message="",
        params={},
        schema={},
        warnings=[],
        answer=None,
        conversation_id=None,
        turn_id=None,
    )


def active_status(conversation: Conversation) -> str | None:
    """The status of the turn that is under way, if there is one; of several, the most urgent."""
    turns = Turn.objects.for_workspace(conversation.workspace_id)
    active = turns.filter(conversation=conversation, status__in=ACTIVE)
    return most_urgent(active.values_list("status", flat=True))
