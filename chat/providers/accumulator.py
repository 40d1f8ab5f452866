"""Puts an answer together from the chunks of a stream, and forgives what servers do. Pure.

Known forms: every call with index 0 and a new id; no index at all; ids and names repeated in each
delta, or missing; arguments as null, as an object, or in one piece; the older `function_call`; usage in
a last chunk without choices; `finish_reason` "stop" despite tool calls; thoughts in a field of their own
by several names, or at the start of the text; content as a list of parts; chunks without any delta.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from uuid_utils.compat import uuid7

from chat.providers import finish_reasons
from chat.providers.base import AskedCall, Completion, ReasoningPiece, TextPiece, TokenCount
from chat.providers.echoed_fields import (
    DETAILS,
    ITEMS,
    OF_CALL,
    THOUGHTS,
    DetailsJoiner,
    EchoedFields,
)
from chat.providers.json_ends import JsonPieces
from chat.providers.thinking import ThinkingSplitter
from mcp_servers.client.canonical import clean_text

_MOST_CALLS = 128
_MOST_AT_ONCE = 1_000
"""Pieces of calls in one chunk. Servers send one of each call."""
MOST_CHARACTERS = 4_000_000
"""Of text and arguments together; no model writes that much in one answer."""
MOST_REASONING = 100_000
"""Characters of thought that are kept; the rest of it is left out."""
_CUT = "\n[…]"
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking")

Pieces = tuple[TextPiece | ReasoningPiece, ...]


class AnswerTooLong(ValueError):
    """The answer is longer than anything sensible."""


class CallsUnclear(ValueError):
    """Which arguments belong to which call cannot be told."""


class _Slot:
    __slots__ = ("arguments", "beside", "id", "index", "name")

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments = JsonPieces()
        self.beside: dict[str, dict[str, Any]] = {}
        """What the provider wants back with it."""


class Accumulator:
    """Takes chunk objects of Chat Completions; gives text as it comes, and the whole at the end."""

    def __init__(self, *, splits_thoughts: bool = True) -> None:
        self._text: list[str] = []
        self._joined_text = SurrogateJoiner()
        self._reasoning: list[str] = []
        self._joined_thought = SurrogateJoiner()
        self._is_unclear = False
        self._reasoning_length = 0
        self._splitter = ThinkingSplitter() if splits_thoughts else None
        self._slots: list[_Slot] = []
        self._details = DetailsJoiner()
        self._items: list[Mapping[str, Any]] = []
        self._thinks_in_its_field = False
        self.finish_reason = ""
        self.usage = TokenCount()
        self.progress = 0
        """Characters of text, thought and arguments so far: what stands still has stalled."""
        self.ignored = 0

    @property
    def has_content(self) -> bool:
        """Whether anything of an answer has come."""
        return self.progress > 0 or bool(self._slots)

    def take(self, chunk: Mapping[str, Any]) -> Pieces:
        """Take one chunk; returns what it adds to text and reasoning.

        Raises:
            AnswerTooLong: there is no end to it.
            CallsUnclear: its calls contradict each other.
        """
        usage = chunk.get("usage")
        if isinstance(usage, Mapping):
            self._count(usage)
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            if not isinstance(usage, Mapping):
                # JSON-RPC, and whatever else is not an answer's.
                self.ignored += 1
            return ()
        if not choices or not isinstance(choices[0], Mapping):
            return ()
        choice = choices[0]
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = finish_reasons.plain_reason(reason)
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            # A server that does not stream sends the whole message.
            delta = choice.get("message")
            if not isinstance(delta, Mapping):
                return ()
        content = delta.get("content")
        if len(delta) == 1 and isinstance(content, str) and self._splitter is None:
            return self._say(self._joined_text.feed(content))  # by far the most
        self._take_calls(delta)
        return self._take_texts(delta)

    def close(self) -> Pieces:
        """What was held back because more might have come.

        Raises:
            CallsUnclear: arguments have come for a call that was never named.
        """
        has_nameless = any(slot.arguments.pieces and not slot.name for slot in self._slots)
        if self._is_unclear or has_nameless:
            raise CallsUnclear
        thought, text = self._joined_thought.close(), self._joined_text.close()
        if self._splitter is not None:
            shown, thoughts = self._splitter.feed(text)
            rest, last = self._splitter.close()
            self._splitter = None
            text, thought = shown + rest, thought + thoughts + last
        return (*self._think(thought), *self._say(text))

    def text(self) -> str:
        """The answer's text so far."""
        return "".join(self._text)

    def completion(self, ignored: int = 0) -> Completion:
        """The whole answer; `ignored` events more than it has seen itself."""
        named = [slot for slot in self._slots if slot.name]
        calls = tuple(
            AskedCall(
                id=slot.id or f"call_{uuid7().hex}",
                name=slot.name,
                arguments=_arguments_of(slot),
            )
            for slot in named
        )
        reasoning = "".join(self._reasoning)
        return Completion(
            text=self.text(),
            reasoning=reasoning,
            calls=calls,
            echoed_fields=self._echoed_fields(named, reasoning),
            finish_reason=self.finish_reason,
            prompt_tokens=self.usage.prompt,
            cached_tokens=self.usage.cached,
            completion_tokens=self.usage.completion,
            ignored_events=ignored + self.ignored,
        )

    def _echoed_fields(self, slots: list[_Slot], reasoning: str) -> EchoedFields | None:
        """Of an answer with calls; without, nobody asks for it."""
        message: dict[str, Any] = {}
        if self._thinks_in_its_field:
            message[THOUGHTS] = reasoning
        if details := self._details.whole():
            message[DETAILS] = details
        if self._items:
            message[ITEMS] = self._items
        found = EchoedFields(message, [slot.beside for slot in slots])
        return None if not slots or found.is_empty else found

    def _take_texts(self, delta: Mapping[str, Any]) -> Pieces:
        pieces: Pieces = ()
        for name in _THOUGHT_FIELDS:
            thought = delta.get(name)
            if isinstance(thought, str) and thought:
                self._thinks_in_its_field |= name == THOUGHTS
                # Some servers send the same thought under two names.
                pieces = self._think(self._joined_thought.feed(thought))
                break
        if DETAILS in delta:
            self._add(self._details.take(delta[DETAILS]))
        items = delta.get(ITEMS)
        if isinstance(items, list):
            self._items += [one for one in items if isinstance(one, Mapping)]
            self._add(len(json.dumps(items, default=str)))
        content = delta.get("content") or delta.get("refusal")
        if isinstance(content, list):
            content, thought = _joined(content)
            pieces += self._think(self._joined_thought.feed(thought))
        if not isinstance(content, str) or not content:
            return pieces
        content = self._joined_text.feed(content)
        if self._splitter is not None:
            content, thought = self._splitter.feed(content)
            pieces += self._think(thought)
            if self._splitter.is_done:
                self._splitter = None
        return pieces + self._say(content)

    def _say(self, text: str) -> Pieces:
        if not text:
            return ()
        text = clean_text(text)
        self._text.append(text)
        self.progress += len(text)
        if self.progress > MOST_CHARACTERS:
            raise AnswerTooLong
        return (TextPiece(text),)

    def _think(self, thought: str) -> Pieces:
        if not thought:
            return ()
        self._add(len(thought))
        left = MOST_REASONING - self._reasoning_length
        if left <= 0:
            return ()
        thought = clean_text(thought if len(thought) <= left else thought[:left] + _CUT)
        self._reasoning_length += len(thought)
        self._reasoning.append(thought)
        return (ReasoningPiece(thought),)

    def _add(self, characters: int) -> None:
        self.progress += characters
        if self.progress > MOST_CHARACTERS:
            raise AnswerTooLong

    def _count(self, usage: Mapping[str, Any]) -> None:
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
        if cached is None:
            # DeepSeek's own name for it.
            cached = usage.get("prompt_cache_hit_tokens")
        before = self.usage
        prompt = _number(usage.get("prompt_tokens"), before.prompt)
        self.usage = TokenCount(
            prompt=prompt,
            cached=min(prompt, _number(cached, before.cached)),
            completion=_number(usage.get("completion_tokens"), before.completion),
        )

    def _take_calls(self, delta: Mapping[str, Any]) -> None:
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            if len(calls) > _MOST_AT_ONCE:
                raise self._unclear()
            for call in calls:
                if isinstance(call, Mapping):
                    self._take_call(call)
        older = delta.get("function_call")
        if isinstance(older, Mapping):
            self._take_call({"index": 0, "function": older})

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
        for field in OF_CALL:
            if isinstance(value := call.get(field), Mapping):
                slot.beside.setdefault(field, {}).update(value)
                self._add(len(json.dumps(value, default=str)))
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):
            arguments = json.dumps(arguments)
        if isinstance(arguments, str) and arguments:
            slot.arguments.add(arguments)
            self._add(len(arguments))

    def _slot_for(self, index: int | None, call_id: str, name: str) -> _Slot:
        """The call that a piece belongs to: a known id's own, else the last one of its index, or a new one.

        Raises:
            CallsUnclear: the piece contradicts the call that its id names, or there are too many calls.
        """
        known = next((s for s in self._slots if call_id and s.id == call_id), None)
        if known is not None and (index is None or known.index in (None, index)):
            if name and known.name and name != known.name:
                raise self._unclear()
            return known
        slot = next((s for s in reversed(self._slots) if index is None or s.index == index), None)
        if slot is not None and not _is_another(slot, call_id, name):
            return slot
        if len(self._slots) >= _MOST_CALLS:
            raise self._unclear()
        new = _Slot(index)
        self._slots.append(new)
        return new

    def _unclear(self) -> CallsUnclear:
        self._is_unclear = True
        return CallsUnclear()


def _is_another(slot: _Slot, call_id: str, name: str) -> bool:
    """Whether a piece begins another call than the one before it: servers give one index, or none, to all."""
    if (call_id and slot.id and call_id != slot.id) or (name and slot.name and name != slot.name):
        return True
    if call_id and not slot.id:
        return slot.index is None or (bool(name) and slot.arguments.is_whole)
    if call_id or not name:
        return False
    if slot.index is None:
        return bool(slot.arguments.pieces)
    # Some repeat the name in each piece: without ids, the same name after a whole call is the next one.
    return not slot.id and slot.arguments.is_whole


def _arguments_of(slot: _Slot) -> str:
    joiner = SurrogateJoiner()
    parts = [*(joiner.feed(part) for part in slot.arguments.pieces), joiner.close()]
    return clean_text("".join(parts))


class SurrogateJoiner:
    """Puts characters together again that a server has cut in two between deltas, as JSON lets it."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """The text, without a half at its end whose other half may follow."""
        if not text:
            return ""
        held, self._held = self._held, ""
        if held:
            if "\udc00" <= text[0] <= "\udfff":
                pair = (held + text[0]).encode("utf-16-le", "surrogatepass")
                text = pair.decode("utf-16-le") + text[1:]
            else:
                text = held + text
        if "\ud800" <= text[-1] <= "\udbff":
            self._held, text = text[-1], text[:-1]
        return text

    def close(self) -> str:
        """A half that nothing followed."""
        held, self._held = self._held, ""
        return held


def _joined(parts: list[Any]) -> tuple[str, str]:
    """(text, thought) of content that comes as a list of parts."""
    texts: list[str] = []
    thoughts: list[str] = []
    for part in parts:
        if not isinstance(part, Mapping):
            continue
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
        thought = part.get("thinking")
        if isinstance(thought, list):
            thought = _joined(thought)[0]
        if isinstance(thought, str):
            thoughts.append(thought)
    return "".join(texts), "".join(thoughts)


def _number(value: object, before: int) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if is_count and isinstance(value, int) else before
