"""The protocol's side of the endpoint: the SDK's server, one request at a time.

Nothing is kept between requests, so any process answers any of them, and a session's id means nothing.
Source: MCP specification, "Transports": Streamable HTTP, of 2025-11-25 and of 2026-07-28.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import anyio
import mcp_types
import mcp_types.version
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic_core import from_json

from mcp_servers.client.errors import ChangesRefused
from mcp_servers.endpoint import cancelling, prompts, resources
from mcp_servers.endpoint.access import has_access
from mcp_servers.endpoint.asking import InputReply
from mcp_servers.endpoint.calling import call
from mcp_servers.endpoint.offering import offers_for, page_after
from mcp_servers.endpoint.paging import count_fitting
from mcp_servers.gate.access import ends_with_access
from workspaces.database import in_database
from workspaces.errors import DomainError
from workspaces.product import NAME, VERSION

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from starlette.types import Message, Scope

    from mcp_servers.client.values import Progress
    from mcp_servers.endpoint.callers import EndpointCaller

P = TypeVar("P")
R = TypeVar("R")
logger = logging.getLogger(__name__)

_EXCHANGE: Final = "trellis.exchange"
"""Where the request's scope holds what our handlers need."""
MOST_BYTES: Final = 4 * 1024 * 1024
_ONE_BY_ONE: Final = "This is an array. Send each message in a request of its own."
"""Source: MCP specification, "Transports": the body is a single message. Arrays of them were of 2025-03-26 alone."""
_NO_MESSAGE: Final = (
    'This is no message of JSON-RPC. One is an object with "jsonrpc": "2.0" and a "method";'
    ' "params" is an object, and "id" a text or a whole number.'
)


@dataclass(slots=True)
class EndpointResponse:
    """What goes back to the client."""

    status: int = 500
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""


@dataclass(slots=True)
class ClientRequest:
    """One request, and what becomes of it besides its answer."""

    caller: EndpointCaller
    lacks_scope: bool = False
    """The client's token does not allow what it asked for."""
    progress: Progress | None = None
    """How far the work is."""
    progress_token: mcp_types.ProgressToken | None = None
    """By which the client wants to hear of that; None: it does not."""

    def progress_beyond(self, reached: float | None) -> dict[str, Any] | None:
        """The notification of how far the work is; None: no further than this, or the client does not ask.

        Source: MCP specification, "Progress": the value must increase.
        """
        now, token = self.progress, self.progress_token
        if now is None or token is None or (reached is not None and now.progress <= reached):
            return None
        known = {"progress": now.progress, "total": now.total, "message": now.message}
        params = {name: value for name, value in known.items() if value is not None}
        params["progressToken"] = token
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


async def answer(
    exchange: ClientRequest, *, headers: Sequence[tuple[bytes, bytes]], body: bytes
) -> EndpointResponse:
    """Answer one request.

    Args:
        headers: of the request, with names in lower case.
    """
    if (request_id := cancelling.cancelled_id(body)) is not None:
        await cancelling.cancel(exchange.caller, request_id)
    given = EndpointResponse()
    manager = StreamableHTTPSessionManager(
        _server(), stateless=True, json_response=True, max_request_body_size=MOST_BYTES
    )
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "headers": list(headers),
        _EXCHANGE: exchange,
    }
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            # The client is there until it has its answer. Else the SDK gives up what it would stream.
            await anyio.sleep_forever()
        return messages.pop()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            given.status = message["status"]
            given.headers = [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in message.get("headers", [])
            ]
        elif message["type"] == "http.response.body":
            given.body += message.get("body", b"")

    async with manager.run():
        await manager.handle_request(scope, receive, send)
    if given.status == HTTPStatus.BAD_REQUEST and _is_json(given):
        _say_what_is_taken(given, body)
    return given


def _is_json(given: EndpointResponse) -> bool:
    return dict(given.headers).get("content-type", "").startswith("application/json")


def _say_what_is_taken(given: EndpointResponse, body: bytes) -> None:
    """Say it in words where the request is JSON and no message: the SDK tells what its classes miss in it."""
    try:
        content = from_json(body)
    except ValueError:
        return
    try:
        mcp_types.jsonrpc_message_adapter.validate_python(content, by_name=False)
    except ValueError:
        message = _ONE_BY_ONE if isinstance(content, list) else _NO_MESSAGE
        given.body = json.dumps(refusal_of(message)).encode()
        given.headers = [("content-type", "application/json")]


def fault_for(body: bytes, message: str) -> EndpointResponse | None:
    """An error as the protocol tells it to whoever sent this request; None: it waits for no answer, or cannot be read."""
    try:
        request = mcp_types.jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValueError:
        return None
    if not isinstance(request, mcp_types.JSONRPCRequest):
        return None
    error = mcp_types.ErrorData(code=mcp_types.INTERNAL_ERROR, message=message)
    answer = mcp_types.JSONRPCError(jsonrpc="2.0", id=request.id, error=error)
    return EndpointResponse(
        status=HTTPStatus.OK,
        headers=[("content-type", "application/json")],
        body=answer.model_dump_json(by_alias=True, exclude_none=True).encode(),
    )


def refusal_of(message: str) -> dict[str, Any]:
    """The error of the protocol for a message that nobody has looked into, so its id is not known."""
    error = {"code": mcp_types.INVALID_REQUEST, "message": message}
    return {"jsonrpc": "2.0", "id": None, "error": error}


@cache
def _server() -> Server[Any]:
    return Server(
        NAME,
        version=VERSION,
        title="Trellis",
        on_list_tools=_guarded(_list),
        on_call_tool=_guarded(_call),
        on_list_resources=_guarded(_list_resources),
        on_list_resource_templates=_guarded(_list_templates),
        on_read_resource=_guarded(_read),
        on_list_prompts=_guarded(_list_prompts),
        on_get_prompt=_guarded(_get_prompt),
        on_completion=_guarded(_complete),
    )


def _guarded(
    handler: Callable[[ServerRequestContext[Any], P], Awaitable[R]],
) -> Callable[[ServerRequestContext[Any], P], Awaitable[R]]:
    """The handler, which ends with its client's access. Its failures that nobody expected are for our log alone.

    The SDK tells clients of 2025-11-25 and before the text of any exception, be it the database's.
    """

    @wraps(handler)
    async def handle(context: ServerRequestContext[Any], params: P) -> R:
        try:
            async with ends_with_access(partial(has_access, _exchange_of(context).caller)):
                return await handler(context, params)
        except MCPError:
            raise
        except DomainError as error:
            raise MCPError(mcp_types.INVALID_REQUEST, error.message) from error
        except Exception as error:
            logger.exception("endpoint_failed", extra={"handler": handler.__name__})
            raise MCPError(mcp_types.INTERNAL_ERROR, "Internal server error") from error

    return handle


async def _list(
    context: ServerRequestContext[Any], params: mcp_types.PaginatedRequestParams | None
) -> mcp_types.ListToolsResult:
    offers = await in_database(offers_for, _exchange_of(context).caller)
    page, following = page_after(offers, _cursor_in(params))
    page_of_tools = [offer.as_wire() for offer in page]
    fits = count_fitting(page_of_tools)
    if fits < len(page_of_tools):
        following = page[fits - 1].name
    return mcp_types.ListToolsResult(tools=page_of_tools[:fits], next_cursor=following)


async def _call(
    context: ServerRequestContext[Any], params: mcp_types.CallToolRequestParams
) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
    exchange = _exchange_of(context)
    reply = None
    if params.request_state is not None:
        reply = InputReply(state=params.request_state, responses=params.input_responses or {})
    exchange.progress_token = (context.meta or {}).get("progress_token")
    try:
        work = call(
            exchange.caller,
            params.name,
            params.arguments or {},
            on_progress=partial(setattr, exchange, "progress"),
            revision=context.protocol_version,
            can_be_asked=_puts_forms(context),
            reply=reply,
        )
        return await cancelling.run(exchange.caller, context.request_id, work)
    except ChangesRefused as error:
        exchange.lacks_scope = True
        raise MCPError(mcp_types.INVALID_REQUEST, error.message) from error


async def _list_resources(
    context: ServerRequestContext[Any], params: mcp_types.PaginatedRequestParams | None
) -> mcp_types.ListResourcesResult:
    caller, cursor = _exchange_of(context).caller, _cursor_in(params)
    listed, following = await in_database(resources.list_resources, caller, cursor)
    return mcp_types.ListResourcesResult(resources=listed, next_cursor=following)


async def _list_templates(
    context: ServerRequestContext[Any], params: mcp_types.PaginatedRequestParams | None
) -> mcp_types.ListResourceTemplatesResult:
    caller, cursor = _exchange_of(context).caller, _cursor_in(params)
    listed, following = await in_database(resources.list_templates, caller, cursor)
    return mcp_types.ListResourceTemplatesResult(resource_templates=listed, next_cursor=following)


async def _read(
    context: ServerRequestContext[Any], params: mcp_types.ReadResourceRequestParams
) -> mcp_types.ReadResourceResult:
    caller = _exchange_of(context).caller
    return await resources.read(caller, str(params.uri), revision=context.protocol_version)


async def _list_prompts(
    context: ServerRequestContext[Any], params: mcp_types.PaginatedRequestParams | None
) -> mcp_types.ListPromptsResult:
    caller, cursor = _exchange_of(context).caller, _cursor_in(params)
    listed, following = await in_database(prompts.list_prompts, caller, cursor)
    return mcp_types.ListPromptsResult(prompts=listed, next_cursor=following)


async def _get_prompt(
    context: ServerRequestContext[Any], params: mcp_types.GetPromptRequestParams
) -> mcp_types.GetPromptResult:
    caller, revision = _exchange_of(context).caller, context.protocol_version
    return await prompts.get(caller, params.name, params.arguments or {}, revision=revision)


async def _complete(
    context: ServerRequestContext[Any], params: mcp_types.CompleteRequestParams
) -> mcp_types.CompleteResult:
    values = await prompts.suggest(_exchange_of(context).caller, params)
    return mcp_types.CompleteResult(completion=mcp_types.Completion(values=values))


def _cursor_in(params: mcp_types.PaginatedRequestParams | None) -> str:
    return (params.cursor if params else None) or ""


def _puts_forms(context: ServerRequestContext[Any]) -> bool:
    """Whether the client puts forms to its person, and makes the call again with the answers.

    Those of before would have to be asked over an open connection, of which there is none.
    """
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return False
    is_of_today = context.protocol_version in mcp_types.version.MODERN_PROTOCOL_VERSIONS
    return is_of_today and (
        capabilities.elicitation.form is not None or capabilities.elicitation.url is None
    )


def _exchange_of(context: ServerRequestContext[Any]) -> ClientRequest:
    request = cast("Any", context.request)
    return cast("ClientRequest", request.scope[_EXCHANGE])
