"""One call on its way: sent, asked back, sent again, followed as a task; every way in which it can end, as an outcome."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import mcp_types

from audit.actions import Action, Outcome
from audit.services import record
from mcp_servers.client import results
from mcp_servers.client.canonical import clean_text
from mcp_servers.client.connections import calls
from mcp_servers.client.connections.failures import CallFailed, RpcError
from mcp_servers.client.errors import CallTakenOver, ConnectionFailed, InputMissing
from mcp_servers.client.inputs import (
    Answers,
    AskedInput,
    CallLimits,
    InputAction,
    InputKind,
    InputRequired,
    TaskStarted,
)
from mcp_servers.gate.checkpoints import (
    Checkpoint,
    InputCheckpoint,
    SignInCheckpoint,
    TaskCheckpoint,
)
from mcp_servers.gate.dialogue import MOST_ROUNDS, Dialogue
from mcp_servers.gate.entries import SENT_AGAIN_AFTER, draft, told
from mcp_servers.gate.outcomes import facts, failed, may_repeat, outcome_of, since, words_of
from mcp_servers.gate.port import Standing
from mcp_servers.gate.sendings import Sendings
from mcp_servers.gate.signing_in import CannotGoOn, SigningIn
from workspaces.database import in_database
from workspaces.failpoints import Failpoint, failpoint
from workspaces.waiting_times import told_duration

if TYPE_CHECKING:
    from mcp_servers.client.spec import ConnectionSpec
    from mcp_servers.client.values import ToolCallOutcome
    from mcp_servers.gate.admission import Plan
    from mcp_servers.gate.port import PortOnItsLoop
    from mcp_servers.gate.slots import HeldSlot

logger = logging.getLogger(__name__)

URL_REQUIRED: Final = -32042
"""MCP specification 2025-11-25, "Elicitation": the tool runs only after the person has been at a link."""
TASK_SECONDS: Final = 24 * 3600.0
_CANCEL_SECONDS: Final = 5.0


class TooManyRounds(Exception):
    """The server keeps asking."""


class _Parking:
    """A call that waits for a sign-in is kept with its task, if the server made it one."""

    def __init__(
        self,
        keep: Callable[[Checkpoint | None], Awaitable[None]],
        task: TaskCheckpoint | None,
        was_refused: Callable[[], bool],
    ) -> None:
        self._keep = keep
        self._task = task
        self._was_refused = was_refused

    async def keep(self) -> None:
        await self._keep(SignInCheckpoint(task=self._task, was_refused=self._was_refused()))

    async def forget(self) -> None:
        await self._keep(self._task)


class Exchange:
    """What goes back and forth for one call."""

    def __init__(
        self,
        plan: Plan,
        *,
        dialogue: Dialogue,
        port: PortOnItsLoop,
        signing_in: SigningIn,
        slot: HeldSlot,
    ) -> None:
        self._plan = plan
        self._dialogue = dialogue
        self._port = port
        self._signing_in = signing_in
        self._slot = slot
        self.has_checkpoint = False
        """What the caller keeps is where the call stands: nothing has been done since."""
        self.is_under_way = False
        """The server works on it."""
        self._sendings = Sendings(self._write_requested_again, may_repeat=may_repeat(plan))

    async def run(self, checkpoint: Checkpoint | None, started: float) -> ToolCallOutcome:
        """Make the call, from its beginning or from a checkpoint.

        Raises:
            InputMissing: a person has to answer, or to sign in, first; the checkpoint is kept.
            CallTakenOver: another process has the call; nothing was sent.
        """
        plan = self._plan
        try:
            result = await self._result(checkpoint)
            failpoint(Failpoint.GATE_AFTER_ANSWER)
            return await _read(plan, result, started)
        except (InputMissing, CallTakenOver):
            raise
        except TimeoutError:
            text = f"The tool did not answer within {told_duration(plan.limits.seconds)}."
            return failed(plan, Outcome.TIMEOUT, text, started, {"kind": "timeout"})
        except TooManyRounds:
            text = f"The tool asked for input more than {MOST_ROUNDS} times and was given up."
            return failed(plan, Outcome.TOOL_ERROR, text, started, {"kind": "too_many_rounds"})
        except CannotGoOn as error:
            return failed(plan, Outcome.TRANSPORT_ERROR, error.message, started, error.facts)
        except RpcError as error:
            text = f"The server refused the call: {clean_text(error.message)[:1000]}"
            return failed(plan, Outcome.TOOL_ERROR, text, started, {"rpc_code": error.rpc_code})
        except CallFailed as error:
            return failed(
                plan, outcome_of(plan, error.kind), words_of(plan, error), started, facts(error)
            )
        except ConnectionFailed as error:
            text = f"{plan.tool.server.name}: {error.message}"
            details = {"kind": error.kind, **facts(error)}
            return failed(plan, Outcome.TRANSPORT_ERROR, text, started, details)
        except Exception:
            # Something we did not foresee: the bytes may have left, so the call may have been carried out.
            logger.exception("tool call failed in an unforeseen way")
            text = "The call failed for a reason that is in the platform's log."
            return failed(plan, Outcome.OUTCOME_UNKNOWN, text, started, {"kind": "unforeseen"})

    async def _result(self, checkpoint: Checkpoint | None) -> mcp_types.CallToolResult:
        answers: Answers | None = None
        rounds = 0
        self.has_checkpoint = checkpoint is not None
        if isinstance(checkpoint, SignInCheckpoint):
            await self._signing_in.resume()
            await in_database(self._write_resumed, checkpoint.kind)
            self._sendings.was_sent, self._sendings.after = checkpoint.was_refused, "sign_in"
            await self._keep(checkpoint.task)
            if checkpoint.task is not None:
                return await self._follow(checkpoint.task)
        if isinstance(checkpoint, TaskCheckpoint):
            await in_database(self._write_resumed, checkpoint.kind)
            return await self._follow(checkpoint)
        if isinstance(checkpoint, InputCheckpoint):
            answers, rounds = await self._dialogue.resume(checkpoint), checkpoint.rounds
            await in_database(self._write_resumed, checkpoint.kind)
            self._sendings.was_sent, self._sendings.after = True, "answers"
            # From here on the server may act, so a crash must not lead back to this point.
            await self._keep(None)
        has_begun_again = False
        while True:
            try:
                got = await self._sent(answers)
            except RpcError as error:
                # The server's own note of what it asked has run out, or went with its process. It has only asked so
                # far, so the call may begin again; what was answered is not asked twice.
                if rounds != 1 or has_begun_again or not self._may_begin_again(error):
                    raise
                answers, rounds, has_begun_again = None, 0, True
                self._sendings.after = "state_forgotten"
                continue
            if isinstance(got, mcp_types.CallToolResult):
                return got
            if isinstance(got, TaskStarted):
                kept = TaskCheckpoint(task_id=got.task_id, ttl_seconds=got.ttl_seconds)
                await self._keep(kept)
                return await self._follow(kept)
            rounds += 1
            self._sendings.after = "answers"
            if rounds > MOST_ROUNDS:
                raise TooManyRounds
            answers = await self._dialogue.answer_round(
                got, rounds=rounds, can_wait_elsewhere=self._plan.request.can_wait_elsewhere
            )

    async def _keep(self, checkpoint: Checkpoint | None) -> None:
        """From here the call goes on after a crash; None: the server may act, so a crash must not lead back."""
        await self._port.checkpointed(checkpoint.as_text() if checkpoint is not None else "")
        self.has_checkpoint = checkpoint is not None

    def _parking(self, task: TaskCheckpoint | None) -> _Parking | None:
        if not self._plan.request.can_wait_elsewhere:
            return None
        return _Parking(self._keep, task, lambda: self._sendings.was_sent)

    def _may_begin_again(self, error: RpcError) -> bool:
        return may_repeat(self._plan) and _has_forgotten(error)

    async def _sent(
        self, answers: Answers | None
    ) -> mcp_types.CallToolResult | InputRequired | TaskStarted:
        return await self._signing_in.with_account(
            lambda spec: self._send(spec, answers), self._parking(None)
        )

    async def _send(
        self, spec: ConnectionSpec, answers: Answers | None
    ) -> mcp_types.CallToolResult | InputRequired | TaskStarted:
        has_visited = False
        while True:
            try:
                return await self._sendings.make(lambda: self._send_once(spec, answers))
            except RpcError as error:
                # The server refused to begin before a person has been somewhere, so nothing is done twice.
                if has_visited or not await self._visit_links(error):
                    raise
                has_visited, self._sendings.after = True, "link"

    async def _send_once(
        self, spec: ConnectionSpec, answers: Answers | None
    ) -> mcp_types.CallToolResult | InputRequired | TaskStarted:
        plan = self._plan
        permit = calls.mint_permit(
            call_id=plan.request.call_id,
            server_id=plan.tool.server_id,
            tool_name=plan.tool.name,
            arguments=plan.arguments,
            user_id=plan.request.actor.user_id,
        )
        failpoint(Failpoint.GATE_BEFORE_SEND)
        if self._port.standing() is not Standing.OURS:
            await self._port.make_sure()
        return await calls.send_call(
            spec,
            permit,
            limits=plan.limits,
            listener=self._dialogue,
            answers=answers,
            as_task=plan.tool.task_support == "required",
        )

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
        self.is_under_way = True
        return await self._signing_in.with_account(
            lambda spec: self._followed(spec, task), self._parking(task)
        )

    async def _followed(
        self, spec: ConnectionSpec, task: TaskCheckpoint
    ) -> mcp_types.CallToolResult:
        self._slot.give_back()
        plan = self._plan
        seconds = min(task.ttl_seconds or TASK_SECONDS, TASK_SECONDS)
        try:
            return await calls.follow_task(
                spec,
                task.task_id,
                call_id=plan.request.call_id,
                user_id=plan.request.actor.user_id,
                limits=CallLimits(seconds=seconds, hard_seconds=seconds),
                listener=self._dialogue,
            )
        except asyncio.CancelledError:
            if not self._port.hands_over():
                await self._cancel(task.task_id)
            raise
        except TimeoutError:
            await self._cancel(task.task_id)
            raise

    async def _cancel(self, task_id: str) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CANCEL_SECONDS):
                await calls.cancel_task(self._signing_in.spec, task_id)

    def _write_requested_again(self, after: str) -> None:
        plan = self._plan
        drafted = draft(plan.request, plan.tool, Action.TOOL_CALL_REQUESTED, plan.arguments)
        record(
            replace(
                drafted,
                rule=plan.decision.rule,
                approval=told(plan.approval),
                details={**(drafted.details or {}), SENT_AGAIN_AFTER: after},
            )
        )

    def _write_resumed(self, kind: str) -> None:
        plan = self._plan
        record(
            replace(
                draft(plan.request, plan.tool, Action.TOOL_CALL_RESUMED, plan.arguments),
                queue_ms=plan.queue_ms,
                details={"after": kind},
            )
        )


async def _read(plan: Plan, result: mcp_types.CallToolResult, started: float) -> ToolCallOutcome:
    read = results.read_result
    options: dict[str, Any] = {
        "workspace_id": plan.request.workspace_id,
        "limit_bytes": plan.tool.server.config.result_bytes,
        "output_schema": plan.tool.output_schema,
        "duration_ms": since(started),
    }
    if results.is_heavy(result):
        return await asyncio.to_thread(read, result, **options)
    return read(result, **options)


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
