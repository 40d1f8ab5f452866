"""Drafts that follow a person from device to device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from chat.models import Conversation, Draft
from chat.services.turns import check_text
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.delivery.announcements import Announcement, announce
from workspaces.errors import InvalidInput
from workspaces.models import User, Workspace
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from mcp_servers.client.values import JsonValue

CHANGED: Final = "draft.changed"
"""A draft has another text; what is open of its writer shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenFile:
    """A file of the conversation, and how the page shows it."""

    artifact_id: UUID
    version: int
    title: str
    kind: str
    size: int
    is_new: bool = False
    """It was uploaded for this draft, and no message has it yet."""

    def as_json(self) -> dict[str, JsonValue]:
        """As it is kept, and as REST gives it."""
        return {**asdict(self), "artifact_id": str(self.artifact_id)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenResource:
    """A resource of a server, and how the page shows it."""

    server_id: UUID
    uri: str
    title: str
    server_name: str
    resource_id: UUID | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """As it is kept, and as REST gives it."""
        row = self.resource_id
        ids = {"server_id": str(self.server_id), "resource_id": str(row) if row else None}
        return {**asdict(self), **ids}


Chosen: TypeAlias = ChosenFile | ChosenResource


def keep_draft(
    *,
    workspace: Workspace,
    owner: User,
    actor: Actor,
    conversation_id: UUID | None,
    text: str,
    attachments: Sequence[Chosen] = (),
    written_at: datetime,
    base_version: int | None = None,
) -> Draft:
    """Keep what stands in a message field. Gives what is kept, which may be what another device wrote.

    Args:
        text: empty where it was sent or removed.
        attachments: files and resources that were chosen. Whether they are there is seen when the message is sent.
        written_at: by the device's clock; a time to come counts as now.
        base_version: the version that the device has seen, 0 for none; one that it has not seen stays. None: the last
            writer wins by time.

    Raises:
        InvalidInput: the conversation is not there or is temporary, or the text is too long or cannot be stored.
    """
    require(actor, Permission.USE_CHAT, workspace_id=workspace.pk)
    check_text(text, may_be_empty=True)
    chats = Conversation.objects.for_workspace(workspace).filter(owner=owner, deleted_at=None)
    chat = chats.find(conversation_id) if conversation_id is not None else None
    if conversation_id is not None and chat is None:
        raise InvalidInput(fields={"conversation_id": [_("There is no such conversation.")]})
    if chat is not None and chat.is_temporary:
        why = _("This chat is temporary, so what is written in it stays on its device.")
        raise InvalidInput(fields={"conversation_id": [why]})
    written_at = min(written_at, database_now())
    mine = Draft.objects.for_workspace(workspace).filter(owner=owner)
    place = {"conversation_id": conversation_id}
    values = {"workspace_id": workspace.pk, "owner": owner, **place}
    contents: dict[str, Any] = {
        "text": text,
        "attachments": [one.as_json() for one in attachments],
        "written_at": written_at,
    }
    may_replace = Q(written_at__lte=written_at) if base_version is None else Q(version=base_version)
    with transaction.atomic():
        before: Draft | None = mine.filter(**place).first()
        if before is None:
            # Two devices may keep the first one at the same moment.
            Draft.objects.bulk_create([Draft(**values, **contents)], ignore_conflicts=True)
        stored = before or mine.get(**place)
        # The same text again says nothing new: a device whose clock is ahead sends it whenever it hears of one.
        is_same = (stored.text, stored.attachments) == (text, contents["attachments"])
        change = (
            {"written_at": written_at} if is_same else {**contents, "version": F("version") + 1}
        )
        mine.filter(may_replace, **place).update(**change)
        kept: Draft = mine.get(**place)
        if (kept.text, kept.attachments) != (
            (before.text, before.attachments) if before is not None else ("", [])
        ):
            announcement = Announcement(
                kind=CHANGED, id=str(conversation_id or workspace.pk), user_id=str(owner.pk)
            )
            announce(workspace.pk, announcement)
    return kept
