"""Calls that a server turned into tasks: started, followed to their end, given up.

Two kinds exist. In revision 2025-11-25 the caller asks for a task by a parameter, polls `tasks/get`, and fetches the
result with `tasks/result`, during which the server may ask questions. In the extension of 2026-07-28 the server
decides, its answer to `tasks/get` carries the result, and what it asks is answered with `tasks/update`.

Source: MCP specification 2025-11-25, "Tasks"; MCP extension "Tasks" (SEP-2663).
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final, Literal

import pydantic
from django.utils.translation import gettext_noop as _

from mcp_servers.client.connections import wire
from mcp_servers.client.connections.failures import CallFailed, RpcError
from mcp_servers.client.connections.flights import CURRENT, CallRef, Flight
from mcp_servers.client.connections.requests import perform
from mcp_servers.client.connections.tap import is_modern
from mcp_servers.client.inputs import AskedInput, CallLimits, InputAnswer, InputAnswers, TaskStarted
from mcp_servers.client.sdk import mcp, mcp_types, shapes
from mcp_servers.client.values import Progress

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from mcp_servers.client.connections.connection import Connection
    from mcp_servers.client.spec import ConnectionSpec

LEAST_POLL_SECONDS: Final = 0.2
MOST_POLL_SECONDS: Final = 60.0
USUAL_POLL_SECONDS: Final = 1.0
CANCEL_SECONDS: Final = 10.0
MAX_ID: Final = 1000
"""Characters of a task's id."""

_TERMINAL: Final = ("completed", "failed", "cancelled")


class _State(pydantic.BaseModel):
    """A task as either kind tells of it."""

    model_config = pydantic.ConfigDict(extra="ignore")

    task_id: str = pydantic.Field(alias="taskId", min_length=1, max_length=MAX_ID)
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    status_message: str | None = pydantic.Field(None, alias="statusMessage")
    ttl: float | None = pydantic.Field(None, validation_alias=pydantic.AliasChoices("ttl", "ttlMs"))
    poll: float | None = pydantic.Field(
        None, validation_alias=pydantic.AliasChoices("pollInterval", "pollIntervalMs")
    )
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    input_requests: dict[str, Any] | None = pydantic.Field(None, alias="inputRequests")

    @property
    def poll_seconds(self) -> float:
        if self.poll is None:
            return USUAL_POLL_SECONDS
        return min(max(self.poll / 1000, LEAST_POLL_SECONDS), MOST_POLL_SECONDS)


def takes_task_parameter(connection: Connection) -> bool:
    """Whether this server makes tasks of calls at the caller's wish (2025-11-25)."""
    facts = connection.facts
    if facts is None or is_modern(facts.protocol_revision):
        return False
    requests = (facts.capabilities.get("tasks") or {}).get("requests") or {}
    return "call" in (requests.get("tools") or {})


def started(result: dict[str, Any]) -> TaskStarted:
    """What a server answered instead of a result.

    Raises:
        CallFailed: it is no task.
    """
    state = _state(result)
    return TaskStarted(
        task_id=state.task_id,
        poll_seconds=state.poll_seconds,
        ttl_seconds=state.ttl / 1000 if state.ttl is not None else None,
    )


async def follow(
    spec: ConnectionSpec, task_id: str, *, limits: CallLimits, call: CallRef
) -> mcp_types.CallToolResult:
    """Wait for a task to end, and fetch what it came to."""

    async def ask(connection: Connection, session: ClientSession) -> mcp_types.CallToolResult:
        return await _Following(connection, session, task_id).result()

    return await perform(
        spec, ask, limits=limits, call=call, as_task=True, repeats_in_new_session=True
    )


async def cancel(spec: ConnectionSpec, task_id: str) -> None:
    """Ask the server to give a task up."""

    async def ask(connection: Connection, session: ClientSession) -> None:
        with _task_errors():
            await session.send_request(
                shapes.TaskCancel(params=shapes.TaskParams(task_id=task_id)), shapes.ANY
            )

    limits = CallLimits(seconds=CANCEL_SECONDS, hard_seconds=CANCEL_SECONDS)
    await perform(
        spec, ask, limits=limits, call=CallRef(), as_task=True, repeats_in_new_session=True
    )


class _Following:
    """One wait for one task, within one flight."""

    def __init__(self, connection: Connection, session: ClientSession, task_id: str) -> None:
        assert connection.facts is not None
        self._session = session
        self._task_id = task_id
        self._is_extension = is_modern(connection.facts.protocol_revision)
        self._last_message = ""
        self._polls = 0
        self._answered: set[str] = set()

    async def result(self) -> mcp_types.CallToolResult:
        """Poll until there is one."""
        while True:
            state = await self._get()
            self._tell(state)
            if state.status == "cancelled":
                raise CallFailed("task_cancelled")
            if state.status == "failed" and (self._is_extension or state.error is not None):
                raise _failure_of(state)
            if self._is_extension:
                if state.status == "completed":
                    return _tool_result(state.result)
                if state.status == "input_required":
                    await self._answer(state)
            elif state.status in (*_TERMINAL, "input_required"):
                # While it wants input, this request is what the server's questions come with.
                return await self._fetch()
            await asyncio.sleep(state.poll_seconds)

    async def _get(self) -> _State:
        with _task_errors():
            raw = await self._session.send_request(
                shapes.TaskGet(params=shapes.TaskParams(task_id=self._task_id)), shapes.ANY
            )
        return _state(raw)

    async def _fetch(self) -> mcp_types.CallToolResult:
        with _task_errors():
            raw = await self._session.send_request(
                shapes.TaskResult(params=shapes.TaskParams(task_id=self._task_id)), shapes.ANY
            )
        return _tool_result(raw)

    def _tell(self, state: _State) -> None:
        """Each answer of the server is a sign of life; a new word of it goes to whoever waits."""
        flight = CURRENT.get()
        if flight is None:
            return
        if flight.deadline is not None:
            flight.deadline.progressed()
        self._polls += 1
        message = state.status_message or ""
        listener = flight.call.listener if flight.call is not None else None
        if listener is not None and message and message != self._last_message:
            self._last_message = message
            listener.progressed(Progress(progress=self._polls, message=message))

    async def _answer(self, state: _State) -> None:
        """Have answered what the task waits for, once each."""
        flight = CURRENT.get()
        asked = [one for one in _asked(state) if one.key not in self._answered]
        if not asked:
            return
        by_key = {one.key: (one, await _put(flight, one)) for one in asked}
        self._answered.update(by_key)
        responses = wire.input_responses(InputAnswers(by_key=by_key))
        with _task_errors():
            params = shapes.TaskUpdateParams(task_id=self._task_id, input_responses=responses)
            await self._session.send_request(shapes.TaskUpdate(params=params), shapes.ANY)


async def _put(flight: Flight | None, asked: AskedInput) -> InputAnswer:
    listener = flight.call.listener if flight is not None and flight.call is not None else None
    if flight is None or listener is None:
        raise CallFailed(
            "input_declined", _("The task asks for input, and nobody is there to answer.")
        )
    if flight.deadline is None:
        return await listener.answer(asked)
    with flight.deadline.standing_still():
        return await listener.answer(asked)


def _asked(state: _State) -> tuple[AskedInput, ...]:
    try:
        requests = shapes.INPUTS.validate_python(state.input_requests or {}, by_name=False)
    except pydantic.ValidationError as error:
        raise CallFailed("unreadable") from error
    if not requests:
        return ()
    return wire.input_required(mcp_types.InputRequiredResult(input_requests=requests)).asked


def _state(raw: dict[str, Any]) -> _State:
    inner = raw.get("task")
    try:
        return _State.model_validate(inner if isinstance(inner, dict) else raw)
    except pydantic.ValidationError as error:
        raise CallFailed("unreadable") from error


def _tool_result(raw: dict[str, Any] | None) -> mcp_types.CallToolResult:
    try:
        return mcp_types.CallToolResult.model_validate(raw, by_name=False)
    except pydantic.ValidationError as error:
        raise CallFailed("unreadable") from error


def _failure_of(state: _State) -> CallFailed | RpcError:
    error = state.error or {}
    code, message = error.get("code"), error.get("message")
    if isinstance(code, int) and isinstance(message, str):
        return RpcError(message, rpc_code=code)
    return CallFailed("task_failed")


@contextlib.contextmanager
def _task_errors() -> Any:
    """A server that does not know the task says so by "invalid params"."""
    try:
        yield
    except mcp.MCPError as error:
        if error.code == mcp_types.INVALID_PARAMS:
            raise CallFailed("task_gone") from error
        raise
