"""JSON Schemas that servers send: which are safe to use, and whether arguments fit them. Pure.

Checked by a validator that refers to nothing outside the document and whose patterns run in linear time. A schema
that this validator cannot take is a problem of its tool, never of the other tools.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

import jsonschema_rs
from django.utils.translation import gettext_noop as _

from mcp_servers.client.canonical import canonical_json
from mcp_servers.client.errors import InvalidArguments, InvalidJson

MAX_SCHEMA_BYTES: Final = 64 * 1024
MAX_SCHEMA_DEPTH: Final = 20
MAX_SCHEMA_NODES: Final = 1000

_DIALECTS: Final = frozenset(
    f"{scheme}://json-schema.org/{name}/schema"
    for scheme in ("http", "https")
    for name in ("draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12")
)
_DATA_KEYWORDS: Final = frozenset({"const", "enum", "default", "example", "examples"})
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
    references: dict[str, list[str]] = {}
    for pointer, node in _subschemas(schema):
        for keyword in ("$dynamicRef", "$recursiveRef"):
            if isinstance(node.get(keyword), str):
                raise UnusableSchema(f"its {what} schema uses {keyword}, which is not supported.")
        reference = node.get("$ref")
        if isinstance(reference, str):
            if not reference.startswith("#"):
                raise UnusableSchema(f"its {what} schema refers to another document.")
            references.setdefault(pointer, []).append(reference[1:])
    if _has_cycle(references):
        raise UnusableSchema(f"its {what} schema refers to itself.")
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
    """Whether a value fits a schema that passed check_schema()."""
    return bool(_validator(canonical_json(schema)).is_valid(value))


def _faults(schema: Mapping[str, Any], value: object) -> Iterator[str]:
    for number, error in enumerate(_validator(canonical_json(schema)).iter_errors(value)):
        if number == _SHOWN_ERRORS:
            yield "There is more."
            return
        path = "/".join(str(part) for part in error.instance_path)
        yield f"{path or 'arguments'}: {error.message[:_SHOWN_CHARACTERS]}."


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


def _subschemas(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the document that is not plain data, with its JSON pointer."""
    pending: list[tuple[str, object]] = [("", schema)]
    while pending:
        pointer, item = pending.pop()
        if isinstance(item, dict):
            yield pointer, item
            pending.extend(
                (f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", inner)
                for key, inner in item.items()
                if key not in _DATA_KEYWORDS or pointer.endswith("/properties")
            )
        elif isinstance(item, list):
            pending.extend((f"{pointer}/{index}", inner) for index, inner in enumerate(item))


def _has_cycle(references: dict[str, list[str]]) -> bool:
    """Whether following references from inside a referred part can lead back into it."""

    def targets(pointer: str) -> Iterator[str]:
        for source, found in references.items():
            if source == pointer or source.startswith(pointer + "/"):
                yield from found

    for start in {target for found in references.values() for target in found}:
        seen: set[str] = set()
        pending = [start]
        while pending:
            here = pending.pop()
            for target in targets(here):
                if target == start:
                    return True
                if target not in seen:
                    seen.add(target)
                    pending.append(target)
    return False
