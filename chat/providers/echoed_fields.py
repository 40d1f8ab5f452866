"""What a provider wants back of an answer that asked for tools, with each later request: signatures and thoughts. Pure.

Providers of models that think look for it, and refuse a request without: Gemini for the signature of a step's calls,
DeepSeek and Kimi for the thoughts, OpenRouter for what its own provider gave. OpenAI's models answer better with
what they thought, which only they can read. Trellis keeps it beside the calls and
gives it back as it came, to the same model at the same address alone.

Sources: Gemini API, "Thought signatures" and "OpenAI compatibility"; DeepSeek API, "Thinking mode"; Kimi API,
"Thinking models"; OpenRouter, "Preserving reasoning blocks"; OpenAI, "Reasoning models", encrypted reasoning items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Json = Mapping[str, Any]

THOUGHTS: Final = "reasoning_content"
DETAILS: Final = "reasoning_details"
ITEMS: Final = "reasoning_items"
"""Of the Responses API, which alone knows them."""
OF_CALL: Final = ("extra_content", "provider_specific_fields")
"""Beside the function of a call: Gemini's own endpoint, and LiteLLM."""
FIELDS: Final = (THOUGHTS, DETAILS, ITEMS, *OF_CALL)
MOST_CHARACTERS: Final = 400_000
"""Of one answer; what is longer is not kept."""
_PIECES: Final = ("text", "summary", "data")

THOUGHTS_BACK: Final = "thoughts_back"
"""A habit of a model: it wants thoughts in every answer; those that are not known are empty."""
SIGNATURES: Final = "signatures"
"""It wants a signature with the first call of every answer, also of those that are not its own."""
NOTHING_BACK: Final = "nothing_back"
"""It refuses the fields that came with its calls."""
NO_ENCRYPTED_THOUGHTS: Final = "no_encrypted_thoughts"
"""It gives none in the Responses API."""
_NO_SIGNATURE: Final = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""Source: Gemini API, "Thought signatures": for calls that another model has made."""
_MISSES: Final = re.compile(r"\bmissing\b|passed back", re.I)
_REFUSES_FIELD: Final = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|extra (inputs|fields)|not (allowed|permitted)",
    re.I,
)
_REFUSES_ITEM: Final = re.compile(
    r"encrypted[ _]content|required following item|item '?rs_|type '?reasoning", re.I
)
"""As when another version of the model has made it, or its key was changed since."""
_NO_ENCRYPTED: Final = re.compile(
    r"encrypted content is not supported|(unknown|unsupported|unrecogni[sz]ed|invalid)[\w ]*[:'\" ]*include\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class EchoedFields:
    """What one answer asks for."""

    message: Json
    """Fields of the answer itself."""
    calls: Sequence[Json]
    """Fields of each of its calls, in their order; those without any are empty."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to give back."""
        return not self.message and not any(self.calls)

    def as_json(self, recipient: str) -> dict[str, Any]:
        """As the answer's row keeps it; empty: it is too long.

        Args:
            recipient: whose it is, and who alone gets it back.
        """
        size = len(json.dumps([self.message, self.calls], ensure_ascii=False, default=str))
        if size > MOST_CHARACTERS:
            return {}
        return {
            "to": recipient,
            "size": size,
            "message": dict(self.message),
            "calls": [dict(one) for one in self.calls],
        }


@dataclass(slots=True)
class _Part:
    """One part of `reasoning_details`, as far as it has come."""

    fields: dict[str, Any]
    texts: dict[str, list[str]] = field(default_factory=dict)

    def add(self, piece: Json) -> None:
        for name, value in piece.items():
            if name in _PIECES and isinstance(value, str):
                self.texts.setdefault(name, []).append(value)
            elif value is not None or name not in self.fields:
                self.fields[name] = value

    def whole(self) -> dict[str, Any]:
        return {**self.fields, **{name: "".join(texts) for name, texts in self.texts.items()}}


class DetailsJoiner:
    """Puts the pieces of `reasoning_details` together as they have to go back: part by part, in their order."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._place: tuple[object, object] | None = None

    def take(self, pieces: object) -> int:
        """Take what one chunk brings; gives how many characters that are."""
        if not isinstance(pieces, list):
            return 0
        for piece in pieces:
            if isinstance(piece, Mapping):
                place = (piece.get("type"), piece.get("index"))
                if not self._parts or place != self._place:
                    self._parts.append(_Part({}))
                self._place = place
                self._parts[-1].add(piece)
        return len(json.dumps(pieces, default=str))

    def whole(self) -> list[dict[str, Any]]:
        """All parts so far."""
        return [part.whole() for part in self._parts]


def wanted_back(words: str, messages: Sequence[Json]) -> set[str]:
    """What a refusal of these messages says about the habits of the model."""
    if THOUGHTS in words and _MISSES.search(words):
        return {THOUGHTS_BACK}
    if "thought_signature" in words and _MISSES.search(words):
        return {SIGNATURES}
    if _NO_ENCRYPTED.search(words):
        return {NO_ENCRYPTED_THOUGHTS}
    given = _names_in(messages)
    is_named = _REFUSES_FIELD.search(words) and any(name in words for name in given)
    is_item = ITEMS in given and _REFUSES_ITEM.search(words)
    return {NOTHING_BACK} if is_named or is_item else set()


def give_back(
    messages: Sequence[Json], habits: frozenset[str], *, is_responses: bool
) -> Sequence[Json]:
    """The messages with what is wanted back in them, and without what is refused."""
    if not is_responses:
        messages = [_without(one, (ITEMS,)) if ITEMS in one else one for one in messages]
    if habits & {THOUGHTS_BACK, SIGNATURES, NOTHING_BACK}:
        messages = [_adapted(one, habits) for one in messages]
    return messages


def _adapted(message: Json, habits: frozenset[str]) -> Json:
    if message.get("role") != "assistant":
        return message
    calls: Sequence[Json] = message.get("tool_calls") or ()
    changed = dict(message)
    if NOTHING_BACK in habits:
        changed = _without(message, FIELDS)
        calls = [_without(one, FIELDS) for one in calls]
    elif SIGNATURES in habits and calls:
        first, *others = calls
        calls = [{"extra_content": _NO_SIGNATURE, **first}, *others]
    if calls:
        changed["tool_calls"] = calls
    if THOUGHTS_BACK in habits:
        changed.setdefault(THOUGHTS, "")
    return changed


def _without(one: Json, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name not in names}


def _names_in(messages: Sequence[Json]) -> set[str]:
    """Of fields that go back with answers."""
    answers = [one for one in messages if one.get("role") == "assistant"]
    calls = [call for one in answers for call in one.get("tool_calls") or ()]
    return {name for name in FIELDS for one in (*answers, *calls) if name in one}
