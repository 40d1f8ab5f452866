"""Questions that are put to nobody: each is an entry of the log, and the person reads in their chat that it was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import transaction

from audit.actions import Action
from audit.services import EntryDraft, Ref, record
from mcp_servers.client.canonical import clean_text
from mcp_servers.client.inputs import InputKind
from mcp_servers.models import InputRequest, InputStatus
from mcp_servers.registry.elicitation.rows import announce_row, tell_listener
from mcp_servers.registry.elicitation.services import MOST_IN_CALL
from workspaces.database import database_now

if TYPE_CHECKING:
    from mcp_servers.client.inputs import AskedInput
    from mcp_servers.registry.elicitation.rows import QuestionOrigin

_LONGEST_SHOWN: Final = 500


@transaction.atomic
def turn_away(asked: AskedInput, origin: QuestionOrigin, reason: str) -> None:
    """Record that a question was put to nobody, and why. In a chat its person can read it."""
    record(
        EntryDraft(
            action=Action.INPUT_REFUSED,
            actor=origin.actor,
            workspace_id=origin.server.workspace_id,
            call_id=origin.call_id,
            conversation_id=origin.conversation_id,
            turn_id=origin.turn_id,
            server=Ref(id=origin.server.pk, name=origin.server.name),
            tool=Ref(id=None, name=origin.tool_name),
            details={"kind": asked.kind.value, "reason": reason},
        )
    )
    is_for_people = asked.kind in (InputKind.FORM, InputKind.URL)
    if is_for_people and origin.conversation_id is not None and origin.actor.user_id is not None:
        _keep(asked, origin, origin.actor.user_id, reason)


def _keep(asked: AskedInput, origin: QuestionOrigin, person_id: UUID, reason: str) -> None:
    """The words alone: neither a form nor a link that may not be put to anybody."""
    rows = InputRequest.objects.for_workspace(origin.server.workspace_id)
    if rows.filter(call_id=origin.call_id, status=InputStatus.REFUSED).count() >= MOST_IN_CALL:
        return
    now = database_now()
    message = clean_text(asked.message)
    row = InputRequest.objects.create(
        workspace_id=origin.server.workspace_id,
        call_id=origin.call_id,
        conversation_id=origin.conversation_id,
        turn_id=origin.turn_id,
        asked_of_id=person_id,
        server_id=origin.server.pk,
        server_name=origin.server.name,
        tool_name=origin.tool_name,
        kind=asked.kind.value,
        message=message[:_LONGEST_SHOWN] + "…" * (len(message) > _LONGEST_SHOWN),
        warnings=[reason],
        status=InputStatus.REFUSED,
        expires_at=now,
        answered_at=now,
    )
    announce_row(row)
    tell_listener(row)
