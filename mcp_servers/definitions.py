"""What a server says a tool is: read without trust, checked, and hashed. Pure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Final

from mcp.shared.inbound import find_invalid_x_mcp_header

from mcp_servers.canonical import check_json, clean_text
from mcp_servers.errors import InvalidJson
from mcp_servers.schemas import UnusableSchema, check_schema

MAX_NAME_LENGTH: Final = 256
MAX_DESCRIPTION_LENGTH: Final = 16 * 1024
MAX_META_BYTES: Final = 16 * 1024

_HASHED: Final = (
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "_meta",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One tool as its server describes it, in a form that can be stored."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=dict)
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    hash: str
    """SHA-256 over everything the server said about what the tool is; the order of keys does not matter."""
    problem: str = ""
    """Why the tool cannot be used; empty for a sound one."""


def read_definition(raw: object) -> Definition | None:
    """Read one entry of a tool list; None for one without a usable name, which nobody could ever call."""
    if not isinstance(raw, dict):
        return None
    name = raw.get("name")
    if (
        not isinstance(name, str)
        or not name
        or len(name) > MAX_NAME_LENGTH
        or name != clean_text(name)
    ):
        return None
    try:
        _check(raw)
    except UnusableSchema as error:
        problem = str(error)
    else:
        problem = ""
    annotations = raw.get("annotations")
    title = raw.get("title") or (
        annotations.get("title") if isinstance(annotations, dict) else None
    )
    return Definition(
        name=name,
        title=_text(title, MAX_NAME_LENGTH),
        description=_text(raw.get("description"), MAX_DESCRIPTION_LENGTH),
        input_schema=_storable(raw.get("inputSchema")),
        output_schema=_storable(raw["outputSchema"])
        if isinstance(raw.get("outputSchema"), dict)
        else None,
        annotations=_storable(annotations),
        meta=_storable(raw.get("_meta")),
        hash=definition_hash(raw),
        problem=problem,
    )


def definition_hash(raw: dict[str, Any]) -> str:
    """The hash of a definition as received; absent and null parts are alike."""
    parts = {key: raw[key] for key in _HASHED if raw.get(key) is not None}
    # Escaped, so that it exists for every text; this form is only ever hashed.
    return hashlib.sha256(
        json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def _check(raw: dict[str, Any]) -> None:
    check_schema(raw.get("inputSchema"), what="input")
    if raw["inputSchema"].get("type") != "object":
        raise UnusableSchema("its input schema does not describe an object.")
    if raw.get("outputSchema") is not None:
        check_schema(raw["outputSchema"], what="output")
    if find_invalid_x_mcp_header(raw["inputSchema"]) is not None:
        raise UnusableSchema("its input schema asks for a request header that is not allowed.")
    description = raw.get("description")
    if description is not None and (
        not isinstance(description, str) or len(description) > MAX_DESCRIPTION_LENGTH
    ):
        raise UnusableSchema(
            f"its description is no text of at most {MAX_DESCRIPTION_LENGTH} characters."
        )
    for part in ("annotations", "_meta"):
        if raw.get(part) and not _storable(raw[part]):
            raise UnusableSchema(f"its {part.strip('_')} cannot be stored.")
    execution = raw.get("execution")
    if isinstance(execution, dict) and execution.get("taskSupport") == "required":
        raise UnusableSchema("it can only be called as a task, which is not supported.")


def _text(value: object, limit: int) -> str:
    return clean_text(value)[:limit] if isinstance(value, str) else ""


def _storable(value: object) -> dict[str, Any]:
    """The value if it is an object that a database takes; else nothing."""
    if not isinstance(value, dict):
        return {}
    try:
        check_json(value)
    except InvalidJson:
        return {}
    return value if len(json.dumps(value)) <= 4 * MAX_META_BYTES else {}
