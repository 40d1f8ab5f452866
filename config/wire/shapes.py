"""The commands and events of the socket, and every shape in them, as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import spectacular_settings
from pydantic import TypeAdapter

from chat.pages.views import Boot
from chat.wire.commands import COMMANDS
from chat.wire.events import EVENTS

Schema = dict[str, Any]

_REST_OF_THE_WEB_APP: Final = (
    "BudOutput",
    "ModelOutput",
    "WaitingOutput",
    "ResourceOutput",
    "OlderOutput",
    "AttachmentContentOutput",
    "FoundOutput",
    "FolderOutput",
    "DraftOutput",
    "PinOutput",
    "ShareOutput",
    "PersonOutput",
    "KnowledgeFileOutput",
    "BudCheckOutput",
    "CheckPlanOutput",
    "CheckRunOutput",
    "KnowledgeTextOutput",
    "PromptOutput",
    "FilledPromptOutput",
    "ServersOutput",
)
_COPIED: Final = (
    "type",
    "format",
    "const",
    "enum",
    "description",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "required",
)


class Wire:
    """Schemas by name; each refers to others as `#/$defs/<name>`."""

    def __init__(self) -> None:
        generator: Any = SchemaGenerator
        with GENERATOR_STATS.silence():
            document = generator().get_schema(request=None, public=True)
        self._components: Mapping[str, Schema] = document["components"]["schemas"]
        self._named_enums: Mapping[str, str] = spectacular_settings.ENUM_NAME_OVERRIDES
        self.shapes: dict[str, Schema] = {}
        """What commands and events are made of."""
        self.commands = {kind.__name__: _type_first(self._of_type(kind)) for kind in COMMANDS}
        self.events = {kind.__name__: self._of_event(kind) for kind in EVENTS}

    def as_json_schema(self) -> Schema:
        """All of the socket, for programs."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Frames of the Trellis socket",
            "$defs": {
                "Command": _one_of(self.commands),
                "Event": _one_of(self.events),
                **self.commands,
                **self.events,
                **dict(sorted(self.shapes.items())),
            },
        }

    def shapes_of_web_app(self) -> dict[str, Schema]:
        """The shapes, with those that only the web app asks for."""
        for name in _REST_OF_THE_WEB_APP:
            self._component(name)
        boot = {"Boot": self._of_type(Boot)}
        return {**boot, **dict(sorted(self.shapes.items()))}

    def _of_event(self, kind: Any) -> Schema:
        schema = self._of_type(kind)
        properties = {name: _never_null(value) for name, value in schema["properties"].items()}
        return {
            **schema,
            "properties": {"type": {"const": kind.type}, **properties},
            "required": ["type", *schema.get("required", ())],
            "additionalProperties": False,
        }

    def _of_type(self, kind: Any) -> Schema:
        schema = TypeAdapter(kind).json_schema()
        for name, shape in schema.get("$defs", {}).items():
            self._keep(name, self._plain(shape))
        return self._plain(schema)

    def _component(self, name: str) -> Schema:
        schema = self._components[name]
        if name == "NullEnum":
            return {"type": "null"}
        if "enum" in schema and name not in self._named_enums:
            return {"enum": schema["enum"]}
        short = name.removesuffix("Output").removesuffix("Enum")
        self._keep(short, self._plain(schema))
        return {"$ref": f"#/$defs/{short}"}

    def _keep(self, name: str, schema: Schema) -> None:
        if self.shapes.setdefault(name, schema) != schema:
            raise ValueError(f"two shapes are called {name}")

    def _plain(self, schema: Schema) -> Schema:
        """The same without the marks of the frameworks, and with its references among the shapes."""
        if "x-component" in schema:
            return self._component(schema["x-component"])
        plain: Schema = {key: schema[key] for key in _COPIED if key in schema}
        if "description" in plain:  # without the list of an enum's values
            plain["description"] = plain["description"].partition("* `")[0].strip()
        if "$ref" in schema:
            source, _, name = schema["$ref"].rpartition("/")
            plain |= self._component(name) if "components" in source else {"$ref": schema["$ref"]}
        if "allOf" in schema:  # a reference that has words of its own beside it
            [reference] = schema["allOf"]
            plain = self._plain(reference) | plain
        if "properties" in schema:
            plain["properties"] = {
                name: self._plain(value) for name, value in schema["properties"].items()
            }
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                plain[key] = self._plain(schema[key])
            elif key in schema:
                plain[key] = schema[key]
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            plain["anyOf"] = [self._plain(choice) for choice in choices]
        return plain


def _type_first(schema: Schema) -> Schema:
    properties = schema["properties"]
    return {**schema, "properties": {"type": properties["type"], **properties}}


def _never_null(schema: Schema) -> Schema:
    """A field with a default is left out where it has no value."""
    if "default" not in schema:
        return schema
    [value] = (choice for choice in schema["anyOf"] if choice != {"type": "null"})
    return {key: words for key, words in schema.items() if key == "description"} | dict(value)


def _one_of(kinds: Mapping[str, Schema]) -> Schema:
    return {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in kinds]}
