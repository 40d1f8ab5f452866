"""Makes one request of a caller: on the right connection, within its limits, once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pydantic
from django.utils.translation import gettext_noop as _

from mcp_servers.client.connections import wire
from mcp_servers.client.connections.deadline import Deadline
from mcp_servers.client.connections.failures import CallFailed, RpcError
from mcp_servers.client.connections.flights import CURRENT, Flight
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import ConnectionFailed
from mcp_servers.client.sdk import mcp_types
from mcp_servers.client.values import Progress

if TYPE_CHECKING:
    from mcp.client.session import ClientSession
    from mcp.shared.dispatcher import ProgressFnT

    from mcp_servers.client.connections.connection import Connection
    from mcp_servers.client.connections.flights import CallRef
    from mcp_servers.client.inputs import CallLimits, InputAnswers
    from mcp_servers.client.spec import ConnectionSpec

R = TypeVar("R")
Ask = Callable[["Connection", "ClientSession"], Awaitable[R]]

_CONNECTION_ATTEMPTS: Final = 4


async def perform(
    spec: ConnectionSpec,
    ask: Ask[R],
    *,
    limits: CallLimits,
    call: CallRef | None,
    as_task: bool = False,
    needs_headers: bool = False,
    repeats_in_new_session: bool = False,
) -> R:
    """Make a request on the server's connection, with a clock of its own.

    Args:
        call: whose doing it is; None for what no server may ask back about.
        as_task: the server may answer with a task; see Flight.
        repeats_in_new_session: once more if the server has forgotten the session; for what changes nothing and is not
            in the log.
        needs_headers: the tools have to be known first, because arguments may have to be mirrored into headers.

    Raises:
        ConnectionFailed, Busy: nothing was sent.
        CallFailed, RpcError: it was sent, or may have been; see failures.NOT_CARRIED_OUT.
        TimeoutError: no answer in time; the server was told to stop.
    """
    for _held in range(_CONNECTION_ATTEMPTS):
        connection = await pool.connect(spec)
        if needs_headers:
            await pool.learn_headers(connection)
        try:
            async with connection.turn(limits.hard_seconds):
                if connection.is_over:
                    continue  # replaced while we waited for our turn
                async with Deadline(limits) as deadline:
                    result = await connection.request(
                        lambda session, at=connection: ask(at, session),  # type: ignore[misc]
                        call=call,
                        deadline=deadline,
                        as_task=as_task,
                    )
        except CallFailed as failure:
            pool.note_failure(connection, failure)
            if failure.kind == "session_lost" and repeats_in_new_session:
                repeats_in_new_session = False
            elif failure.kind != "closed":
                raise
        except RpcError:
            pool.note_success(spec)
            raise
        else:
            pool.note_success(spec)
            return result
    raise ConnectionFailed(
        _("The server closes every connection at once."), details={"kind": "closed"}
    )


async def send(
    session: ClientSession,
    request: mcp_types.Request[Any, Any],
    result_type: pydantic.TypeAdapter[Any],
) -> Any:
    """Send one request of the running flight; what the server wants before it goes on is a result as well."""
    # Not the session's own methods, which list tools behind our back and validate results with the server's schemas.
    result = await session.send_request(
        request, result_type, progress_callback=_reporter(CURRENT.get())
    )
    if isinstance(result, mcp_types.InputRequiredResult):
        return wire.input_required(result)
    return result


def _reporter(flight: Flight | None) -> ProgressFnT:
    """What is told when the server says how far it is; the transport calls it in whatever context it has."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        if flight is None:
            return
        if flight.deadline is not None:
            flight.deadline.progressed()
        if flight.call is not None and flight.call.listener is not None:
            flight.call.listener.progressed(
                Progress(progress=progress, total=total, message=message)
            )

    return report


def continued_parameters(answers: InputAnswers | None, *, is_modern: bool) -> dict[str, Any]:
    """The parameters that make a request the next round of an earlier one.

    In older revisions that is a request like any other: the server knows by itself what was done meanwhile.
    """
    if answers is None or not is_modern:
        return {}
    return {
        "inputResponses": wire.input_responses(answers) or None,
        "requestState": answers.state,
    }
