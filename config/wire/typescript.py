"""JSON Schema as TypeScript, in the form that the web app's formatter leaves as it is."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]

WIDTH: Final = 110
_PLAIN: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def declare(name: str, schema: Schema) -> str:
    """An exported interface, or a type where it is no object."""
    head = _comment(schema.get("description", ""), "")
    if "properties" in schema:
        return f"{head}export interface {name} {_members(schema, '')}\n"
    return head + _assigned(f"export type {name} =", _choices(schema), "")


def type_of(schema: Schema) -> str:
    """A value's type, on one line."""
    return " ".join(" | ".join(_choices(schema)).split())


def declare_union(name: str, kinds: Iterable[str]) -> str:
    """An exported type that is one of these."""
    return _assigned(f"export type {name} =", list(kinds), "")


def declare_set(name: str, of: str, values: Iterable[str]) -> str:
    """An exported set of texts."""
    head = f"export const {name}: ReadonlySet<{of}> = new Set<{of}>(["
    quoted = [json.dumps(value) for value in values]
    line = f"{head}{', '.join(quoted)}]);\n"
    if len(line) <= WIDTH:
        return line
    return head + "".join(f"\n  {value}," for value in quoted) + "\n]);\n"


def _members(schema: Schema, indent: str) -> str:
    inner = indent + "  "
    required = set(schema.get("required", ()))
    lines = ["{\n"]
    for name, value in schema["properties"].items():
        lines.append(_comment(value.get("description", ""), inner))
        mark = "" if name in required else "?"
        lines.append(_assigned(f"{inner}{name}{mark}:", _choices(value, inner), inner))
    return "".join([*lines, indent, "}"])


def _assigned(head: str, choices: list[str], indent: str) -> str:
    line = f"{head} {' | '.join(choices)};\n"
    if len(line.splitlines()[0]) <= WIDTH:
        return line
    return head + "".join(f"\n{indent}  | {choice}" for choice in choices) + ";\n"


def _choices(schema: Schema, indent: str = "") -> list[str]:
    """What a value may be; more than one is a union."""
    if "anyOf" in schema:
        found = [one for choice in schema["anyOf"] for one in _choices(choice, indent)]
    elif "enum" in schema:
        found = [json.dumps(value) for value in schema["enum"]]
    elif isinstance(schema.get("type"), list):
        kinds = ({**schema, "type": kind} for kind in schema["type"])
        found = [one for kind in kinds for one in _choices(kind, indent)]
    else:
        found = [_one(schema, indent)]
    unique = list(dict.fromkeys(found))
    return [*(one for one in unique if one != "null"), *(one for one in unique if one == "null")]


def _one(schema: Schema, indent: str) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "properties" in schema:
        return _members(schema, indent)
    kind = schema.get("type")
    if kind == "array":
        items = _choices(schema.get("items", {}), indent)
        return f"({' | '.join(items)})[]" if len(items) > 1 else f"{items[0]}[]"
    if kind == "object":
        values = schema.get("additionalProperties", True)
        if isinstance(values, bool) or not values:
            return "JsonObject"
        return f"{{ [key: string]: {' | '.join(_choices(values, indent))} }}"
    return _PLAIN.get(str(kind), "Json")


def _comment(text: str, indent: str) -> str:
    words = " ".join(text.split())
    if not words:
        return ""
    line = f"{indent}/** {words} */\n"
    if len(line) <= WIDTH:
        return line
    inner = textwrap.wrap(words, WIDTH - len(indent) - 3)
    return f"{indent}/**\n" + "".join(f"{indent} * {one}\n" for one in inner) + f"{indent} */\n"
