"""One operation on its way to the server and back: sent, asked back, sent again, followed as a task.

How often it goes out is decided here: each sending has an entry *requested* of its own, and none is made twice that may
do harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext_noop as _

from audit.errors import AuditUnavailable
from mcp_servers.client.connections import calls
from mcp_servers.client.connections.failures import CallFailed, RpcError
from mcp_servers.client.errors import CallTakenOver, ConnectionFailed, InputMissing
from mcp_servers.client.inputs import (
    AskedInput,
    CallLimits,
    InputAction,
    InputAnswers,
    InputKind,
    InputRequired,
    TaskStarted,
)
from mcp_servers.client.sdk import mcp_types
from mcp_servers.gate.checkpoints import InputCheckpoint, SignInCheckpoint, TaskCheckpoint
from mcp_servers.gate.dialogue import MOST_ROUNDS, Dialogue
from mcp_servers.gate.operation import Out, ServerOperation
from mcp_servers.gate.outcomes import TooManyRounds, explain, since
from mcp_servers.gate.recording import completed
from mcp_servers.gate.signing_in import CannotGoOn, SigningIn
from workspaces.database import in_database
from workspaces.process.failpoints import Failpoint, failpoint

if TYPE_CHECKING:
    from mcp_servers.client.spec import ConnectionSpec
    from mcp_servers.gate.checkpoints import Checkpoint

URL_REQUIRED: Final = -32042
"""MCP specification 2025-11-25, "Elicitation": the tool runs only after the person has been at a link."""
UNASKED: Final = "unasked"
"""In the details of an outcome: the server asked a person, and nobody was there."""
TASK_SECONDS: Final = 24 * 3600.0
_CANCEL_SECONDS: Final = 5.0


async def exchange(operation: ServerOperation[Out], checkpoint: Checkpoint | None = None) -> Out:
    """Carry an operation out. Whatever goes wrong is an outcome.

    Raises:
        InputMissing: a person has to answer, or to sign in, first; the checkpoint is kept.
        CallTakenOver: another process has it; nothing was sent.
    """
    dialogue = operation.dialogue = Dialogue(
        operation.origin,
        spec=operation.spec,
        caller=operation.caller,
        can_ask=operation.can_ask,
        bud=operation.request.bud,
    )
    started = time.monotonic()
    try:
        result = await Exchange(operation, dialogue).run(checkpoint)
        failpoint(Failpoint.GATE_AFTER_ANSWER)
        outcome = await operation.read(result)
    except (InputMissing, CallTakenOver):
        raise
    except Exception as error:  # noqa: BLE001  each has its words; what nobody foresaw is logged with them
        outcome = operation.ended(*explain(operation, error))
    details = {**outcome.details, UNASKED: True} if dialogue.had_nobody_to_ask else outcome.details
    return replace(outcome, duration_ms=since(started), details=details)


class Exchange:
    """What goes back and forth for one operation."""

    def __init__(self, operation: ServerOperation[Any], dialogue: Dialogue) -> None:
        self._operation = operation
        self._dialogue = dialogue
        self._signing_in = SigningIn(operation, dialogue)
        self._has_new_session = False
        self._after = ""
        """What the last sending came to, or what has happened since."""

    async def run(self, checkpoint: Checkpoint | None) -> Any:
        """The server's result, from the beginning or from a checkpoint."""
        operation = self._operation
        answers: InputAnswers | None = None
        rounds = 0
        operation.has_checkpoint = checkpoint is not None
        if isinstance(checkpoint, SignInCheckpoint):
            await self._signing_in.resume()
            await in_database(operation.write_resumed, checkpoint.kind)
            operation.was_sent, self._after = checkpoint.was_refused, "sign_in"
            await operation.keep(checkpoint.task)
            if checkpoint.task is not None:
                return await self._follow(checkpoint.task)
        if isinstance(checkpoint, TaskCheckpoint):
            await in_database(operation.write_resumed, checkpoint.kind)
            return await self._follow(checkpoint)
        if isinstance(checkpoint, InputCheckpoint):
            answers, rounds = await self._dialogue.resume(checkpoint), checkpoint.rounds
            await in_database(operation.write_resumed, checkpoint.kind)
            operation.was_sent, self._after = True, "answers"
            # From here on the server may act, so a crash must not lead back to this point.
            await operation.keep(None)
        has_begun_again = False
        while True:
            try:
                got = await self._signing_in.with_account(self._send, answers)
            except RpcError as error:
                # The server's own note of what it asked has run out, or went with its process. It has only asked so
                # far, so the call may begin again; what was answered is not asked twice.
                may_begin_again = operation.may_repeat and _has_forgotten(error)
                if rounds != 1 or has_begun_again or not may_begin_again:
                    raise
                answers, rounds, has_begun_again = None, 0, True
                self._after = "state_forgotten"
                continue
            if isinstance(got, TaskStarted):
                kept = TaskCheckpoint(task_id=got.task_id, ttl_seconds=got.ttl_seconds)
                await operation.keep(kept)
                return await self._follow(kept)
            if not isinstance(got, InputRequired):
                return got
            rounds += 1
            self._after = "answers"
            if rounds > MOST_ROUNDS:
                raise TooManyRounds
            answers = await self._dialogue.answer_round(
                got, rounds=rounds, can_wait_elsewhere=operation.can_wait_elsewhere
            )

    async def _send(self, spec: ConnectionSpec, answers: InputAnswers | None) -> Any:
        """Send it; once more after a lost session, if it may be repeated, and once more after a link was visited.

        Raises:
            CannotGoOn: another sending could not be recorded, so it was not made.
        Source: MCP 2025-11-25, "Transports": Session Management.
        """
        operation = self._operation
        has_visited = False
        while True:
            # The first one's *requested* was committed when the operation was let through.
            was_sent = operation.was_sent
            if was_sent:
                await self._record_another()
            operation.was_sent = True
            try:
                return await operation.send(spec, answers, self._dialogue)
            except ConnectionFailed:
                operation.was_sent = was_sent
                raise
            except CallFailed as error:
                self._after = error.kind
                is_lost = error.kind == "session_lost" and not self._has_new_session
                if not is_lost or not operation.may_repeat:
                    raise
                self._has_new_session = True
            except RpcError as error:
                # The server refused to begin before a person has been somewhere, so nothing is done twice.
                if has_visited or not await self._visit_links(error):
                    raise
                has_visited, self._after = True, "link"

    async def _record_another(self) -> None:
        write = in_database(self._operation.write_requested_again, self._after)
        try:
            _written, was_cancelled = await completed(write)
        except AuditUnavailable as error:
            words = _("The audit log could not be written, so the request was not sent again.")
            raise CannotGoOn(words, kind="audit_unavailable") from error
        if was_cancelled:
            raise asyncio.CancelledError

    async def _visit_links(self, error: RpcError) -> bool:
        """Send the person where the server wants them first; True if they have been."""
        links = _links_of(error)
        for link in links:
            answer = await self._dialogue.ask_person(link)
            if answer.action is not InputAction.ACCEPT:
                return False
        return bool(links)

    async def _follow(self, task: TaskCheckpoint) -> mcp_types.CallToolResult:
        """Wait for a task's result; it runs at the server, so it outlives this process."""
        self._operation.is_under_way = True
        return await self._signing_in.with_account(self._follow_at, task, task=task)

    async def _follow_at(
        self, spec: ConnectionSpec, task: TaskCheckpoint
    ) -> mcp_types.CallToolResult:
        operation = self._operation
        operation.give_slot_back()
        seconds = min(task.ttl_seconds or TASK_SECONDS, TASK_SECONDS)
        try:
            return await calls.follow_task(
                spec,
                task.task_id,
                call_id=operation.request.call_id,
                user_id=operation.request.actor.user_id,
                limits=CallLimits(seconds=seconds, hard_seconds=seconds),
                listener=self._dialogue,
            )
        except asyncio.CancelledError:
            if not operation.caller.hands_over():
                await self._cancel(task.task_id)
            raise
        except TimeoutError:
            await self._cancel(task.task_id)
            raise

    async def _cancel(self, task_id: str) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CANCEL_SECONDS):
                await calls.cancel_task(self._operation.spec, task_id)


def _has_forgotten(error: RpcError) -> bool:
    """The server does not know the state that it gave along with its questions."""
    data = error.data if isinstance(error.data, dict) else {}
    return (
        error.rpc_code == mcp_types.INVALID_PARAMS and data.get("reason") == "invalid_request_state"
    )


def _links_of(error: RpcError) -> list[AskedInput]:
    """The links that a server wants a person to have been at before it begins."""
    if error.rpc_code != URL_REQUIRED or not isinstance(error.data, dict):
        return []
    asked = error.data.get("elicitations")
    return [
        AskedInput(
            key=str(entry.get("elicitationId", number)),
            kind=InputKind.URL,
            message=str(entry.get("message", "")),
            url=str(entry.get("url", "")),
            elicitation_id=str(entry.get("elicitationId", "")),
            params={"is_required": True},
        )
        for number, entry in enumerate(asked if isinstance(asked, list) else [])
        if isinstance(entry, dict)
    ]
