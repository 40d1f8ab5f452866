"""How much work a JSON Schema makes for its validator. Pure.

References let a small schema grow to any number of parts, since each level may double it. One that refers to itself
makes as much work as the value lets it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final
from urllib.parse import unquote

from mcp_servers.client.schema_recursion import AppliedSubschemas, Recursion

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaWork:
    """What a schema asks of its validator."""

    once: int
    """How many parts are looked at for one value, at most: those that are referred to, each time."""
    recursion: Recursion | None = None
    """Of a schema that refers to itself: how much it is in all depends on the value."""


def work_of(schema: dict[str, Any], what: str) -> SchemaWork:
    """How much work a schema makes.

    Args:
        what: "input" or "output", for the message.

    Raises:
        UnusableSchema: it refers to itself for the same value, to another document, or to nothing.
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
    except CycleError:
        return _recursive_work(parts, needed, what)
    return SchemaWork(once=work[""])


def _recursive_work(parts: dict[str, _Part], needed: dict[str, list[str]], what: str) -> SchemaWork:
    applied = _applied(parts, needed, what)
    beside = {pointer: one.beside for pointer, one in applied.items()}
    try:
        recursion = Recursion(applied, TopologicalSorter(beside).static_order())
    except CycleError as error:
        raise UnusableSchema(f"its {what} schema refers to itself without an end.") from error
    return SchemaWork(once=max(map(recursion.looks_at, applied)), recursion=recursion)


def _applied(
    parts: dict[str, _Part], needed: dict[str, list[str]], what: str
) -> dict[str, AppliedSubschemas]:
    """What each part that is applied to anything applies, from the top on."""
    holders = _holders(parts)
    inside: dict[str, list[str]] = {holder: [] for holder in holders}
    for one in parts.values():
        if one.outer in inside:
            inside[one.outer].append(one.pointer)
    applied: dict[str, AppliedSubschemas] = {}
    pending = [""]
    while pending:
        pointer = pending.pop()
        if pointer in applied:
            continue
        part = applied[pointer] = _applied_by(parts[pointer], needed[pointer], inside, parts)
        found = part.inner() | set(part.beside)
        if holders & found:
            raise UnusableSchema(f"its {what} schema is not valid JSON Schema.")
        pending.extend(found)
    return applied


def _applied_by(
    part: _Part, needed: list[str], inside: dict[str, list[str]], parts: dict[str, _Part]
) -> AppliedSubschemas:
    applied = AppliedSubschemas(weight=2 if _UNEVALUATED & part.node.keys() else 1)
    if isinstance(properties := part.node.get("properties"), dict):
        applied.named = frozenset(properties)
    for inner, times in Counter(needed).items():
        is_in_it = parts[inner].outer == part.pointer
        if times > is_in_it:
            applied.beside.append(inner)  # what `$ref` refers to
        if not is_in_it:
            continue
        keyword, _, place = inner[len(part.pointer) + 1 :].partition("/")
        if f"/{keyword}" in _DEFINITIONS:
            continue
        for pointer in inside.get(inner, [inner]):
            applied.add(keyword, place or _name_at(pointer, inner), pointer)
    return applied


def _name_at(pointer: str, holder: str) -> str:
    """The key of a schema in what holds schemas by their names."""
    return pointer[len(holder) + 1 :].replace("~1", "/").replace("~0", "~")


def _holders(parts: dict[str, _Part]) -> frozenset[str]:
    """The parts that are no schemas, but hold schemas by their names. What holds one itself is a schema."""
    found: set[str] = set()
    for pointer, part in parts.items():  # the outer ones come first
        if part.outer is None or part.outer in found or not pointer.endswith(_NAMING):
            continue
        if pointer.rpartition("/")[0] == part.outer:
            found.add(pointer)
    return frozenset(found)


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
