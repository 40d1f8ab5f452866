"""OpenAI's Responses API, for models and endpoints that speak nothing else. Pure.

Requests are written in the form of Chat Completions everywhere else, and answers are read in it. This module turns the one
into the other on the way out, and back on the way in. Nothing is stored at the provider (`store: false`): the
conversation is ours.

Source: OpenAI API reference, "Create a model response" and "Streaming events".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from chat.providers.echoed_fields import ITEMS

_SAME: Final = ("model", "temperature", "top_p", "stream", "parallel_tool_calls")
_TEXT_EVENTS: Final = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}
_ENCRYPTED: Final = "reasoning.encrypted_content"
"""What the model thought, as only it can read it: with nothing stored there, it comes to us and goes back."""
_OF_THOUGHT: Final = ("type", "id", "summary", "encrypted_content")
_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})

Json = Mapping[str, Any]


def to_responses(
    arguments: Json,
    tools: Sequence[str],
    *,
    wants_thoughts: bool = True,
    wants_summary: bool = True,
) -> dict[str, Any]:
    """The same request in the form of the Responses API.

    Args:
        arguments: those of Chat Completions, without the tools.
        tools: each as JSON, in the form of Chat Completions.
        wants_summary: whether people are to read what it thinks, as far as it tells that.
        wants_thoughts: whether what the model thinks is to come along, to go back with its calls.
    """
    asked: dict[str, Any] = {name: arguments[name] for name in _SAME if name in arguments}
    asked |= {"input": list(_input(arguments.get("messages", ()))), "store": False}
    if tools and wants_thoughts:
        asked["include"] = [_ENCRYPTED]
    most = arguments.get("max_completion_tokens", arguments.get("max_tokens"))
    if most is not None:
        asked["max_output_tokens"] = most
    reasoning = {"summary": "auto"} if wants_summary else {}
    if "reasoning_effort" in arguments:
        reasoning["effort"] = arguments["reasoning_effort"]
    if reasoning:
        asked["reasoning"] = reasoning
    if tools:
        asked["tools"] = [_tool(json.loads(tool)) for tool in tools]
    if "tool_choice" in arguments:
        asked["tool_choice"] = _choice(arguments["tool_choice"])
    return asked


def _input(messages: Sequence[Json]) -> Iterator[dict[str, Any]]:
    for message in messages:
        role, content = message["role"], message.get("content")
        if role == "tool":
            call_id = message["tool_call_id"]
            yield {"type": "function_call_output", "call_id": call_id, "output": content or ""}
            continue
        yield from message.get(ITEMS, ())
        if content:
            kind = "output_text" if role == "assistant" else "input_text"
            yield {"type": "message", "role": role, "content": _parts(content, kind)}
        for call in message.get("tool_calls", ()):
            function = call["function"]
            yield {
                "type": "function_call",
                "call_id": call["id"],
                "name": function["name"],
                "arguments": function["arguments"],
            }


def _parts(content: str | Sequence[Json], kind: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": kind, "text": content}]
    return [
        {"type": "input_image", "image_url": part["image_url"]["url"]}
        if part["type"] == "image_url"
        else {"type": kind, "text": part["text"]}
        for part in content
    ]


def _tool(tool: Json) -> dict[str, Any]:
    # Our schemas are the servers' own, so none of them is held to the subset that strict calls demand.
    return {"type": "function", "strict": False, **tool["function"]}


def _choice(choice: Any) -> Any:
    is_one = isinstance(choice, Mapping) and isinstance(choice.get("function"), Mapping)
    return {"type": "function", "name": choice["function"]["name"]} if is_one else choice


class ResponseTranslator:
    """Turns the events of one answer into chunks of Chat Completions."""

    def __init__(self) -> None:
        self._spoken: set[int] = set()
        """Calls whose arguments have come piece by piece."""
        self._has_calls = False
        self.is_done = False
        """The last event has come."""

    def take(self, event: Json) -> Iterator[Json]:
        """What an event means; events that add nothing to an answer give nothing."""
        kind = event.get("type")
        if event.get("object") == "response":
            yield from self._whole(event)
        elif kind in _TEXT_EVENTS:
            yield _delta({_TEXT_EVENTS[kind]: event.get("delta")})
        elif kind == "response.function_call_arguments.delta":
            index = _index(event)
            self._spoken.add(index)
            yield _call(index, {"arguments": event.get("delta")})
        elif kind in ("response.output_item.added", "response.output_item.done"):
            yield from self._item(event)
        elif kind in _ENDS:
            yield from self._end(_mapping(event.get("response")))
        elif kind == "error" or (kind is None and event.get("error")):
            yield {"error": event.get("error") or event}

    def _item(self, event: Json) -> Iterator[Json]:
        item, index = _mapping(event.get("item")), _index(event)
        is_done = event.get("type") == "response.output_item.done"
        if is_done and item.get("type") == "reasoning" and item.get("encrypted_content"):
            yield _delta({ITEMS: [{name: item[name] for name in _OF_THOUGHT if name in item}]})
        if item.get("type") != "function_call":
            return
        self._has_calls = True
        named = {"name": item.get("name"), "arguments": ""}
        # Some servers send the arguments with the finished call alone.
        if is_done and index not in self._spoken:
            named["arguments"] = item.get("arguments") or ""
        yield _call(index, named, item.get("call_id"))

    def _whole(self, response: Json) -> Iterator[Json]:
        """The answer of a server that does not stream."""
        for index, item in enumerate(_mappings(response.get("output"))):
            if item.get("type") == "message":
                for part in _mappings(item.get("content")):
                    text_of_part = part.get("text") or part.get("refusal")
                    yield _delta({"content": text_of_part})
            yield from self._item(
                {"type": "response.output_item.done", "item": item, "output_index": index}
            )
        yield from self._end(response)

    def _end(self, response: Json) -> Iterator[Json]:
        self.is_done = True
        usage = _mapping(response.get("usage"))
        if usage:
            cached = _mapping(usage.get("input_tokens_details")).get("cached_tokens")
            yield {
                "choices": [],
                "usage": {
                    "prompt_tokens": usage.get("input_tokens"),
                    "completion_tokens": usage.get("output_tokens"),
                    "prompt_tokens_details": {"cached_tokens": cached},
                },
            }
        if response.get("error"):
            yield {"error": response["error"]}
            return
        reason = _mapping(response.get("incomplete_details")).get("reason")
        if reason is None and response.get("status") == "failed":
            reason = "error"
        whole = "tool_calls" if self._has_calls else "stop"
        yield _delta({}, reason if isinstance(reason, str) else whole)


def _delta(delta: Json, reason: str | None = None) -> Json:
    return {"choices": [{"delta": delta, "finish_reason": reason}]}


def _call(index: int, function: Json, call_id: object = None) -> Json:
    return _delta({"tool_calls": [{"index": index, "id": call_id, "function": function}]})


def _index(event: Json) -> int:
    index = event.get("output_index")
    return index if isinstance(index, int) else 0


def _mapping(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Json]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
