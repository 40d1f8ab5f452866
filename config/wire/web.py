"""The web app's types: what it sends, what it is sent, and what its REST requests bring."""

from __future__ import annotations

from typing import Final

from chat.engine.states import ACTIVE_TURNS, OPEN_CALLS
from chat.values import ToolCallStatus, TurnStatus
from chat.wire.events import EVENTS, RowEvent
from config.wire.shapes import Wire
from config.wire.typescript import declare, declare_set, declare_union

_HEAD: Final = """// Written by `manage.py write_wire`; change chat/wire/events.py, chat/wire/commands.py or the API's shapes, not this file.

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };
"""


def write_types(wire: Wire) -> str:
    """The text of chat/web/src/wire.ts."""
    shapes = wire.shapes_of_web_app()
    declared = {**wire.commands, **wire.events, **shapes}
    if len(declared) != len(wire.commands) + len(wire.events) + len(shapes):
        raise ValueError("a command, an event and a shape may not have the same name")
    parts = [
        _HEAD,
        declare_union("Command", wire.commands),
        declare_union("ServerEvent", wire.events),
        declare_union(
            "ConversationEvent",
            (n for n, event in wire.events.items() if "conversation_id" in event["properties"]),
        ),
        declare_union("RowEvent", (kind.__name__ for kind in EVENTS if issubclass(kind, RowEvent))),
        declare_set("EVENT_TYPES", "string", (kind.type for kind in EVENTS)),
        declare_set(
            "TURN_IS_ACTIVE",
            'Turn["status"]',
            (status for status in TurnStatus if status in ACTIVE_TURNS),
        ),
        declare_set(
            "CALL_IS_ACTIVE",
            "ToolCallStatus",
            (status for status in ToolCallStatus if status in OPEN_CALLS),
        ),
        *(declare(name, schema) for name, schema in declared.items()),
    ]
    return "\n".join(parts)
