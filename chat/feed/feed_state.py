"""A conversation as somebody sees it who was given a snapshot and then each event of the hub. Pure.

What does not fit (a missing number, a piece of text beyond the known end) makes the state stale: the next
snapshot replaces it. The web application's store follows the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ROWS = {
    "message.saved": ("message", "messages"),
    "turn.changed": ("turn", "turns"),
    "tool_call.changed": ("tool_call", "tool_calls"),
    "input_request.changed": ("input_request", "input_requests"),
}
_TEXTS = {"text.delta": "text", "reasoning.delta": "reasoning"}

Row = dict[str, Any]


class FeedState:
    """Rows by id, as far as they have been told."""

    def __init__(self) -> None:
        self.seq = -1
        self.is_stale = True
        self.messages: dict[str, Row] = {}
        self.turns: dict[str, Row] = {}
        self.tool_calls: dict[str, Row] = {}
        self.input_requests: dict[str, Row] = {}

    def apply(self, event: Mapping[str, Any]) -> None:
        """Take in a snapshot or an event; one that is known already changes nothing."""
        kind = event["type"]
        if kind == "snapshot":
            self._replace(event)
        elif self.is_stale:
            return  # the snapshot on its way holds it
        elif kind in _TEXTS:
            self._grow(event, _TEXTS[kind])
        elif "seq" in event:
            self._change(event)

    def _replace(self, snapshot: Mapping[str, Any]) -> None:
        if not self.is_stale and snapshot["seq"] < self.seq:
            return
        for _, table in _ROWS.values():
            setattr(self, table, {row["id"]: dict(row) for row in snapshot[table]})
        self.seq = snapshot["seq"]
        self.is_stale = False

    def _change(self, event: Mapping[str, Any]) -> None:
        if event["seq"] <= self.seq:
            return
        if event["seq"] != self.seq + 1:
            self.is_stale = True
            return
        self.seq = event["seq"]
        if event["type"] in _ROWS:
            name, table = _ROWS[event["type"]]
            row = event[name]
            getattr(self, table)[row["id"]] = dict(row)

    def _grow(self, event: Mapping[str, Any], field: str) -> None:
        message = self.messages.get(event["message_id"])
        if message is None:
            self.is_stale = True
        elif message["status"] == "streaming":
            # Offsets count as browsers do, in UTF-16 units.
            known = message.get(field, "").encode("utf-16-le", "surrogatepass")
            piece = event["text"].encode("utf-16-le", "surrogatepass")
            overlap = len(known) - 2 * event["offset"]
            if overlap < 0:
                self.is_stale = True
            elif overlap < len(piece):
                fresh = known + piece[overlap:]
                message[field] = fresh.decode("utf-16-le", "surrogatepass")
