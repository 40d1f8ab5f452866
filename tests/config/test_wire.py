"""The description of the socket: whole, and written as TypeScript that says the same."""

from __future__ import annotations

import json
from uuid import UUID

from chat.wire import events
from chat.wire.commands import COMMANDS, _Command
from config.env import ROOT
from config.wire.typescript import declare, declare_set, declare_union, type_of


def test_every_frame_is_described() -> None:
    """Ours: a command or an event that is added is in docs/protocol.json, with a word for people."""
    schema = json.loads((ROOT / "docs" / "protocol.json").read_text())
    kinds = {kind for kind in vars(events).values() if isinstance(kind, type)}
    sent = {kind for kind in kinds if issubclass(kind, events.Event) and "type" in vars(kind)}
    assert sent == set(events.EVENTS)
    assert set(_Command.__subclasses__()) == set(COMMANDS)
    for kind in (*COMMANDS, *events.EVENTS):
        assert schema["$defs"][kind.__name__]["description"], kind


def test_a_frame_begins_with_its_type_and_leaves_out_what_was_not_set() -> None:
    """Ours: null is said where a field always comes; a field with a default is absent."""
    accepted = events.Accepted(ref=None, turn_id=UUID(int=1))
    expected = '{"type":"accepted","ref":null,"turn_id":"00000000-0000-0000-0000-000000000001"}'
    assert events.encode(accepted.as_json()) == expected


def test_a_shape_as_typescript() -> None:
    """Ours: optional fields, unions, references, nested objects and long lines."""
    schema = {
        "description": "A thing.",
        "properties": {
            "id": {"type": "string", "description": "Its id."},
            "kind": {"enum": ["a", "b"]},
            "parts": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/P"}, {"const": 1}]}},
            "note": {"type": ["null", "string"]},
            "free": {"type": "object", "additionalProperties": {}},
            "texts": {"type": "object", "additionalProperties": {"type": "string"}},
            "inner": {"properties": {"x": {}}, "required": ["x"]},
        },
        "required": ["id", "kind", "parts", "texts", "inner"],
    }
    assert declare("Thing", schema) == (
        "/** A thing. */\n"
        "export interface Thing {\n"
        "  /** Its id. */\n"
        "  id: string;\n"
        '  kind: "a" | "b";\n'
        "  parts: (P | 1)[];\n"
        "  note?: string | null;\n"
        "  free?: JsonObject;\n"
        "  texts: { [key: string]: string };\n"
        "  inner: {\n"
        "    x: Json;\n"
        "  };\n"
        "}\n"
    )
    assert type_of({"type": ["integer", "null"]}) == "number | null"
    names = [f"VeryLongNameOfAType{number}" for number in range(6)]
    assert declare_union("Long", names).splitlines()[:2] == [
        "export type Long =",
        "  | VeryLongNameOfAType0",
    ]
    assert declare_set("S", "string", ["a"]) == (
        'export const S: ReadonlySet<string> = new Set<string>(["a"]);\n'
    )
