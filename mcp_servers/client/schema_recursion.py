"""How much work a JSON Schema that refers to itself makes for one value. Pure.

Such a schema has no bound of its own: each level of a value may be looked at twice as often as the one above. So the
value is walked with the parts that are applied to it, and how often each is, before the validator sees either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from mcp_servers.client.canonical import MAX_DEPTH

_MOST_STEPS: Final = 200_000
"""Of the walk itself: a fraction of a second."""
_EACH_KEY: Final = frozenset({"patternProperties", "propertyNames"})
_OTHER_KEYS: Final = frozenset({"additionalProperties", "unevaluatedProperties"})
_EACH_ITEM: Final = frozenset({"items", "additionalItems", "unevaluatedItems", "contains"})
_DESCENDING: Final = _EACH_KEY | _OTHER_KEYS | _EACH_ITEM | frozenset({"properties", "prefixItems"})
"""Keywords whose schemas are applied to what is in a value; those of all others to the value itself."""


@dataclass(slots=True, kw_only=True)
class AppliedSubschemas:
    """What one part of a schema applies, by pointers, when it is applied to a value."""

    weight: int = 1
    """How often it looks at everything in it."""
    beside: list[str] = field(default_factory=list)
    """To the same value."""
    by_key: dict[str, list[str]] = field(default_factory=dict)
    each_key: list[str] = field(default_factory=list)
    other_keys: list[str] = field(default_factory=list)
    """To all but those of `named`."""
    named: frozenset[str] = frozenset()
    by_index: dict[int, list[str]] = field(default_factory=dict)
    each_item: list[str] = field(default_factory=list)

    def add(self, keyword: str, name: str, pointer: str) -> None:
        """Take one schema.

        Args:
            name: its key under `properties`, or its place in a list of schemas; empty where it is the keyword's only one.
        """
        if keyword not in _DESCENDING:
            self.beside.append(pointer)
        elif keyword == "properties":
            self.by_key.setdefault(name, []).append(pointer)
        elif keyword in _EACH_KEY:
            self.each_key.append(pointer)
        elif keyword in _OTHER_KEYS:
            self.other_keys.append(pointer)
        elif name.isdecimal():  # `prefixItems`, or `items` as drafts before 2020-12 called it
            self.by_index.setdefault(int(name), []).append(pointer)
        else:
            self.each_item.append(pointer)

    def inner(self) -> set[str]:
        """All that it applies to what is in a value."""
        lists = (*self.by_key.values(), *self.by_index.values())
        return {*self.each_key, *self.other_keys, *self.each_item, *chain.from_iterable(lists)}

    def to(self, value: object) -> Iterator[tuple[object, list[str]]]:
        """The values in this one, each with what is applied to it."""
        if isinstance(value, dict):
            for key, child in value.items():
                others = [] if key in self.named else self.other_keys
                yield child, [*self.by_key.get(key, ()), *self.each_key, *others]
        elif isinstance(value, list):
            for index, child in enumerate(value):
                yield child, [*self.by_index.get(index, ()), *self.each_item]


class Recursion:
    """The parts of a schema that refers to itself."""

    def __init__(self, parts: Mapping[str, AppliedSubschemas], order: Iterable[str]) -> None:
        """Take the parts by their pointers.

        Args:
            order: the pointers, each after all that it applies beside itself.
        """
        self._parts = parts
        self._looks: dict[str, int] = {}
        self._going_on: dict[str, Counter[str]] = {}
        for pointer in order:
            part = parts[pointer]
            self._looks[pointer] = 1 + part.weight * sum(self._looks[one] for one in part.beside)
            going_on: Counter[str] = Counter()
            for one in part.beside:
                for inner, times in self._going_on[one].items():
                    going_on[inner] += times * part.weight
            if part.inner():
                going_on[pointer] += part.weight
            self._going_on[pointer] = going_on

    def looks_at(self, pointer: str) -> int:
        """How many parts are looked at for one value where this part is applied to it."""
        return self._looks[pointer]

    def is_quick(self, value: object, most: int) -> bool:
        """Whether a validator is done with a value soon.

        Args:
            most: looks at parts. One counts as many times as the value lies deep: each level above tells of it again.
        """
        pending: list[tuple[object, Counter[str], int]] = [(value, Counter({"": 1}), 0)]
        looks = steps = 0
        while pending:
            item, applied, depth = pending.pop()
            looks += (depth + 1) * sum(
                self._looks[pointer] * times for pointer, times in applied.items()
            )
            going_on: Counter[str] = Counter()
            for pointer, times in applied.items():
                for inner, more in self._going_on[pointer].items():
                    going_on[inner] += times * more
            steps += 1 + len(going_on) * (1 + (len(item) if isinstance(item, (dict, list)) else 0))
            if looks > most or steps > _MOST_STEPS or depth > MAX_DEPTH:
                return False
            pending.extend(
                (child, found, depth + 1) for child, found in self._in(item, going_on) if found
            )
        return True

    def _in(
        self, item: object, going_on: Mapping[str, int]
    ) -> Iterable[tuple[object, Counter[str]]]:
        """What is in a value, with what is applied to each, and how often."""
        found: dict[int, tuple[object, Counter[str]]] = {}
        for pointer, times in going_on.items():
            for place, (child, pointers) in enumerate(self._parts[pointer].to(item)):
                _, counted = found.setdefault(place, (child, Counter()))
                for one in pointers:
                    counted[one] += times
        return found.values()
