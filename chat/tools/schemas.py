"""Input schemas of tools in the forms that providers of models take. Pure.

Servers write any JSON Schema. Providers refuse the whole request for one tool whose schema they do not take, so nobody
could ask anything. The gate checks a call's arguments against the server's own schema, whatever the model was told.

Sources: OpenAI, "Function calling"; Anthropic, "Tool use" (JSON Schema draft 2020-12, no combinators at the top); Gemini
API, "Schema" (a subset of OpenAPI's).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from mcp_servers.client.hidden_text import strip_hidden_json

Schema = Mapping[str, Any]

_COMBINED: Final = ("allOf", "anyOf", "oneOf")
_NAMED: Final = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
"""Keywords whose values hold schemas by names."""
_ONE: Final = (
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
)
_MANY: Final = (*_COMBINED, "prefixItems")
_NOT_ON_TOP: Final = ("$schema", "$id", "id", "enum", "not")
_KEPT_PLAIN: Final = frozenset(
    {
        *("type", "title", "description", "enum", "properties", "required", "items", "anyOf"),
        *("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "nullable"),
    }
)
_DEEPEST: Final = 24
"""Levels of parts within parts, a few more than a stored schema has; one that refers to itself has no end."""
_MOST_WITHIN_ITSELF: Final = 2
"""How often a plain schema shows a part within itself: enough to see how it goes on."""
_MOST_CHOICES: Final = 200
"""At the top, and within each other."""
_MOST_PLAIN: Final = 3_000
"""Parts of a plain schema: references are replaced by what they refer to, which may double it again and again."""


def as_parameters(schema: object) -> dict[str, Any]:
    """The schema as the parameters of a function: an object with properties, and of today's dialect throughout.

    No text in it holds what people do not see.
    """
    if not isinstance(schema, Mapping):
        return _object({})
    top = _without(_resolved(schema, schema), _NOT_ON_TOP)
    top = _joined(top, schema, iter(range(_MOST_CHOICES)))
    return _object(strip_hidden_json(_today(_without(top, _COMBINED))))


def plain_parameters(parameters: Schema) -> dict[str, Any]:
    """The same with nothing but what every provider knows: no references, one type for each part, choices as `anyOf`.

    Args:
        parameters: from `as_parameters`.
    """
    return _object(_Plain(parameters).of(parameters))


def _object(schema: Schema) -> dict[str, Any]:
    properties = schema.get("properties")
    return {
        **schema,
        "type": "object",
        "properties": properties if isinstance(properties, Mapping) else {},
    }


def _without(schema: Schema, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in names}


def _resolved(part: Schema, document: Schema) -> Schema:
    """A part, with what it refers to in its place; what it says besides comes first."""
    for _hop in range(_DEEPEST):
        reference = part.get("$ref")
        if not isinstance(reference, str):
            break
        part = {**_at(reference, document), **_without(part, ("$ref",))}
    return _without(part, ("$ref",))


def _at(reference: str, document: Schema) -> Schema:
    """The part of the document that a reference means; empty where it means none."""
    target: object = document if reference.startswith("#") else None
    for step in unquote(reference[1:]).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        target = target.get(key) if isinstance(target, Mapping) else None
    return _mapping(target)


def _joined(top: dict[str, Any], document: Schema, room: Iterator[int]) -> dict[str, Any]:
    """The top without combinators: all properties of its choices, of which those are required that each choice wants.

    Args:
        room: ends after so many choices as are looked at.
    """
    properties = dict(_mapping(top.get("properties")))
    required = _names(top.get("required"))
    for keyword in _COMBINED:
        found = [one for one, _ in zip(_mappings(top.pop(keyword, ())), room, strict=False)]
        choices = [_joined(dict(_resolved(one, document)), document, room) for one in found]
        for one in choices:
            properties = {**_mapping(one.get("properties")), **properties}
        wanted = [set(_names(one.get("required"))) for one in choices]
        if wanted:
            common = set.union(*wanted) if keyword == "allOf" else set.intersection(*wanted)
            required += sorted(common - set(required))
    if properties:
        top["properties"] = properties
    return {**top, "required": required} if required else _without(top, ("required",))


def _today(schema: object) -> Any:
    """A part in today's dialect: draft 2020-12, with what some providers insist on."""
    if not isinstance(schema, Mapping):
        return {}  # `true`: anything
    part = dict(schema)
    _put_right(part)
    for name in _NAMED:
        if isinstance(part.get(name), Mapping):
            part[name] = {key: _today(one) for key, one in part[name].items()}
    for name in _ONE:
        if name in part and not isinstance(part[name], bool):
            part[name] = _today(part[name])
    for name in _MANY:
        if isinstance(part.get(name), list):
            part[name] = [_today(one) for one in part[name]]
    types = part.get("type")
    types = types if isinstance(types, list) else [types]
    if "array" in types:
        part.setdefault("items", {})
    if "object" in types:
        part.setdefault("properties", {})
    return part


def _put_right(part: dict[str, Any]) -> None:
    """Rewrite what older drafts say in other words: tuples, bounds that are excluded, and `required` at a property."""
    if isinstance(part.get("items"), list):
        part["prefixItems"] = part.pop("items")
        if isinstance(rest := part.pop("additionalItems", None), Mapping):
            part["items"] = rest
    for name, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(part.get(name), bool):
            is_excluded = part.pop(name)
            if is_excluded and bound in part:
                part[name] = part.pop(bound)
    if not isinstance(part.get("required", []), list):
        del part["required"]


class _Plain:
    """Makes the parts of one document plain, and no more of them than anybody can read."""

    def __init__(self, document: Schema) -> None:
        self._document = document
        self._left = _MOST_PLAIN
        self._depth = 0
        self._open: Counter[str] = Counter()
        """The references that the parts around this one were found by."""

    def of(self, schema: object) -> dict[str, Any]:
        """One part and all that is in it; any text where there is no room for it any more."""
        self._left -= 1
        if not isinstance(schema, Mapping) or self._left < 0 or self._depth >= _DEEPEST:
            return {"type": "string"}
        self._depth += 1
        found_by = [
            reference
            for one in (schema, *_mappings(schema.get("allOf")))
            if isinstance(reference := one.get("$ref"), str)
        ]
        self._open.update(found_by)
        if any(self._open[reference] > _MOST_WITHIN_ITSELF for reference in found_by):
            part = self._last_of(schema)
        else:
            part = self._made_of(schema)
        self._open.subtract(found_by)
        self._depth -= 1
        return part

    def _last_of(self, schema: Schema) -> dict[str, Any]:
        """A part that refers to itself, without what is in it."""
        part = dict(_resolved(schema, self._document))
        if "properties" in part:
            part.setdefault("type", "object")
        part = {name: part[name] for name in ("type", "title", "description") if name in part}
        self._type(part)
        self._fill(part)
        return part

    def _made_of(self, schema: Schema) -> dict[str, Any]:
        part = dict(_resolved(schema, self._document))
        for one in _mappings(part.pop("allOf", ())):
            part = {**_resolved(one, self._document), **part}
        if isinstance(part.get("const"), str):
            part["enum"] = [part["const"]]
        choices = [*_mappings(part.get("anyOf")), *_mappings(part.get("oneOf"))]
        part = {name: value for name, value in part.items() if name in _KEPT_PLAIN}
        self._choose(part, choices)
        self._type(part)
        self._fill(part)
        return part

    def _choose(self, part: dict[str, Any], choices: list[Schema]) -> None:
        """Choices as `anyOf`; the choice of nothing as a mark."""
        part.pop("anyOf", None)
        some = [one for one in choices if one.get("type") != "null"]
        if len(some) < len(choices):
            part["nullable"] = True
        if len(some) == 1:
            inner = self.of(some[0])
            part.update({name: value for name, value in inner.items() if name not in part})
        elif some:
            part["anyOf"] = [self.of(one) for one in some]

    def _type(self, part: dict[str, Any]) -> None:
        types = part.get("type")
        if isinstance(types, list):
            some = [one for one in types if one != "null"]
            if len(some) < len(types):
                part["nullable"] = True
            del part["type"]
            if len(some) == 1:
                part["type"] = some[0]
            elif some:
                part.setdefault("anyOf", [{"type": one} for one in some])
        if "type" not in part and "anyOf" not in part:
            part["type"] = _type_of(part)
        words = part.get("enum")
        if words is not None and part.get("type") != "string":
            del part["enum"]
        elif isinstance(words, list):
            part["enum"] = [word for word in words if isinstance(word, str) and word]

    def _fill(self, part: dict[str, Any]) -> None:
        """The inner parts, where the type has any."""
        if part.get("type") == "array":
            part["items"] = self.of(part.get("items") or {})
        else:
            part.pop("items", None)
        if part.get("type") != "object":
            part.pop("properties", None)
            part.pop("required", None)
            return
        inner = {name: self.of(one) for name, one in _mapping(part.get("properties")).items()}
        part["properties"] = inner
        required = [name for name in _names(part.pop("required", ())) if name in inner]
        if required:
            part["required"] = required


def _type_of(part: Schema) -> str:
    """Of a part that does not say it."""
    if "properties" in part:
        return "object"
    return "array" if "items" in part else "string"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Schema]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _names(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
