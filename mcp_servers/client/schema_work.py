"""How much work a JSON Schema makes for its validator. Pure.

References let a small schema grow to any number of parts, since each level may double it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final
from urllib.parse import unquote

_DATA_KEYWORDS: Final = frozenset({"const", "enum", "default", "example", "examples"})
_DEFINITIONS: Final = ("/$defs", "/definitions")
"""What stands there is looked at only where something refers to it."""
_NAMING: Final = (
    *_DEFINITIONS,
    *("/properties", "/patternProperties", "/dependentSchemas", "/dependencies"),
)
"""Whose keys are names that people chose, not keywords."""
_UNEVALUATED: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})


class UnusableSchema(ValueError):
    """A schema that is not used, with the reason in plain words."""


def work_of(schema: dict[str, Any], what: str) -> int:
    """How many parts a validator looks at for one value, at most: those that are referred to, each time.

    Args:
        what: "input" or "output", for the message.

    Raises:
        UnusableSchema: it refers to itself, to another document, or to nothing.
    """
    parts = {part.pointer: part for part in _parts_of(schema)}
    needed = _needed_by(parts, what)
    work: dict[str, int] = {}
    try:
        for pointer in TopologicalSorter(needed).static_order():
            once = sum(
                work[inner]
                for inner in needed[pointer]
                if pointer.endswith(_NAMING) or not inner.endswith(_DEFINITIONS)
            )
            # Such a keyword asks everything beside it once more.
            work[pointer] = 1 + once * (2 if _UNEVALUATED & parts[pointer].node.keys() else 1)
    except CycleError as error:
        raise UnusableSchema(f"its {what} schema refers to itself.") from error
    return work[""]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One object of a schema's document that is not plain data."""

    pointer: str
    """JSON pointer (RFC 6901)."""
    node: dict[str, Any]
    outer: str | None
    """The pointer of the part that it stands in."""


def _parts_of(schema: dict[str, Any]) -> Iterator[_Part]:
    pending: list[tuple[str, object, str | None]] = [("", schema, None)]
    while pending:
        pointer, item, outer = pending.pop()
        if isinstance(item, dict):
            yield _Part(pointer=pointer, node=item, outer=outer)
            has_names = pointer.endswith(_NAMING)
            pending.extend(
                (f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", inner, pointer)
                for key, inner in item.items()
                if has_names or key not in _DATA_KEYWORDS
            )
        elif isinstance(item, list):
            pending.extend((f"{pointer}/{index}", inner, outer) for index, inner in enumerate(item))


def _needed_by(parts: dict[str, _Part], what: str) -> dict[str, list[str]]:
    """The pointers of the parts that each part holds or refers to."""
    anchors = {
        name: pointer
        for pointer, part in parts.items()
        if (name := _anchor_of(part.node)) is not None
    }
    documents = [pointer for pointer, part in parts.items() if pointer and _is_document(part.node)]
    needed: dict[str, list[str]] = {pointer: [] for pointer in parts}
    for part in parts.values():
        if part.outer is not None:
            needed[part.outer].append(part.pointer)
        name = _name_referred_to(part, documents, what)
        if name is not None:
            target = anchors.get(name, name)
            if target not in needed:
                raise UnusableSchema(f"its {what} schema is not valid JSON Schema.")
            needed[part.pointer].append(target)
    return needed


def _name_referred_to(part: _Part, documents: list[str], what: str) -> str | None:
    """The anchor or the pointer in this document; None: the part refers to nothing."""
    for keyword in ("$dynamicRef", "$recursiveRef"):
        if isinstance(part.node.get(keyword), str):
            raise UnusableSchema(f"its {what} schema uses {keyword}, which is not supported.")
    reference = part.node.get("$ref")
    if not isinstance(reference, str):
        return None
    is_inner = any(f"{part.pointer}/".startswith(f"{document}/") for document in documents)
    if is_inner or not reference.startswith("#"):
        raise UnusableSchema(f"its {what} schema refers to another document.")
    return unquote(reference[1:])


def _anchor_of(node: dict[str, Any]) -> str | None:
    for keyword in ("$anchor", "$id", "id"):
        name = node.get(keyword)
        if isinstance(name, str) and (keyword == "$anchor" or name.startswith("#")):
            return name.removeprefix("#")
    return None


def _is_document(node: dict[str, Any]) -> bool:
    """Whether references in it start from an address of its own."""
    return any(
        isinstance(name := node.get(keyword), str) and not name.startswith("#")
        for keyword in ("$id", "id")
    )
