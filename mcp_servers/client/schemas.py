"""JSON Schemas that servers send: which are safe to use, and whether arguments fit them. Pure.

Checked by a validator that refers to nothing outside the document and whose patterns run in linear time. A schema
that this validator cannot take is a problem of its tool, never of the other tools.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

import jsonschema_rs
from django.utils.translation import gettext_noop as _

from mcp_servers.client.canonical import canonical_json
from mcp_servers.client.errors import InvalidArguments, InvalidJson
from mcp_servers.client.schema_work import SchemaWork, UnusableSchema, work_of

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
_MOST_LOOKS: Final = 100_000_000
"""Parts of a schema times values: about a second."""
_MOST_RECURSIVE_LOOKS: Final = 2_000_000
"""The same of a schema that refers to itself, whose faults are told at each level again."""
_SHORT_VALUES: Final = 64
_SHORT_TEXT: Final = 4 * 1024
_PATTERN_BYTES: Final = 256 * 1024
_SHOWN_ERRORS: Final = 5
_SHOWN_CHARACTERS: Final = 300


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
    if work_of(schema, what).once > MAX_SCHEMA_WORK:
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
    raw = canonical_json(schema)
    if _work(raw) is None:
        raise InvalidArguments(
            _("This tool cannot be used, because its schema takes too long to check.")
        )
    faults = list(_faults(raw, arguments))
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
    return _has_at_most(_SHORT_VALUES, value, text=_SHORT_TEXT)


def _faults(raw: bytes, value: object) -> Iterator[str]:
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
    work = _work(raw)
    if work is None:
        return False
    if work.recursion is not None:
        return work.recursion.is_quick(value, _MOST_RECURSIVE_LOOKS)
    return _has_at_most(_MOST_LOOKS // work.once, value)


@functools.lru_cache(maxsize=512)
def _work(schema: bytes) -> SchemaWork | None:
    """As `work_of`. None: it was stored before the work of schemas was bounded, and takes too much."""
    try:
        work = work_of(json.loads(schema), "")
    except UnusableSchema:
        return None
    return work if work.once <= MAX_SCHEMA_WORK else None


def _has_at_most(most: int, value: object, *, text: int | None = None) -> bool:
    """Whether a value has no more inner values and keys, nor more characters, than allowed."""
    pending, count, length = [value], 0, 0
    while pending:
        item = pending.pop()
        count += 1
        if isinstance(item, dict):
            count += len(item)
            pending.extend(item.values())
            if text is not None:
                length += sum(map(len, item))
        elif isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, str):
            length += len(item)
        if count + len(pending) > most or (text is not None and length > text):
            return False
    return True


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
        raise UnusableSchema(
            f"its {what} schema has {math.ceil(size / 1024)} KiB, more than {MAX_SCHEMA_BYTES // 1024} KiB."
        )
