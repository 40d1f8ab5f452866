"""The model and the MCP servers that are measured against: each a process of its own, `python -m bench.peers NAME [PORT]`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

WORD = "token "


async def _completions(request: Request) -> Response:
    body = await request.json()
    if body["messages"][-1]["content"] == "call" and body.get("tools"):
        return StreamingResponse(_call(body["tools"][0]), media_type="text/event-stream")
    if body["messages"][-1]["role"] == "tool":
        return StreamingResponse(_stream(5, 0, is_stamped=False), media_type="text/event-stream")
    # "<tokens> <tokens per second>" is what the question says; 0 means at once. With "stamped" each word is its moment.
    # Whatever else is asked for, a title for instance, takes five tokens.
    asked = body["messages"][-1]["content"].split()
    tokens, rate, *more = asked if asked[0].isdigit() else ("5", "0")
    words = _stream(int(tokens), float(rate), is_stamped="stamped" in more)
    return StreamingResponse(words, media_type="text/event-stream")


async def _stream(tokens: int, rate: float, *, is_stamped: bool) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    start = loop.time()
    for number in range(tokens):
        if rate:
            await asyncio.sleep(max(0.0, start + number / rate - loop.time()))
        # All processes of a machine share this clock.
        word = f"{time.monotonic():.5f} " if is_stamped else WORD
        yield _chunk({"content": word}, None)
    yield _chunk({}, "stop")
    yield "data: [DONE]\n\n"


async def _call(tool: dict[str, Any]) -> AsyncIterator[str]:
    function = {"name": tool["function"]["name"], "arguments": '{"text": "hi"}'}
    yield _chunk(
        {"tool_calls": [{"index": 0, "id": "1", "type": "function", "function": function}]}, None
    )
    yield _chunk({}, "tool_calls")
    yield "data: [DONE]\n\n"


def _chunk(delta: dict[str, Any], reason: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"


def model_app() -> Any:
    """An OpenAI-wire model that says as many tokens as it is asked for."""
    return Starlette(routes=[Route("/v1/chat/completions", _completions, methods=["POST"])])


def tools_server() -> MCPServer:
    """An MCP server with one tool."""
    server = MCPServer("echo", log_level="ERROR")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def echo(text: str) -> str:
        """Say it again."""
        return text

    return server


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        tools_server().run("stdio")
        sys.exit()
    app = model_app() if sys.argv[1] == "model" else tools_server().streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
