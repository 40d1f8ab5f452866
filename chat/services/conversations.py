"""What a person does with conversations as a whole."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import IntegrityError, transaction

from chat.artifacts.services import forget_contents
from chat.engine import runner
from chat.engine.endings import end_turn
from chat.models import Bud, Conversation, QueuedMessage, Turn
from chat.models.turns import ACTIVE
from chat.recording import changing
from chat.services.buds import check_servers
from chat.services.turns import check_client_id, check_same, digest_of
from chat.values import McpConfigOverrides, TitleSource, TurnStatus, parse_value
from mcp_servers.client.inputs import InputKind
from mcp_servers.models import InputRequest, InputStatus, McpServer, ToolPermission
from mcp_servers.registry import elicitation
from mcp_servers.registry.consent.permissions import forget_permission
from workspaces.actors import Actor
from workspaces.announcements import Announcement, announce
from workspaces.errors import InvalidInput
from workspaces.models import User
from workspaces.roles import Permission, require

LONGEST_TITLE = 200


def create_conversation(
    *, bud: Bud, owner: User, actor: Actor, client_id: str | None = None
) -> Conversation:
    """Open a conversation with a bud.

    Args:
        client_id: the caller's own id for it; the same one again gives the same conversation.

    Raises:
        InvalidInput: the bud is archived, or a malformed client id.
        Conflict: the client id stands for something else.
    """
    require(actor, Permission.USE_CHAT, workspace_id=bud.workspace_id)
    if client_id is not None:
        check_client_id(client_id)
    mine = Conversation.objects.for_workspace(bud.workspace_id).filter(owner=owner)
    made = mine.select_related("bud").filter(client_id=client_id).first() if client_id else None
    digest = digest_of("new", str(bud.pk))
    if made is not None:
        check_same(made.client_digest, digest)
        return made
    if bud.is_archived:
        raise InvalidInput(fields={"bud_id": ["This bud is archived."]})
    try:
        return _create(bud, owner, client_id, digest)
    except IntegrityError:
        # The same command came twice at once, and the other was first.
        made = mine.select_related("bud").get(client_id=client_id)
        check_same(made.client_digest, digest)
        return made


@transaction.atomic
def _create(bud: Bud, owner: User, client_id: str | None, digest: str) -> Conversation:
    conversation = Conversation.objects.create(
        workspace_id=bud.workspace_id,
        bud=bud,
        owner=owner,
        client_id=client_id,
        client_digest=digest if client_id is not None else "",
    )
    announce(
        conversation.workspace_id,
        Announcement(kind="conversation.changed", id=str(conversation.pk), user_id=str(owner.pk)),
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
) -> Conversation:
    """Rename, pin, archive, or change which tools it may use; None leaves a value as it is."""
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    with changing(conversation.pk, conversation.workspace_id) as changes:
        row = changes.conversation
        if title is not None:
            row.title = title.strip()[:LONGEST_TITLE]
            row.title_source = TitleSource.PERSON.value
        if is_pinned is not None:
            row.is_pinned = is_pinned
        if is_archived is not None:
            row.is_archived = is_archived
        if mcp_config_overrides is not None:
            overrides = parse_value(
                McpConfigOverrides, mcp_config_overrides, field="mcp_config_overrides"
            )
            rows = McpServer.objects.for_workspace(row.workspace_id).visible_to(row.owner)
            # What has gone since it was named must not stand in the way of other changes.
            named = {*overrides.additional_servers, *overrides.disabled_servers}
            known = {*row.overrides.additional_servers, *row.overrides.disabled_servers}
            check_servers(named - known, rows, field="mcp_config_overrides")
            row.mcp_config_overrides = overrides.model_dump(mode="json")
        row.save(
            update_fields=[
                "title",
                "title_source",
                "is_pinned",
                "is_archived",
                "mcp_config_overrides",
                "updated_at",
            ]
        )
        changes.conversation_row(turn_status=active_status(row))
    return row


def delete_conversation(*, conversation: Conversation, actor: Actor) -> None:
    """Delete a conversation with all its messages, what servers asked in it and what was allowed for it.

    What runs in it is stopped first. The audit log keeps what was called.
    """
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    workspace_id = conversation.workspace_id
    # The engine's writes take this lock first too, so that neither stands in the other's way.
    with changing(conversation.pk, workspace_id) as changes:
        conversation = changes.conversation
        QueuedMessage.objects.for_workspace(workspace_id).filter(conversation=conversation).delete()
        turns = Turn.objects.for_workspace(workspace_id)
        for turn in turns.filter(conversation=conversation, status__in=ACTIVE):
            # Ended here, and not by its holder: the log has to learn of the end while the rows are there.
            end_turn(turn, TurnStatus.CANCELLED, changes)
            transaction.on_commit(partial(runner.stop, turn.pk))
        _forget_inputs(conversation, actor)
        allowed = ToolPermission.objects.for_workspace(conversation.workspace_id).filter(
            conversation_id=conversation.pk
        )
        for permission in allowed.select_related("tool__server"):
            forget_permission(permission=permission, actor=actor)
        changes.conversation_row(turn_status=None)
        forget_contents(conversation)
        conversation.delete()


def _forget_inputs(conversation: Conversation, actor: Actor) -> None:
    """Take back what is still open, and keep nobody's answers. What sampling has cost still counts."""
    rows = InputRequest.objects.for_workspace(conversation.workspace_id).filter(
        conversation_id=conversation.pk
    )
    open_calls = rows.filter(status=InputStatus.PENDING.value).values_list("call_id", flat=True)
    for call_id in set(open_calls):
        elicitation.withdraw_inputs(
            call_id=call_id, workspace_id=conversation.workspace_id, actor=actor
        )
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
    """The status of the turn that is under way, if there is one."""
    turns = Turn.objects.for_workspace(conversation.workspace_id)
    active = turns.filter(conversation=conversation, status__in=ACTIVE)
    return active.values_list("status", flat=True).first()
