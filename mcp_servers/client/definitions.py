"""What a server says a tool is: read without trust, checked, and hashed. Pure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_servers.client.canonical import canonical_json, clean_text
from mcp_servers.client.errors import InvalidJson
from mcp_servers.client.schema_work import UnusableSchema
from mcp_servers.client.schemas import MAX_SCHEMA_BYTES, check_schema

MAX_NAME_LENGTH: Final = 256
MAX_DESCRIPTION_LENGTH: Final = 16 * 1024
MAX_ICONS: Final = 10
MAX_ICON_URL: Final = 2048
TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"

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
class ToolDefinition:
    """One tool as its server describes it, in a form that can be stored."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=dict)
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    icons: list[dict[str, Any]] = field(default_factory=list)
    task_support: str = ""
    """forbidden, optional, required; empty: it says nothing."""
    hash: str
    """SHA-256 over everything the server said about what the tool is; the order of keys does not matter."""
    problem: str = ""
    """Why the tool cannot be used; empty for a sound one."""
    output_problem: str = ""
    """Why its results are not checked; empty where they are, and where it says nothing about them."""


def read_definition(raw: object, *, supports_tasks: bool = False) -> ToolDefinition | None:
    """Read one entry of a tool list; None for one without a usable name, which nobody could ever call.

    Args:
        supports_tasks: whether the server makes tasks of calls; one that can only be called so is of no use otherwise.
    """
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
    task_support = _task_support(raw)
    try:
        _check(raw)
        if task_support == "required" and not supports_tasks:
            raise UnusableSchema("it can only be called as a task, and its server runs none.")
    except UnusableSchema as error:
        problem = str(error)
    else:
        problem = ""
    output_schema, output_problem = _output_schema(raw)
    annotations = raw.get("annotations")
    title = raw.get("title") or (
        annotations.get("title") if isinstance(annotations, dict) else None
    )
    return ToolDefinition(
        name=name,
        title=_text(title, MAX_NAME_LENGTH),
        description=_text(raw.get("description"), MAX_DESCRIPTION_LENGTH),
        input_schema=storable(raw.get("inputSchema")),
        output_schema=output_schema,
        annotations=storable(annotations),
        meta=storable(raw.get("_meta")),
        icons=read_icons(raw.get("icons")),
        task_support=task_support,
        hash=definition_hash(raw),
        problem=problem,
        output_problem=output_problem,
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
    from mcp.shared.inbound import find_invalid_x_mcp_header

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
        if raw.get(part) and not storable(raw[part]):
            raise UnusableSchema(f"its {part.strip('_')} cannot be stored.")


def _output_schema(raw: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """What results are checked against, if there is anything that can be used; and what is wrong with it otherwise.

    The schema restrains nothing that the tool does, so one that is too large takes no tool away.
    """
    given = raw.get("outputSchema")
    if given is None:
        return None, ""
    try:
        check_schema(given, what="output")
    except UnusableSchema as error:
        return None, str(error)
    return storable(given), ""


def _text(value: object, limit: int) -> str:
    return clean_text(value)[:limit] if isinstance(value, str) else ""


def read_icons(raw: object) -> list[dict[str, Any]]:
    """The icons of a tool, resource or prompt: known of, and never loaded; those given in full are left out.

    Source: MCP specification 2025-11-25, "Icons".
    """
    if not isinstance(raw, list):
        return []
    return [
        {
            "src": clean_text(icon["src"]),
            "mimeType": _text(icon.get("mimeType"), 100),
            "sizes": [_text(size, 20) for size in sizes[:10]]
            if isinstance(sizes := icon.get("sizes"), list)
            else [],
        }
        for icon in raw[:MAX_ICONS]
        if isinstance(icon, dict)
        and isinstance(icon.get("src"), str)
        and icon["src"].startswith("https://")
        and len(icon["src"]) <= MAX_ICON_URL
    ]


def supports_tasks(capabilities: object) -> bool:
    """Whether a server runs calls as tasks, by what it said when it was connected.

    Source: MCP specification 2025-11-25, "Tasks"; extension "Tasks" of 2026-07-28.
    """
    if not isinstance(capabilities, dict):
        return False
    extensions = capabilities.get("extensions")
    if isinstance(extensions, dict) and TASKS_EXTENSION in extensions:
        return True
    found: object = capabilities
    for key in ("tasks", "requests", "tools"):
        found = found.get(key) if isinstance(found, dict) else None
    return isinstance(found, dict) and "call" in found


def _task_support(raw: dict[str, Any]) -> str:
    execution = raw.get("execution")
    given = execution.get("taskSupport") if isinstance(execution, dict) else None
    return given if given in ("forbidden", "optional", "required") else ""


def storable(value: object) -> dict[str, Any]:
    """The value if it is an object that a database takes; else nothing."""
    if not isinstance(value, dict):
        return {}
    try:
        size = len(canonical_json(value))
    except InvalidJson:
        return {}
    return value if size <= MAX_SCHEMA_BYTES else {}
