"""The demo model's server: OpenAI's wire format (chat completions, streamed or whole; models)."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uuid_utils.compat import uuid7

from chat.demo_model.brain import DemoReply, reply_to

_WORD = re.compile(r"\s*\S+\s*")
_SECONDS_PER_WORD = 0.018
"""About as fast as people see real models answer."""


async def chat_completions(request: Request) -> Response:
    """POST /v1/chat/completions."""
    try:
        body = await request.json()
        messages = body["messages"]
        if not isinstance(messages, list):
            raise TypeError
    except (ValueError, KeyError, TypeError):
        error = {"message": "messages are missing", "type": "invalid_request_error", "code": None}
        return JSONResponse({"error": error}, status_code=400)
    tools = body.get("tools") or []
    reply = reply_to(messages, tools, body.get("tool_choice", "auto"))
    if body.get("stream"):
        return StreamingResponse(_stream(reply, messages), media_type="text/event-stream")
    return JSONResponse(_whole(reply, messages))


async def models(request: Request) -> Response:
    """GET /v1/models."""
    model = {"id": "demo", "object": "model", "created": 0, "owned_by": "trellis"}
    return JSONResponse({"object": "list", "data": [model]})


application = Starlette(
    routes=[
        Route("/v1/chat/completions", chat_completions, methods=["POST"]),
        Route("/v1/models", models),
    ]
)


async def _stream(reply: DemoReply, messages: list[Any]) -> AsyncIterator[str]:
    head = {
        "id": f"chatcmpl-{uuid7().hex}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": "demo",
    }

    def chunk(delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"

    yield chunk({"role": "assistant", "content": ""})
    for word in _WORD.findall(reply.thought):
        yield chunk({"reasoning_content": word})
        await asyncio.sleep(_SECONDS_PER_WORD / 3)
    for word in _WORD.findall(reply.text):
        yield chunk({"content": word})
        await asyncio.sleep(_SECONDS_PER_WORD)
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        opening = {"index": index, "id": call.id, "type": "function", "function": function}
        yield chunk({"tool_calls": [opening]})
        for start in range(0, len(call.arguments), 12):
            piece = {"arguments": call.arguments[start : start + 12]}
            yield chunk({"tool_calls": [{"index": index, "function": piece}]})
    yield chunk({}, "tool_calls" if reply.calls else "stop")
    yield f"data: {json.dumps({**head, 'choices': [], 'usage': _usage(reply, messages)})}\n\n"
    yield "data: [DONE]\n\n"


def _whole(reply: DemoReply, messages: list[Any]) -> dict[str, Any]:
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in reply.calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.thought:
        message["reasoning_content"] = reply.thought
    if calls:
        message["tool_calls"] = calls
    reason = "tool_calls" if calls else "stop"
    return {
        "id": f"chatcmpl-{uuid7().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": "demo",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": _usage(reply, messages),
    }


def _usage(reply: DemoReply, messages: list[Any]) -> dict[str, int]:
    prompt = sum(len(str(message.get("content") or "")) for message in messages) // 4
    answer = (len(reply.text) + sum(len(call.arguments) for call in reply.calls)) // 4 + 1
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
    }
