"""Chats to share, for tests, and who may read them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from uuid_utils.compat import uuid7

from audit.models import AuditEntry
from chat.artifacts.calls import reference
from chat.artifacts.services import create_artifact
from chat.models import (
    Attachment,
    Bud,
    Conversation,
    Message,
    ShareAudience,
    SharedChat,
    ToolCall,
    Turn,
)
from chat.services.buds import create_bud
from chat.services.conversations import (
    create_conversation,
)
from chat.services.shared_reading import find_shared
from chat.services.sharing import (
    ShareChoice,
    link_of,
    share_conversation,
)
from chat.values import ArtifactOrigin, AttachmentStatus
from mcp_servers.registry.services.rules import set_workspace_rule
from tests.factories import Tenant
from workspaces.errors import InvalidInput, NotFound
from workspaces.models import User

SECRET = "sk-canary-0123456789abcdefghij"


def make_bud(tenant: Tenant, name: str = "Notes") -> Bud:
    return create_bud(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor(),
        values={"slug": name.lower(), "name": name},
        provider_id=None,
    )


def make_conversation(tenant: Tenant, bud: Bud) -> Conversation:
    """A question with a file and a resource, a tool call, and its answer."""
    made = create_conversation(bud=bud, owner=tenant.member, actor=tenant.actor("member"))
    question = add_message(made, "user", f"Why? My key is {SECRET}", None)
    turn = Turn.objects.create(
        workspace=tenant.workspace,
        conversation=made,
        user_message=question,
        asked_by=tenant.member,
        source="web",
        status="completed",
        error_message="PRIVATE-ERROR",
    )
    answer = add_message(made, "assistant", "**Because** of it.", question, turn)
    answer.reasoning = "PRIVATE-THOUGHT"
    answer.save()
    ToolCall.objects.create(
        workspace=tenant.workspace,
        turn=turn,
        message=answer,
        position=0,
        server_name="crm",
        tool_name="find_orders",
        arguments={"customer": "ACME-ARGUMENT", "api_key": "k-SECRET-ARGUMENT"},
        status="succeeded",
        model_text=f"ORDER-RESULT {SECRET}",
        decided_by=tenant.admin,
    )
    file = create_artifact(
        conversation=made,
        name="plan.md",
        content=b"FILE-CONTENT",
        actor=tenant.actor("member"),
        origin=ArtifactOrigin.UPLOAD,
    )
    Attachment.objects.create(
        workspace=tenant.workspace,
        message=question,
        position=0,
        version=file.version,
        file=reference(file.artifact, file.version),
        title="plan.md",
        status=AttachmentStatus.READY.value,
        model_text="FILE-CONTENT",
    )
    Attachment.objects.create(
        workspace=tenant.workspace,
        message=question,
        position=1,
        server_id=uuid7(),
        server_name="crm",
        uri="crm://PRIVATE-RESOURCE",
        title="PRIVATE-RESOURCE",
        model_text="PRIVATE-RESOURCE",
    )
    rows = Conversation.objects.for_workspace(tenant.workspace)
    rows.filter(pk=made.pk).update(leaf=answer, title="Orders", is_pinned=True)
    return rows.select_related("bud").get(pk=made.pk)


def add_message(
    conversation: Conversation,
    role: str,
    text: str,
    parent: Message | None,
    turn: Turn | None = None,
    status: str = "complete",
) -> Message:
    rows = Message.objects.for_workspace(conversation.workspace_id)
    message: Message = Message.objects.create(
        workspace_id=conversation.workspace_id,
        conversation=conversation,
        parent=parent,
        turn=turn,
        role=role,
        text=text,
        status=status,
        order_key=rows.filter(conversation=conversation).count() + 1,
    )
    return message


def allow_links(tenant: Tenant, is_on: bool) -> None:
    set_workspace_rule(
        workspace=tenant.workspace,
        rule="allows_public_links",
        is_on=is_on,
        actor=tenant.actor("owner"),
    )


def share(
    tenant: Tenant,
    conversation: Conversation,
    audience: ShareAudience = ShareAudience.WORKSPACE,
    **choice: Any,
) -> SharedChat:
    return share_conversation(
        conversation=conversation,
        choice=ShareChoice(audience=audience, **choice),
        actor=tenant.actor("member"),
    )


def token_of(shared: SharedChat) -> str:
    return link_of(shared).rstrip("/").rpartition("/")[2]


def may_read(shared: SharedChat, person: User | None) -> bool:
    try:
        find_shared(token_of(shared), person)
    except NotFound:
        return False
    return True


def page(shared: SharedChat, client: Client) -> Any:
    return client.get(f"/shared/{token_of(shared)}/")


def faults(tenant: Tenant, conversation: Conversation, **choice: Any) -> dict[str, list[str]]:
    with pytest.raises(InvalidInput) as refused:
        share(tenant, conversation, **choice)
    return refused.value.fields or {"": [refused.value.message]}


def entries_of(tenant: Tenant) -> list[AuditEntry]:
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    return [one for one in rows.order_by("id") if one.details.get("kind") == "shared chat"]
