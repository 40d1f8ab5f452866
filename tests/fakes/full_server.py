"""The SDK's server with every feature of the protocol, over every transport, in both eras.

As a program: `python full_server.py` speaks stdio.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any

import mcp_types
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

if __name__ != "__main__":
    from tests.fakes.mcp_server import Listening

PROGRAM = Path(__file__)


class Size(BaseModel):
    """What the form asks for."""

    size: str


async def ask_size() -> Elicit[Size]:
    """Ask for a size, in whatever way the revision has."""
    return Elicit("Which size?", Size)


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """The newest revision deprecates these, and older ones have nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class FullServer:
    """The server, and what it did."""

    def __init__(self, name: str = "full", **options: Any) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.cancelled: list[float] = []
        """Of the calls of `silent` that were stopped, how many seconds each would have taken."""
        self.server = MCPServer(
            name, version="1.0", instructions="Be kind.", log_level="CRITICAL", **options
        )
        self._add_tools()
        self._add_offers()

    def _add_tools(self) -> None:
        server, calls = self.server, self.calls

        @server.tool()
        def echo(text: str) -> str:
            """Say it again."""
            calls.append(("echo", text))
            return text

        @server.tool()
        async def silent(seconds: float) -> str:
            """Say nothing for a while."""
            calls.append(("silent", seconds))
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                self.cancelled.append(seconds)
                raise
            return "done"

        @server.tool()
        async def steps(count: int, seconds: float, ctx: Context) -> str:
            """Say how far it is, step by step."""
            for step in range(count):
                await ctx.report_progress(step, count, f"step {step}")
                await asyncio.sleep(seconds)
            return "done"

        @server.tool()
        async def ask_form(ctx: Context) -> str:
            """Ask a person over the open connection."""
            answer = await ctx.elicit("Which size?", Size)
            calls.append(("ask_form", answer.action))
            return f"{answer.action} {getattr(getattr(answer, 'data', None), 'size', '')}".strip()

        @server.tool()
        async def ask_form_later(seconds: float, ctx: Context) -> str:
            """Ask a person after a while."""
            await asyncio.sleep(seconds)
            answer = await ctx.elicit("Which size?", Size)
            return answer.action

        @server.tool()
        async def ask_url(ctx: Context) -> str:
            """Send a person to a page."""
            answer = await ctx.elicit_url("Please sign in.", "https://example.com/in", "e-1")
            return answer.action

        @server.tool()
        async def ask_model(ctx: Context) -> str:
            """Ask the model."""
            message = mcp_types.SamplingMessage(
                role="user", content=mcp_types.TextContent(type="text", text="Say hi")
            )
            with _without_warnings():
                asking = ctx.session.create_message([message], max_tokens=50)
            result = await asking
            assert isinstance(result.content, mcp_types.TextContent)
            return f"{result.model}: {result.content.text}"

        @server.tool()
        async def ask_roots(ctx: Context) -> str:
            """Ask for the folders."""
            with _without_warnings():
                asking = ctx.session.list_roots()
            result = await asking
            return ", ".join(str(root.uri) for root in result.roots)

        @server.tool()
        async def ask_any(
            answer: Annotated[Size, Resolve(ask_size)],
        ) -> str:
            """Ask in the way of the revision that is spoken."""
            calls.append(("ask_any", answer.size))
            return f"size {answer.size}"

        @server.tool()
        async def change(what: str, ctx: Context) -> str:
            """Say that something changed."""
            # One reaches listeners of the newest revision, the other clients of the older ones.
            if what == "tools":
                await ctx.notify_tools_changed()
                await ctx.session.send_tool_list_changed()
            elif what == "prompts":
                await ctx.notify_prompts_changed()
                await ctx.session.send_prompt_list_changed()
            elif what == "resources":
                await ctx.notify_resources_changed()
                await ctx.session.send_resource_list_changed()
            else:
                await ctx.notify_resource_updated(what)
            return "said"

        @server.tool()
        async def say(text: str, ctx: Context) -> str:
            """Write to the log."""
            with _without_warnings():
                await ctx.info(text)
            return "said"

    def _add_offers(self) -> None:
        server = self.server

        @server.resource("memo://note", name="note", mime_type="text/plain")
        def note() -> str:
            return "the note"

        @server.resource("memo://{name}/page", name="page")
        def page(name: str) -> str:
            return f"page of {name}"

        @server.prompt()
        def greet(name: str) -> str:
            """Greet somebody."""
            return f"Say hello to {name}"

        @server.completion()
        async def completion(ref: Any, argument: Any, context: Any) -> mcp_types.Completion | None:
            names = ["anna", "annika", "ben"]
            return mcp_types.Completion(
                values=[name for name in names if name.startswith(argument.value)]
            )

    def web_app(self) -> Any:
        """Streamable HTTP at /mcp, SSE at /sse, a WebSocket at /ws."""
        app = self.server.streamable_http_app()
        low = self.server._lowlevel_server

        async def socket(websocket: WebSocket) -> None:
            await websocket.accept("mcp" if "mcp" in websocket.scope["subprotocols"] else None)
            async with socket_streams(websocket) as (read, write):
                await low.run(read, write, low.create_initialization_options())

        app.router.routes[:0] = [
            WebSocketRoute("/ws", socket),
            *(route for route in self.server.sse_app().routes if isinstance(route, Route | Mount)),
        ]
        return app


@contextlib.asynccontextmanager
async def socket_streams(websocket: WebSocket) -> AsyncIterator[tuple[Any, Any]]:
    """A WebSocket as the pair of streams that the SDK's server reads and writes."""
    import anyio
    from mcp.shared.message import SessionMessage

    to_server, read = anyio.create_memory_object_stream[Any](0)
    write, from_server = anyio.create_memory_object_stream[Any](0)

    async def receive() -> None:
        async with to_server:
            with contextlib.suppress(WebSocketDisconnect):
                while True:
                    text = await websocket.receive_text()
                    message = mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False)
                    await to_server.send(SessionMessage(message))

    async def send() -> None:
        async with from_server:
            async for item in from_server:
                body = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await websocket.send_text(body)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        tasks.start_soon(send)
        try:
            yield read, write
        finally:
            tasks.cancel_scope.cancel()


@contextlib.contextmanager
def full_server(**options: Any) -> Iterator[tuple[FullServer, Listening]]:
    """The server on a port, for the length of a block."""
    server = FullServer(**options)
    listening = Listening(server.web_app())
    try:
        yield server, listening
    finally:
        listening.stop()


if __name__ == "__main__":
    FullServer(sys.argv[1] if len(sys.argv) > 1 else "full").server.run("stdio")
