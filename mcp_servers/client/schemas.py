"""JSON Schemas that servers send: which are safe to use, and whether arguments fit them. Pure.

Checked by a validator that refers to nothing outside the document and whose patterns run in linear time. A schema
that this validator cannot take is a problem of its tool, never of the other tools.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NoReturn
from urllib.parse import unquote

import jsonschema_rs
from django.utils.translation import gettext_noop as _

from mcp_servers.client.canonical import canonical_json
from mcp_servers.client.errors import InvalidArguments, InvalidJson

MAX_SCHEMA_BYTES: Final = 64 * 1024
MAX_SCHEMA_DEPTH: Final = 20
MAX_SCHEMA_NODES: Final = 1000
MAX_SCHEMA_WORK: Final = 100_000
"""Parts that are looked at for one value. References let a small schema grow to any number: each level may double it."""

_DIALECTS: Final = frozenset(
    f"{scheme}://json-schema.org/{name}/schema"
    for scheme in ("http", "https")
    for name in ("draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12")
)
_DATA_KEYWORDS: Final = frozenset({"const", "enum", "default", "example", "examples"})
_DEFINITIONS: Final = ("/$defs", "/definitions")
"""What stands there is looked at only where something refers to it."""
_NAMING: Final = (
    *_DEFINITIONS,
    *("/properties", "/patternProperties", "/dependentSchemas", "/dependencies"),
)
"""Whose keys are names that people chose, not keywords."""
_UNEVALUATED: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_MOST_LOOKS: Final = 100_000_000
"""Parts of a schema times values: about a second."""
_SHORT_VALUES: Final = 64
_SHORT_TEXT: Final = 4 * 1024
_PATTERN_BYTES: Final = 256 * 1024
_SHOWN_ERRORS: Final = 5
_SHOWN_CHARACTERS: Final = 300


class UnusableSchema(ValueError):
    """A schema that is not used, with the reason in plain words."""


def check_schema(schema: object, *, what: str) -> None:
    """Make sure that a schema is small, self-contained and can be checked in bounded time.

    Args:
        what: "input" or "output", for the message.

    Raises:
        UnusableSchema: it is not.
    """
    if not isinstance(schema, dict):
        raise UnusableSchema(f"its {what} schema is not a JSON object.")
    _check_size(schema, what)
    dialect = schema.get("$schema")
    if dialect is not None and (
        not isinstance(dialect, str) or dialect.removesuffix("#") not in _DIALECTS
    ):
        raise UnusableSchema(f"its {what} schema is written in an unknown dialect.")
    if _work_of(schema, what) > MAX_SCHEMA_WORK:
        raise UnusableSchema(f"its {what} schema takes too long to check.")
    try:
        _validator(canonical_json(schema))
    except InvalidJson as error:
        raise UnusableSchema(f"its {what} schema cannot be stored: {error.message}.") from error
    except (ValueError, jsonschema_rs.ValidationError) as error:
        if "pattern" in str(error).lower() or "regex" in str(error).lower():
            raise UnusableSchema(
                f"its {what} schema has a pattern that cannot be checked safely."
            ) from error
        raise UnusableSchema(f"its {what} schema is not valid JSON Schema.") from error


def check_arguments(schema: Mapping[str, Any], arguments: object) -> None:
    """Make sure that arguments fit a tool's input schema.

    Raises:
        InvalidArguments: says where they do not, for people and models.
    """
    faults = list(_faults(schema, arguments))
    if faults:
        raise InvalidArguments(
            _("The arguments do not fit: ") + " ".join(faults), details={"faults": len(faults)}
        )


def fits(schema: Mapping[str, Any], value: object) -> bool:
    """Whether a value fits a schema, as far as that can be found out in bounded time."""
    raw = canonical_json(schema)
    return _is_quick(raw, value) and bool(_validator(raw).is_valid(value))


def is_short(value: object) -> bool:
    """Whether a JSON value is so small that no event loop notices its check against a schema that is used."""
    return _values_in(value, most=_SHORT_VALUES, most_text=_SHORT_TEXT) is not None


def _faults(schema: Mapping[str, Any], value: object) -> Iterator[str]:
    raw = canonical_json(schema)
    if not _is_quick(raw, value):
        yield "They take too long to check. Send less at once."
        return
    for number, error in enumerate(_validator(raw).iter_errors(value)):
        if number == _SHOWN_ERRORS:
            yield "There is more."
            return
        path = "/".join(str(part) for part in error.instance_path)
        yield f"{path or 'arguments'}: {error.message[:_SHOWN_CHARACTERS]}."


def _is_quick(raw: bytes, value: object) -> bool:
    """What is longer could hold up the whole process: the validator keeps the interpreter to itself."""
    return _values_in(value, most=_MOST_LOOKS // _work(raw), most_text=None) is not None


def _values_in(value: object, *, most: int, most_text: int | None) -> int | None:
    """How many values and keys there are, inner ones counted; None: more, or more text, than allowed."""
    pending, count, text = [value], 0, 0
    while pending:
        item = pending.pop()
        count += 1
        if isinstance(item, dict):
            count += len(item)
            pending.extend(item.values())
            if most_text is not None:
                text += sum(map(len, item))
        elif isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, str):
            text += len(item)
        if count + len(pending) > most or (most_text is not None and text > most_text):
            return None
    return count


@functools.lru_cache(maxsize=512)
def _work(schema: bytes) -> int:
    """That of a schema that may have been stored before it was bounded. One that is not used takes no value."""
    try:
        return _work_of(json.loads(schema), "")
    except UnusableSchema:
        return _MOST_LOOKS + 1


@functools.lru_cache(maxsize=512)
def _validator(schema: bytes) -> Any:
    return jsonschema_rs.validator_for(
        json.loads(schema),
        validate_formats=True,
        retriever=_refuse,
        pattern_options=jsonschema_rs.RegexOptions(
            size_limit=_PATTERN_BYTES, dfa_size_limit=4 * _PATTERN_BYTES
        ),
    )


def _refuse(uri: str) -> NoReturn:
    raise ValueError("remote references are refused")


def _check_size(schema: dict[str, Any], what: str) -> None:
    pending: list[tuple[object, int]] = [(schema, 1)]
    nodes = 0
    while pending:
        item, depth = pending.pop()
        nodes += 1
        if nodes > MAX_SCHEMA_NODES:
            raise UnusableSchema(f"its {what} schema has more than {MAX_SCHEMA_NODES} parts.")
        if depth > MAX_SCHEMA_DEPTH:
            raise UnusableSchema(
                f"its {what} schema is nested deeper than {MAX_SCHEMA_DEPTH} levels."
            )
        if isinstance(item, dict):
            pending.extend(
                (inner, depth + 1) for inner in item.values() if isinstance(inner, (dict, list))
            )
        elif isinstance(item, list):
            pending.extend((inner, depth + 1) for inner in item if isinstance(inner, (dict, list)))
    try:
        size = len(canonical_json(schema))
    except InvalidJson as error:
        raise UnusableSchema(f"its {what} schema cannot be stored: {error.message}.") from error
    if size > MAX_SCHEMA_BYTES:
        raise UnusableSchema(f"its {what} schema is larger than {MAX_SCHEMA_BYTES // 1024} KiB.")


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


def _work_of(schema: dict[str, Any], what: str) -> int:
    """How many parts a validator looks at for one value, at most: those that are referred to, each time.

    Raises:
        UnusableSchema: it refers to itself, to another document, or to nothing.
    """
    parts = list(_parts_of(schema))
    anchors = {name: part.pointer for part in parts if (name := _anchor_of(part.node)) is not None}
    bases = [part.pointer for part in parts if part.pointer and _is_document(part.node)]
    needed: dict[str, list[str]] = {part.pointer: [] for part in parts}
    for part in parts:
        if part.outer is not None:
            needed[part.outer].append(part.pointer)
        for keyword in ("$dynamicRef", "$recursiveRef"):
            if isinstance(part.node.get(keyword), str):
                raise UnusableSchema(f"its {what} schema uses {keyword}, which is not supported.")
        if isinstance(reference := part.node.get("$ref"), str):
            is_inner = any(f"{part.pointer}/".startswith(f"{base}/") for base in bases)
            if is_inner or not reference.startswith("#"):
                raise UnusableSchema(f"its {what} schema refers to another document.")
            name = unquote(reference[1:])
            target = anchors.get(name, name)
            if target not in needed:
                raise UnusableSchema(f"its {what} schema is not valid JSON Schema.")
            needed[part.pointer].append(target)
    nodes = {part.pointer: part.node for part in parts}
    definitions = {pointer for pointer in needed if pointer.endswith(_DEFINITIONS)}
    work: dict[str, int] = {}
    try:
        for pointer in TopologicalSorter(needed).static_order():
            once = sum(
                work[inner]
                for inner in needed[pointer]
                if pointer.endswith(_NAMING) or inner not in definitions
            )
            # Such a keyword asks everything beside it once more.
            work[pointer] = 1 + once * (2 if _UNEVALUATED & nodes[pointer].keys() else 1)
    except CycleError as error:
        raise UnusableSchema(f"its {what} schema refers to itself.") from error
    return work[""]


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
