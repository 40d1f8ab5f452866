"""Questions of servers, put to the person by their client: the call ends with the question, and is made again.

What we need to know again goes to the client and comes back, so it is sealed for this person, this client, this tool and
these arguments. It serves soon, and once: the question's row is answered in the same transaction.
Source: MCP specification 2026-07-28, "Multi round-trip requests".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import mcp_types
from django.db import transaction

from mcp_servers.client.canonical import canonical_json
from mcp_servers.client.hidden_text import strip_hidden
from mcp_servers.client.inputs import InputAction
from mcp_servers.gate import SilentCaller
from mcp_servers.models import InputRequest, InputStatus
from mcp_servers.registry.elicitation import answer_input
from workspaces.database import database_now
from workspaces.secrets import SecretUnreadable, seal, unseal

if TYPE_CHECKING:
    from mcp_servers.client.values import Progress
    from mcp_servers.endpoint.callers import EndpointCaller

LIFE: Final = timedelta(minutes=10)
LONGEST: Final = 1024 * 1024
UNFIT: Final = "This answer belongs to no open question. Call the tool again."
"""For programs, so in English."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReply:
    """What a client sends along when it makes a call again."""

    state: str
    responses: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedCall:
    """A call that goes on."""

    call_id: UUID
    checkpoint: str


class NoOpenQuestion(Exception):
    """What a client sends along answers nothing that is open."""


class PausingCaller(SilentCaller):
    """A caller that keeps where its call stopped, and hears how far it is."""

    def __init__(self, on_progress: Callable[[Progress], None]) -> None:
        self.kept = ""
        self._on_progress = on_progress

    def progressed(self, progress: Progress) -> None:
        self._on_progress(progress)

    async def checkpointed(self, checkpoint: str) -> None:
        self.kept = checkpoint


def ask(
    caller: EndpointCaller,
    tool_id: UUID,
    arguments: Mapping[str, Any],
    call_id: UUID,
    checkpoint: str,
) -> mcp_types.InputRequiredResult:
    """The questions that are open of a call, as the client gets them."""
    kept = {
        "call": str(call_id),
        "until": (database_now() + LIFE).timestamp(),
        "checkpoint": checkpoint,
    }
    return mcp_types.InputRequiredResult(
        input_requests={str(row.pk): _as_wire(row) for row in _open_rows(caller, call_id)},
        request_state=seal(json.dumps(kept), place=_place(caller, tool_id, arguments)),
    )


@transaction.atomic
def take_up(
    caller: EndpointCaller, tool_id: UUID, arguments: Mapping[str, Any], reply: InputReply
) -> ResumedCall:
    """Give a server the answers of a person; a question without one is cancelled.

    Raises:
        NoOpenQuestion: the state is another person's, client's, tool's or call's; it was altered or ran out, or was used.
        Conflict: the question was answered at the same moment.
        InvalidInput: an answer does not fit its form. It can be given again.
    """
    try:
        kept = json.loads(unseal(reply.state[:LONGEST], place=_place(caller, tool_id, arguments)))
    except SecretUnreadable as error:
        raise NoOpenQuestion from error
    call_id = UUID(kept["call"])
    rows = _open_rows(caller, call_id)
    if kept["until"] <= database_now().timestamp() or not rows:
        raise NoOpenQuestion
    for row in rows:
        given = _answer_in(reply, row)
        action = InputAction(given.action)
        answer_input(
            input_request=row,
            action=action,
            actor=caller.actor,
            content=given.content if action is InputAction.ACCEPT else None,
        )
    return ResumedCall(call_id=call_id, checkpoint=kept["checkpoint"])


def _answer_in(reply: InputReply, row: InputRequest) -> mcp_types.ElicitResult:
    given = reply.responses.get(str(row.pk))
    if isinstance(given, mcp_types.ElicitResult):
        return given
    return mcp_types.ElicitResult(action="cancel")


def _open_rows(caller: EndpointCaller, call_id: UUID) -> list[InputRequest]:
    rows = InputRequest.objects.for_workspace(caller.workspace_id)
    mine = rows.filter(call_id=call_id, asked_of_id=caller.user_id, status=InputStatus.PENDING)
    return list(mine.order_by("pk"))


def _as_wire(row: InputRequest) -> mcp_types.ElicitRequest:
    """A question, with whose it is and what the person should know first."""
    parts = [f"{row.server_name}: {strip_hidden(row.message)}", *map(str, row.warnings)]
    return mcp_types.ElicitRequest(
        params=mcp_types.ElicitRequestFormParams(
            message="\n\n".join(parts), requested_schema=row.schema
        )
    )


def _place(caller: EndpointCaller, tool_id: UUID, arguments: Mapping[str, Any]) -> str:
    """What a state is for, and opens nowhere else."""
    digest = sha256(canonical_json(dict(arguments))).hexdigest()
    who = f"{caller.workspace_id}:{caller.user_id}:{caller.actor.token_id}"
    return f"{who}:mcp_request_state:{tool_id}:{digest}"
