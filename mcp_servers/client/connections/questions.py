"""What servers of the older revisions ask over an open connection, put to whoever made the call it belongs to.

On HTTP such a request comes in the answer to the call, and so belongs to it. Elsewhere it comes without any sign of
that: it belongs to the one call under way, if there is exactly one. If there are more, it is cancelled, because the
other call may be another person's; and from then on that server gets one call at a time on such a connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import pydantic

from mcp_servers.client.connections import wire
from mcp_servers.client.connections.flights import CURRENT, Flight
from mcp_servers.client.inputs import AskedInput, InputAction, InputAnswer
from mcp_servers.client.sdk import mcp_types

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext

    from mcp_servers.client.connections.tracing import ConnectionTrace
    from mcp_servers.client.spec import ConnectionSpec

logger = logging.getLogger(__name__)

MAX_QUESTIONS: Final = 10
"""Open questions of one call at a time."""
_REFUSED: Final = -1
"""MCP specification, "Sampling", Error Handling: the person refused."""
_CANCELLED: Final = InputAnswer(action=InputAction.CANCEL)


class AskingConnection(Protocol):
    """The connection over which a server asks."""

    spec: ConnectionSpec
    trace: ConnectionTrace
    flights: set[Flight]

    def possible_askers(self) -> list[Flight]:
        """The requests that a question without any sign may belong to."""


class Questions:
    """The SDK's callbacks of one connection. None of them ever raises: that would fail the call in odd ways."""

    def __init__(self, connection: AskingConnection, *, on_unclear: Callable[[], None]) -> None:
        self._connection = connection
        self._on_unclear = on_unclear
        """Told when nobody can say to which of several calls a question belongs."""

    async def elicit(
        self, context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        """MCP specification, "Elicitation": elicitation/create."""
        asked = wire.asked_by_elicitation(str(context.request_id), params)
        answer = await self._put(asked)
        try:
            return wire.elicit_result(answer, kind=asked.kind)
        except pydantic.ValidationError:
            logger.warning("an answer to an elicitation does not follow the protocol")
            return wire.elicit_result(_CANCELLED, kind=asked.kind)

    async def sample(
        self, context: ClientRequestContext, params: mcp_types.CreateMessageRequestParams
    ) -> (
        mcp_types.CreateMessageResult | mcp_types.CreateMessageResultWithTools | mcp_types.ErrorData
    ):
        """MCP specification, "Sampling": sampling/createMessage."""
        answer = await self._put(wire.asked_by_sampling(str(context.request_id), params))
        try:
            result = wire.sampling_result(answer)
        except pydantic.ValidationError:
            logger.warning("a model's answer for a server does not follow the protocol")
            result = None
        if result is not None:
            return result
        reason = answer.reason or "The request was not allowed."
        return mcp_types.ErrorData(code=_REFUSED, message=reason)

    async def list_roots(
        self, context: ClientRequestContext
    ) -> mcp_types.ListRootsResult | mcp_types.ErrorData:
        """MCP specification, "Roots": roots/list. The same for every call, so it needs nobody's answer."""
        return wire.roots_result(self._connection.spec.roots)

    async def _put(self, asked: AskedInput) -> InputAnswer:
        """Have it answered by whom it concerns; cancelled if that is nobody, or cannot be said."""
        flight = self._flight()
        if flight is None or flight.call is None or flight.call.listener is None:
            self._connection.trace.event(f"A question ({asked.kind}) was cancelled: nobody to ask.")
            return _CANCELLED
        if len(flight.questions) >= MAX_QUESTIONS:
            return _CANCELLED
        return await self._wait(flight, asked)

    async def _wait(self, flight: Flight, asked: AskedInput) -> InputAnswer:
        assert flight.call is not None
        assert flight.call.listener is not None
        question = asyncio.ensure_future(flight.call.listener.answer(asked))
        flight.questions.add(question)
        try:
            if flight.deadline is None:
                return await question
            with flight.deadline.standing_still():
                return await question
        except asyncio.CancelledError:
            # Ours, because the call is over; or the server's, which took its question back.
            if question.cancelled() and not is_cancelling():
                return _CANCELLED
            question.cancel()
            raise
        except Exception:
            logger.exception("a server's question could not be answered")
            return _CANCELLED
        finally:
            flight.questions.discard(question)

    def _flight(self) -> Flight | None:
        own = CURRENT.get()
        if own is not None and own in self._connection.flights:
            return own
        possible = self._connection.possible_askers()
        if len(possible) == 1:
            return possible[0] if possible[0] in self._connection.flights else None
        if possible:
            self._connection.trace.event("A question could belong to several calls.")
            self._on_unclear()
        return None


def is_cancelling() -> bool:
    """Whether the task that runs is being cancelled, and not just something that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
