"""Chats of a person, copies of them, and imports of those copies."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.files.base import ContentFile

from chat.artifacts import storage
from chat.models import Bud, ChatImport, Conversation, DataCopy, DataCopyPart, Message
from chat.services.copy_making import make_due
from chat.services.data_copies import request_copy
from chat.services.import_reading import read_due
from chat.services.imports import start_import
from tests.factories import Tenant

BEGAN = datetime(2024, 3, 1, 9, 30, tzinfo=UTC)


def bud_of(tenant: Tenant, **values: Any) -> Bud:
    rows = Bud.objects.for_workspace(tenant.workspace)
    slug = values.setdefault("slug", "bud")
    made: Bud | None = rows.filter(slug=slug).first()
    return made or Bud.objects.create(workspace=tenant.workspace, name="Bud", **values)


def say(chat: Conversation, text: str, parent: Message | None, minute: int) -> Message:
    """A message of a branch, as if it had been said then."""
    role = "user" if parent is None or parent.role == "assistant" else "assistant"
    message = Message.objects.create(
        workspace_id=chat.workspace_id,
        conversation=chat,
        parent=parent,
        role=role,
        text=text,
        status="complete",
        order_key=minute,
    )
    at = BEGAN + timedelta(minutes=minute)
    Message.objects.for_workspace(chat.workspace_id).filter(pk=message.pk).update(created_at=at)
    return message


def a_chat(tenant: Tenant, title: str = "Radish planning", **values: Any) -> Conversation:
    """A chat with two answers to its question, of which the first is shown, and a second question below it."""
    chat = Conversation.objects.create(
        workspace=tenant.workspace,
        owner=tenant.member,
        bud=bud_of(tenant),
        title=title,
        title_source="person",
        **values,
    )
    asked = say(chat, f"When do I sow? {title}", None, 1)
    answer = say(chat, "In April.", asked, 2)
    say(chat, "In July.", asked, 3)
    leaf = say(chat, "And turnips?", answer, 4)
    Conversation.objects.for_workspace(tenant.workspace).filter(pk=chat.pk).update(
        leaf=leaf, created_at=BEGAN, last_message_at=BEGAN + timedelta(minutes=4)
    )
    chat.refresh_from_db()
    return chat


def ask(tenant: Tenant, **values: Any) -> DataCopy:
    return request_copy(
        workspace=tenant.workspace,
        owner=tenant.member,
        actor=tenant.actor("member"),
        **values,
    )


def make(tenant: Tenant, **values: Any) -> DataCopy:
    """Ask for a copy, and make it to its end."""
    row = ask(tenant, **values)
    make_due(600)
    row.refresh_from_db()
    return row


def parts_of(row: DataCopy) -> list[DataCopyPart]:
    return list(DataCopyPart.objects.for_workspace(row.workspace_id).filter(copy=row))


def opened(row: DataCopy) -> dict[str, bytes]:
    """All that is in its ZIPs."""
    found: dict[str, bytes] = {}
    for part in parts_of(row):
        with zipfile.ZipFile(io.BytesIO(storage.read(part.path))) as opened_part:
            assert opened_part.testzip() is None
            found |= {one: opened_part.read(one) for one in opened_part.namelist()}
    return found


def bring(tenant: Tenant, content: bytes) -> ChatImport:
    row = start_import(
        workspace=tenant.workspace,
        owner=tenant.member,
        bud=bud_of(tenant),
        name="copy.zip",
        file=ContentFile(content),
        actor=tenant.actor("member"),
    )
    read_due(600)
    row.refresh_from_db()
    return row
