"""Reading what a person attached, before the model is asked: resources through the gate, files in a child process.

Each result is committed by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_noop

from audit.services import Ref
from chat.artifacts.readings import LONGEST_OVERVIEW, overview, read_version, text_of
from chat.engine.caller import AttachmentCaller
from chat.engine.leases import Lease
from chat.engine.rows import held_turn
from chat.engine.trust import shown
from chat.models import Attachment, Bud, FileReading, Message
from chat.values import AttachmentStatus
from mcp_servers.client.hidden_text import show_hidden, strip_hidden
from mcp_servers.client.values import ResourceOutcome, ResourceRequest
from mcp_servers.gate import read_resource
from workspaces.actors import Actor
from workspaces.database import database_now, in_database
from workspaces.errors import DomainError

SIDE_BY_SIDE = 4
MOST_CHARACTERS = 60_000
"""Of one resource, for the model; the page has what the server's own limit allows."""
_IN_PART = gettext_noop("Only its beginning could be read.")
_REST = "\n[the rest was cut off]"
_DELETED = gettext_noop("This file has been deleted.")


async def read_attachments(
    lease: Lease, attachment_ids: Sequence[UUID], *, actor: Actor, bud: Bud
) -> None:
    """Read each; one that cannot be read says so, and keeps no other from being read."""
    limit = asyncio.Semaphore(SIDE_BY_SIDE)

    async def read(attachment_id: UUID) -> None:
        async with limit:
            await _read_one(lease, attachment_id, actor, bud)

    ended = await asyncio.gather(*(read(one) for one in attachment_ids), return_exceptions=True)
    for failure in ended:
        if failure is not None:
            raise failure


async def _read_one(lease: Lease, attachment_id: UUID, actor: Actor, bud: Bud) -> None:
    row = await in_database(_fetch, lease, attachment_id)
    if row.server_id is None:
        await _read_file(lease, row)
        return
    request = ResourceRequest(
        # The same for every try, so that a question of the server that was answered is not put again.
        call_id=row.pk,
        workspace_id=lease.workspace_id,
        server_id=row.server_id,
        uri=row.uri,
        actor=actor,
        bud=Ref(id=bud.pk, name=bud.name),
        conversation_id=lease.conversation_id,
        turn_id=lease.turn_id,
    )
    try:
        outcome = await read_resource(request, caller=AttachmentCaller(lease, row.pk))
    except DomainError as error:
        await in_database(_fail, lease, attachment_id, error.message)
    else:
        await in_database(_finish, lease, attachment_id, outcome)


async def _read_file(lease: Lease, row: Attachment) -> None:
    if row.version_id is None:
        await in_database(_fail, lease, row.pk, _DELETED)
        return
    try:
        reading = await read_version(lease.workspace_id, row.version_id)
        text = "" if reading.picture_path else await in_database(text_of, reading)
    except DomainError as error:
        await in_database(_fail, lease, row.pk, error.message)
    else:
        await in_database(_finish_file, lease, row.pk, reading, strip_hidden(text))


def _finish_file(lease: Lease, attachment_id: UUID, reading: FileReading, text: str) -> None:
    with held_turn(lease) as (changes, _):
        row = _fetch(lease, attachment_id)
        row.status = AttachmentStatus.READY.value
        row.model_text = text[:MOST_CHARACTERS]
        row.characters = len(text)
        row.overview = overview(reading, text) if len(text) > LONGEST_OVERVIEW else ""
        row.error = _IN_PART if reading.is_cut else ""
        row.read_at = database_now()
        row.save()
        changes.message(_message_of(row))


def _fetch(lease: Lease, attachment_id: UUID) -> Attachment:
    return Attachment.objects.for_workspace(lease.workspace_id).fetch(attachment_id)


def _finish(lease: Lease, attachment_id: UUID, outcome: ResourceOutcome) -> None:
    if outcome.is_error:
        _fail(lease, attachment_id, outcome.message)
        return
    with held_turn(lease) as (changes, _):
        row = _fetch(lease, attachment_id)
        texts = [strip_hidden(part.as_model_text()) for part in outcome.content]
        text = "\n".join(texts)
        is_cut = outcome.truncated or len(text) > MOST_CHARACTERS
        row.status = AttachmentStatus.READY.value
        row.content = shown([part.as_json() for part in outcome.content])
        row.size = sum(map(_size_of, row.content))
        row.model_text = text[:MOST_CHARACTERS] + (_REST if is_cut else "")
        row.error = _IN_PART if is_cut else ""
        row.read_at = database_now()
        row.save()
        changes.message(_message_of(row))


def _size_of(part: Mapping[str, Any]) -> int:
    return len(str(part.get("text") or part.get("data") or "").encode())


def _fail(lease: Lease, attachment_id: UUID, reason: str) -> None:
    with held_turn(lease) as (changes, _):
        row = _fetch(lease, attachment_id)
        row.status = AttachmentStatus.FAILED.value
        row.error = show_hidden(reason)
        row.read_at = database_now()
        row.save()
        changes.message(_message_of(row))


def _message_of(row: Attachment) -> Message:
    return Message.objects.for_workspace(row.workspace_id).fetch(row.message_id)
