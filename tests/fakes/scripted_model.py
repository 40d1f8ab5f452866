"""A model that says what a test told it to, in OpenAI's wire format, over real HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
import threading
from array import array
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.fakes.mcp_server import Listening
from tests.fakes.openai_forms import fault_of_chat, fault_of_embeddings, fault_of_responses

DONE = b"data: [DONE]\n\n"
_CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m"}


def event(payload: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(payload)}\n\n".encode()


def chunk(delta: Mapping[str, Any], reason: str | None = None) -> bytes:
    """One chunk of a streamed completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return event({**_CHUNK, "choices": [choice]})


def usage(prompt: int = 7, completion: int = 5) -> bytes:
    """The last chunk, which holds no choices."""
    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    return event({**_CHUNK, "choices": [], "usage": counts})


_CONCEPTS = {"vacation": "leave", "holiday": "leave", "pet": "dog", "puppy": "dog"}


def vector_of(text: str, numbers: int) -> array[float]:
    """A vector that says which things a text is about, whatever their words: each thing points somewhere of its own."""
    found = [0.0] * numbers
    for word in re.findall(r"[a-z]{3,}", text.lower()):
        thing = word.removesuffix("s")
        pointing = random.Random(_CONCEPTS.get(thing, thing))
        found = [number + pointing.choice((-1.0, 1.0)) for number in found]
    return array("f", found if any(found) else [1.0] * numbers)


def _refused(fault: str) -> Response:
    """As OpenAI refuses a request that it cannot read. Source: OpenAI, "Error codes"."""
    values = {"message": fault, "type": "invalid_request_error", "param": None, "code": None}
    return Response(json.dumps({"error": values}), 400, media_type="application/json")


def _key_of(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass
class Answer:
    """One answer to one request."""

    parts: list[bytes | threading.Event] = field(default_factory=list)
    """Bytes to send; at an event, the answer waits until the test sets it."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    hangs: bool = False
    """After the parts, the connection stays open and silent."""
    breaks: bool = False
    """After the parts, the connection is torn down."""


class ScriptedModel:
    """Answers requests in the order of its script; keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.queries: list[str] = []
        self.speaks_responses = False
        self.closed = threading.Event()
        """Set when a caller hung up in the middle of an answer."""
        self._script: deque[Answer] = deque()
        self._holds: set[threading.Event] = set()
        self.models: Any = {"data": []}
        """What the endpoint says of its models; a text is sent as it is."""
        self.models_status = 200
        self.keys: set[str] | None = None
        """The keys that it takes; None: any, or none at all."""
        self.lists_for_everybody = False
        """As OpenRouter does: its list of models takes no key."""
        self.keys_sent: list[str] = []
        """With each request for an answer, in order."""
        self.embedded: list[dict[str, Any]] = []
        """Requests for embeddings, in order."""
        self.embedding_models = {"embed-small": 256}
        """And how many numbers their vectors have."""
        self.embedding_answers: deque[Answer] = deque()
        """To be given before the true ones, in order."""
        self.sends_lists = False
        """As servers do that know no base64."""
        app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/responses", self._respond, methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/v1/embeddings", self._embed, methods=["POST"]),
            ]
        )
        self._listening = Listening(app)
        self.base_url = f"{self._listening.origin}/v1"

    def stop(self) -> None:
        """End the server; an answer that a test still holds goes on, or its thread would keep the server."""
        for hold in self._holds:
            hold.set()
        self._listening.stop()

    def clear(self) -> None:
        """Begin anew: nothing has been asked, and nothing is to be said."""
        self.requests.clear()
        self.paths.clear()
        self.queries.clear()
        self.keys_sent.clear()
        self.closed.clear()
        self._script.clear()

    def say(self, text: str, *, hold: threading.Event | None = None) -> None:
        """Answer with a text, word by word; with `hold`, wait for it before the last word."""
        words = [word for word in text.split(" ") if word]
        parts: list[bytes | threading.Event] = [chunk({"role": "assistant", "content": ""})]
        for number, word in enumerate(words):
            if hold is not None and number == len(words) - 1:
                parts.append(hold)
            parts.append(chunk({"content": word if number == 0 else f" {word}"}))
        self.give(Answer([*parts, chunk({}, "stop"), usage(), DONE]))

    def call(self, *calls: tuple[str, Any], text: str = "") -> None:
        """Answer with tool calls: (function name, arguments as an object or as raw text)."""
        asked = [
            {
                "index": index,
                "id": f"call_{len(self.requests)}_{len(self._script)}_{index}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
                },
            }
            for index, (name, arguments) in enumerate(calls)
        ]
        opening = [chunk({"content": text})] if text else []
        delta = chunk({"tool_calls": asked})
        self.give(Answer([*opening, delta, chunk({}, "tool_calls"), usage(), DONE]))

    def give(self, answer: Answer) -> None:
        """Add an answer to the script."""
        self._holds |= {part for part in answer.parts if isinstance(part, threading.Event)}
        self._script.append(answer)

    def fail(self, status: int, body: bytes = b"{}", **headers: str) -> None:
        """Answer with an error."""
        kind = {"content-type": "application/json", **headers}
        self.give(Answer([body], status=status, headers=kind))

    def _refusal(self, request: Request) -> Response | None:
        """As OpenAI refuses a key; None: it takes this one. Source: OpenAI, "Error codes"."""
        if self.keys is None or _key_of(request) in self.keys:
            return None
        values = {
            "message": "Incorrect API key provided: sk-****. You can find your API key at https://platform.example.com.",
            "type": "invalid_request_error",
            "param": None,
            "code": "invalid_api_key",
        }
        return Response(json.dumps({"error": values}), 401, media_type="application/json")

    async def _models(self, request: Request) -> Response:
        refused = None if self.lists_for_everybody else self._refusal(request)
        if refused is not None:
            return refused
        body = self.models if isinstance(self.models, str) else json.dumps(self.models)
        return Response(body, status_code=self.models_status, media_type="application/json")

    async def _embed(self, request: Request) -> Response:
        """As OpenAI's Embeddings API. Source: OpenAI, "Create embeddings"."""
        if (refused := self._refusal(request)) is not None:
            return refused
        asked = await request.json()
        if fault := fault_of_embeddings(asked):
            return _refused(fault)
        self.embedded.append({**asked, "key": request.headers["authorization"]})
        if self.embedding_answers:
            answer = self.embedding_answers.popleft()
            self._holds |= {part for part in answer.parts if isinstance(part, threading.Event)}
            return StreamingResponse(self._stream(answer), answer.status, answer.headers)
        numbers = self.embedding_models.get(asked["model"])
        if numbers is None:
            values = {"error": {"message": "The model does not exist", "code": "model_not_found"}}
            return Response(json.dumps(values), 404, media_type="application/json")
        vectors = [vector_of(text, numbers) for text in asked["input"]]
        data = [
            {
                "object": "embedding",
                "index": at,
                "embedding": list(vector)
                if self.sends_lists
                else base64.b64encode(vector.tobytes()).decode(),
            }
            for at, vector in enumerate(vectors)
        ]
        tokens = sum(len(text.split()) for text in asked["input"])
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        whole = {"object": "list", "data": data, "model": asked["model"], "usage": usage}
        return Response(json.dumps(whole), media_type="application/json")

    async def _respond(self, request: Request) -> Response:
        """As OpenAI's Responses API, if this model speaks it; the script is one for both."""
        if not self.speaks_responses:
            return Response('{"detail":"Not Found"}', status_code=404)
        return await self._answer(request, fault_of_responses)

    async def _complete(self, request: Request) -> Response:
        return await self._answer(request, fault_of_chat)

    async def _answer(
        self, request: Request, fault_of: Callable[[Mapping[str, Any]], str | None]
    ) -> Response:
        self.keys_sent.append(_key_of(request))
        if (refused := self._refusal(request)) is not None:
            return refused
        self.paths.append(request.url.path)
        self.queries.append(request.url.query)
        asked = await request.json()
        if fault := fault_of(asked):
            return _refused(fault)
        self.requests.append(asked)
        if not self._script:
            return Response("the script is at its end", status_code=500)
        answer = self._script.popleft()
        return StreamingResponse(
            self._stream(answer), status_code=answer.status, headers=answer.headers
        )

    async def _stream(self, answer: Answer) -> AsyncIterator[bytes]:
        try:
            for part in answer.parts:
                if isinstance(part, threading.Event):
                    await asyncio.to_thread(part.wait, 20)
                else:
                    yield part
            if answer.hangs:
                await asyncio.sleep(60)
            if answer.breaks:
                raise ConnectionResetError
        except (asyncio.CancelledError, GeneratorExit):
            self.closed.set()
            raise
