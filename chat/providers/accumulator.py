"""Puts an answer together from the chunks of a stream, and forgives what servers do. Pure.

Known forms: every call with index 0 and a new id; no index at all; ids and names repeated in each
delta, or missing; arguments as null, as an object, or in one piece; usage in a last chunk without
choices; `finish_reason` "stop" despite tool calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from uuid_utils.compat import uuid7

from chat.providers.base import AskedCall, Completion
from mcp_servers.canonical import clean_text

_MOST_CALLS = 128


class _Slot:
    __slots__ = ("arguments", "id", "index", "name")

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class Accumulator:
    """Takes chunk objects of Chat Completions; gives text as it comes, and the whole at the end."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._slots: list[_Slot] = []
        self.finish_reason = ""
        self.prompt_tokens = 0
        self.completion_tokens = 0

    @property
    def has_content(self) -> bool:
        return bool(self._text or self._slots)

    def take(self, chunk: Mapping[str, Any]) -> str:
        """Take one chunk; returns the text that it adds."""
        usage = chunk.get("usage")
        if isinstance(usage, Mapping):
            self.prompt_tokens = _count(usage.get("prompt_tokens"), self.prompt_tokens)
            self.completion_tokens = _count(usage.get("completion_tokens"), self.completion_tokens)
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
            return ""
        choice = choices[0]
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            return ""
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for call in calls:
                if isinstance(call, Mapping):
                    self._take_call(call)
        text = delta.get("content")
        if isinstance(text, str) and text:
            text = clean_text(text)
            self._text.append(text)
            return text
        return ""

    def text(self) -> str:
        """The answer's text so far."""
        return "".join(self._text)

    def completion(self) -> Completion:
        """The whole answer."""
        calls = tuple(
            AskedCall(
                id=slot.id or f"call_{uuid7().hex}",
                name=slot.name,
                arguments="".join(slot.arguments),
            )
            for slot in self._slots
            if slot.name
        )
        return Completion(
            text=self.text(),
            calls=calls,
            finish_reason=self.finish_reason,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
        )

    def _take_call(self, call: Mapping[str, Any]) -> None:
        function = call.get("function")
        function = function if isinstance(function, Mapping) else {}
        call_id = call.get("id") if isinstance(call.get("id"), str) else ""
        name = function.get("name") if isinstance(function.get("name"), str) else ""
        index = call.get("index") if isinstance(call.get("index"), int) else None
        call_id, name = clean_text(str(call_id or "")), clean_text(str(name or ""))
        slot = self._slot_for(index, call_id, name)
        slot.id = slot.id or call_id
        slot.name = slot.name or name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            slot.arguments.append(arguments)
        elif isinstance(arguments, Mapping):
            slot.arguments.append(json.dumps(arguments))

    def _slot_for(self, index: int | None, call_id: str, name: str) -> _Slot:
        if index is not None:
            slot = next((s for s in reversed(self._slots) if s.index == index), None)
            # One index for all calls: another id means another call.
            is_other = slot is not None and call_id and slot.id and call_id != slot.id
            if slot is not None and not is_other:
                return slot
        elif self._slots:
            slot = self._slots[-1]
            is_new_id = bool(call_id) and call_id != slot.id
            is_new_name = bool(name) and bool(slot.arguments) and not call_id
            if not is_new_id and not is_new_name:
                return slot
        if len(self._slots) >= _MOST_CALLS:
            return self._slots[-1]
        new = _Slot(index)
        self._slots.append(new)
        return new


def _count(value: object, before: int) -> int:
    return value if isinstance(value, int) and value >= 0 else before
