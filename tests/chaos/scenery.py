"""A model that follows a plan however often it is asked, and a server that counts what it does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.chaos.history_check import Effect
from tests.fakes.mcp_server import Listening
from tests.fakes.scripted_model import DONE, chunk, usage

READ, MERGE, DESTROY = "read", "merge", "destroy"
"""The three kinds of tools: only reads; may be repeated; must not be repeated."""


_TOKEN = 36
"""Characters of a plan's token, which is a UUID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the model shall do in one turn; a message's text is the plan, so that it can be followed by anybody."""

    token: str
    """Unique: the calls' arguments hold it."""
    steps: Sequence[Sequence[str]] = ((MERGE,), (READ,), (DESTROY,))
    """The tools to be called in each step."""
    pause: float = 0.0
    """Seconds of silence before the last word of the answer."""
    words: int = 3

    def as_text(self) -> str:
        """The message to be sent."""
        return json.dumps(
            {
                "token": self.token,
                "steps": [list(step) for step in self.steps],
                "pause": self.pause,
                "words": self.words,
            }
        )

    @classmethod
    def of(cls, text: str) -> Plan:
        """The plan in a message."""
        return cls(**json.loads(text))

    def calls(self, step: int) -> list[tuple[str, str]]:
        """(tool, its argument) of one step."""
        return [
            (tool, f"{self.token}-{step}-{place}-{tool}")
            for place, tool in enumerate(self.steps[step])
        ]

    def answer(self) -> list[str]:
        """The words of the answer, the last of which comes after the pause."""
        return [f"word{number}" for number in range(self.words)] + [f"end of {self.token}"]


class PlannedModel:
    """Speaks OpenAI's wire format; where a plan stands is read from the request alone."""

    def __init__(self, prefix: str = "counting__") -> None:
        self.requests = 0
        self._prefix = prefix
        app = Starlette(routes=[Route("/v1/chat/completions", self._complete, methods=["POST"])])
        self._listening = Listening(app)
        self.base_url = f"{self._listening.origin}/v1"

    def stop(self) -> None:
        """End the server."""
        self._listening.stop()

    async def _complete(self, request: Request) -> Response:
        self.requests += 1
        messages = (await request.json())["messages"]
        last = max(n for n, message in enumerate(messages) if message["role"] == "user")
        text = _text_of(messages[last])
        if not text.startswith("{"):
            text = Plan(token="a title", steps=()).as_text()
        plan = Plan.of(text)
        step = sum(1 for message in messages[last:] if message.get("tool_calls"))
        parts = self._calls(plan, step) if step < len(plan.steps) else self._words(plan)
        return StreamingResponse(parts, headers={"content-type": "text/event-stream"})

    async def _calls(self, plan: Plan, step: int) -> AsyncIterator[bytes]:
        asked = [
            {
                "index": index,
                "id": f"call_{step}_{index}",
                "type": "function",
                "function": {
                    "name": f"{self._prefix}{tool}",
                    "arguments": json.dumps({"what": what}),
                },
            }
            for index, (tool, what) in enumerate(plan.calls(step))
        ]
        yield chunk({"tool_calls": asked})
        yield chunk({}, "tool_calls")
        yield usage()
        yield DONE

    async def _words(self, plan: Plan) -> AsyncIterator[bytes]:
        *words, last = plan.answer()
        for word in words:
            yield chunk({"content": f"{word} "})
            await asyncio.sleep(plan.pause / (2 * len(words)) if plan.pause else 0)
        await asyncio.sleep(plan.pause / 2)
        yield chunk({"content": last})
        yield chunk({}, "stop")
        yield usage()
        yield DONE


def _text_of(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


class CountingTools:
    """A server with a tool of each kind; the count is its own, and outlives whoever calls."""

    def __init__(self, *, seconds: float = 0.0) -> None:
        self.seconds = seconds
        """How long each tool works, after it has taken effect."""
        self.effects: list[Effect] = []
        self.silent_at: dict[str, int] = {}
        """By the plans' tokens: which of their calls gets no answer as long as it is in here, counted from 1."""
        self._lock = threading.Lock()
        self.server = MCPServer("counting", version="1.0", log_level="ERROR")
        self._add(READ, read_only_hint=True)
        self._add(MERGE, read_only_hint=False, destructive_hint=False, idempotent_hint=True)
        self._add(DESTROY, read_only_hint=False, destructive_hint=True)
        self._listening = Listening(self.server.streamable_http_app())

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"{self._listening.origin}/mcp"

    def stop(self) -> None:
        """End the server."""
        self._listening.stop()

    def done(self, token: str, tool: str) -> int:
        """How often a tool took effect for a plan."""
        return sum(
            1
            for effect in list(self.effects)
            if effect.tool == tool and str(effect.arguments["what"]).startswith(f"{token}-")
        )

    def _add(self, name: str, **hints: bool) -> None:
        async def tool(what: str) -> str:
            token = what[:_TOKEN]
            with self._lock:
                self.effects.append(Effect(name, {"what": what}))
                number = sum(str(one.arguments["what"]).startswith(token) for one in self.effects)
            if self.seconds:
                await asyncio.sleep(self.seconds)
            while self.silent_at.get(token) == number:
                await asyncio.sleep(0.05)
            return f"{name}: {what}"

        annotations = ToolAnnotations(open_world_hint=False, **hints)
        self.server.add_tool(tool, name=name, description=name, annotations=annotations)
