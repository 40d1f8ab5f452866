"""Rows of what servers ask: opened by the gate, answered by the one person who was asked.

Every question, answer and refusal to ask is an entry of the log; what the answer says is sealed, and goes to the
server and to nobody else.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from audit.actions import Action
from audit.services import record
from mcp_servers.client.canonical import JsonValue, clean_text
from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.client.inputs import AskedInput, InputAction, InputAnswer, InputKind
from mcp_servers.models import InputRequest, InputStatus
from mcp_servers.registry.elicitation import checks, waiting
from mcp_servers.registry.elicitation.rows import (
    QuestionOrigin,
    announce_row,
    draft_of,
    facts_of,
    lock,
    settle,
    tell_listener,
)
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.redaction import MASK, redact_known
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from datetime import datetime

    from mcp_servers.models import McpServer
    from workspaces.scoping import WorkspaceQuerySet


MOST_IN_CALL: Final = 20
MOST_IN_HOUR: Final = 60
"""From one server to one person."""
KEPT_DAYS: Final = 30

_STATUS_OF: Final = {
    InputAction.ACCEPT: InputStatus.ACCEPTED,
    InputAction.DECLINE: InputStatus.DECLINED,
    InputAction.CANCEL: InputStatus.CANCELLED,
}
_ACTION_OF: Final = {
    InputStatus.ACCEPTED: InputAction.ACCEPT,
    InputStatus.DECLINED: InputAction.DECLINE,
}


_WITHOUT_ANSWER: Final = (InputStatus.CANCELLED, InputStatus.EXPIRED, InputStatus.REFUSED)


@transaction.atomic
def open_input(
    asked: AskedInput,
    origin: QuestionOrigin,
    *,
    is_settled: bool = False,
    answered_before: datetime | None = None,
    used: Collection[UUID] = (),
) -> InputRequest:
    """Put a question to the person for whom the call is made.

    Args:
        answered_before: when this attempt of the call began. The same question, put during an earlier attempt, is
            not put again: its row is given.
        used: rows that were given already, each of which stands for one question.
        is_settled: an administrator has answered for everybody, so the row only keeps count.

    Raises:
        checks.Unaskable: it may not be put to anybody; turn_away() records that.
        AuditUnavailable: it could not be recorded, so nobody is asked.
    """
    if origin.actor.user_id is None:
        raise checks.InvalidInputRequest(gettext_noop("nobody is there to be asked."))
    if not origin.server.answers_elicitation and asked.kind is not InputKind.SAMPLING:
        raise checks.InvalidInputRequest(gettext_noop("this server may not ask people."))
    checks.check_asked(asked)
    fingerprint = checks.fingerprint_of(asked)
    rows = InputRequest.objects.for_workspace(origin.server.workspace_id)
    if answered_before is not None:
        known = rows.filter(
            call_id=origin.call_id, fingerprint=fingerprint, created_at__lt=answered_before
        ).exclude(status__in=_WITHOUT_ANSWER)
        earlier = known.exclude(pk__in=used).first()
        if earlier is not None:
            return earlier
    _check_rate(rows, origin)
    row = InputRequest.objects.create(
        workspace_id=origin.server.workspace_id,
        call_id=origin.call_id,
        conversation_id=origin.conversation_id,
        turn_id=origin.turn_id,
        asked_of_id=origin.actor.user_id,
        server_id=origin.server.pk,
        server_name=origin.server.name,
        tool_name=origin.tool_name,
        kind=asked.kind.value,
        key=_masked(asked.key, origin),
        fingerprint=fingerprint,
        message=clean_text(asked.message),
        schema=dict(asked.schema),
        url=asked.url,
        elicitation_id=_masked(asked.elicitation_id, origin),
        params=dict(asked.params),
        warnings=checks.warnings_of(asked),
        status=InputStatus.ACCEPTED if is_settled else InputStatus.PENDING,
        expires_at=database_now() + timedelta(seconds=settings.TRELLIS.approval_ttl_seconds),
    )
    record(draft_of(row, Action.INPUT_REQUESTED, origin.actor, details=facts_of(row)))
    announce_row(row)
    return row


def _masked(name: str, origin: QuestionOrigin) -> str:
    """A server's own name for a question, as it is kept."""
    masked: str = redact_known(clean_text(name), workspace_id=origin.server.workspace_id)
    return masked[:200]


@transaction.atomic
def answer_input(
    *,
    input_request: InputRequest,
    action: InputAction,
    actor: Actor,
    content: Mapping[str, JsonValue] | None = None,
) -> InputRequest:
    """Answer a server's question; once, and only by the person who was asked.

    Raises:
        PermissionDenied: somebody else was asked.
        Conflict: it has been answered, its time has run out, or it is a sign-in, which is no answer.
        InvalidInput: names the fields that do not fit the form.
        AuditUnavailable: it could not be recorded, so it was not answered.
    """
    require(actor, Permission.USE_CHAT, workspace_id=input_request.workspace_id)
    if actor.user_id is None or actor.user_id != input_request.asked_of_id:
        raise PermissionDenied(_("Only the person who was asked can answer."))
    row = lock(input_request)
    if row.status != InputStatus.PENDING:
        raise Conflict(_("This has been answered already."))
    if row.expires_at <= database_now():
        raise Conflict(_("The time to answer is over."))
    if row.kind == InputKind.SIGN_IN and action is InputAction.ACCEPT:
        raise Conflict(_("Sign in at the server. The call then continues by itself."))
    given = dict(content or {})
    if action is InputAction.ACCEPT and row.kind == InputKind.FORM:
        checks.check_content(row.schema, given)
    elif given:
        raise InvalidInput(fields={"content": [_("Send content only if you accept the form.")]})
    return settle(row, _STATUS_OF[action], Action.INPUT_ANSWERED, actor, given)


def withdraw_inputs(*, call_id: UUID, workspace_id: UUID, actor: Actor) -> list[InputRequest]:
    """Take back what is still open of a call that ended; nobody needs to answer any more."""
    rows = InputRequest.objects.for_workspace(workspace_id)
    pending = rows.filter(call_id=call_id, status=InputStatus.PENDING)
    return [withdrawn for row in pending if (withdrawn := _end(row, InputStatus.CANCELLED, actor))]


def withdraw_inputs_of(server: McpServer, actor: Actor) -> None:
    """Take back everything that is open of a server which goes or is switched off, our own questions to sign in too."""
    rows = InputRequest.objects.for_workspace(server.workspace_id)
    for row in rows.filter(server_id=server.pk, status=InputStatus.PENDING).order_by("pk"):
        _end(row, InputStatus.CANCELLED, actor)


def overdue_inputs() -> WorkspaceQuerySet[InputRequest]:
    """Questions of every workspace whose time has run out, the oldest first."""
    rows = InputRequest.objects.across_workspaces()
    overdue = rows.filter(status=InputStatus.PENDING, expires_at__lte=database_now())
    ordered: WorkspaceQuerySet[InputRequest] = overdue.order_by("expires_at")
    return ordered


def expire_input(row: InputRequest) -> InputRequest | None:
    """End a question that nobody answered in time; None if somebody did after all."""
    actor = Actor.system(label="questions", source=Source.TASK, workspace_id=row.workspace_id)
    return _end(row, InputStatus.EXPIRED, actor)


def trim_inputs() -> int:
    """Forget settled questions of long ago that belong to no conversation; those of one go with it. Gives how many."""
    old = database_now() - timedelta(days=KEPT_DAYS)
    rows = InputRequest.objects.across_workspaces().exclude(status=InputStatus.PENDING)
    return rows.filter(conversation_id=None, expires_at__lt=old).delete()[0]


def complete_url_inputs(server_id: UUID, elicitation_id: str) -> list[InputRequest]:
    """A server says that what it wanted at a link is done: nobody needs to confirm it by hand."""
    if not elicitation_id:
        return []
    rows = InputRequest.objects.across_workspaces().filter(
        server_id=server_id,
        kind=InputKind.URL.value,
        elicitation_id=elicitation_id,
        status=InputStatus.PENDING,
    )
    done = []
    for row in rows[:MOST_IN_CALL]:
        actor = Actor.system(
            label=row.server_name, source=Source.TASK, workspace_id=row.workspace_id
        )
        with transaction.atomic():
            locked = lock(row)
            if locked.status == InputStatus.PENDING:
                settled = settle(locked, InputStatus.ACCEPTED, Action.INPUT_ANSWERED, actor, {})
                tell_listener(settled)
                done.append(settled)
    return done


async def wait_for_answer(row: InputRequest) -> InputRequest:
    """The row, once it is no longer pending: answered by whatever process, withdrawn, or run out."""
    return await waiting.until_settled(row.pk, partial(_settled, row))


def _settled(row: InputRequest) -> InputRequest | None:
    rows = InputRequest.objects.for_workspace(row.workspace_id)
    current = rows.find(row.pk)
    if current is None:
        row.status = InputStatus.CANCELLED  # with its workspace or its person
        return row
    if current.status != InputStatus.PENDING:
        return current
    return expire_input(current) if current.expires_at <= database_now() else None


def answer_of(row: InputRequest) -> InputAnswer:
    """What the server is told, of a row that is no longer pending."""
    content: dict[str, JsonValue] = {}
    if row.status == InputStatus.ACCEPTED and row.answer:
        content = json.loads(row.answer.reveal("answering an MCP server", is_credential=False))
    return InputAnswer(
        action=_ACTION_OF.get(InputStatus(row.status), InputAction.CANCEL), content=content
    )


def input_json(row: InputRequest) -> dict[str, Any]:
    """The row as the web app and the API show it to the person who was asked."""
    return {
        "id": str(row.pk),
        "call_id": str(row.call_id),
        "conversation_id": str(row.conversation_id) if row.conversation_id else None,
        "server": {"id": str(row.server_id), "name": row.server_name},
        "tool": row.tool_name,
        "kind": row.kind,
        "message": show_hidden(row.message),
        "schema": row.schema,
        "url": row.url,
        "url_host": checks.host_of(row.url),
        "warnings": row.warnings,
        "params": row.params,
        "status": row.status,
        "answer": _shown_answer(row),
        "expires_at": row.expires_at.isoformat(),
        "answered_at": row.answered_at.isoformat() if row.answered_at else None,
    }


def _shown_answer(row: InputRequest) -> dict[str, JsonValue] | None:
    if row.status != InputStatus.ACCEPTED or row.kind != InputKind.FORM:
        return None
    secret = set(checks.secret_fields(row.schema))
    return {
        name: MASK if name in secret else value for name, value in answer_of(row).content.items()
    }


def _check_rate(rows: Any, origin: QuestionOrigin) -> None:
    rows = rows.exclude(kind=InputKind.SIGN_IN.value)  # ours, and not the server's
    rows = rows.exclude(status=InputStatus.REFUSED)  # put to nobody
    if rows.filter(call_id=origin.call_id).count() >= MOST_IN_CALL:
        raise checks.InvalidInputRequest(gettext_noop("it asked too often during this call."))
    since: datetime = database_now() - timedelta(hours=1)
    recent = rows.filter(
        server_id=origin.server.pk, asked_of_id=origin.actor.user_id, created_at__gte=since
    )
    if recent.count() >= MOST_IN_HOUR:
        raise checks.InvalidInputRequest(gettext_noop("it asked too often in the last hour."))


@transaction.atomic
def _end(row: InputRequest, status: InputStatus, actor: Actor) -> InputRequest | None:
    locked = lock(row)
    if locked.status != InputStatus.PENDING:
        return None
    action = Action.INPUT_EXPIRED if status == InputStatus.EXPIRED else Action.INPUT_ANSWERED
    row = settle(locked, status, action, actor, {})
    tell_listener(row)
    return row
