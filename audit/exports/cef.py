"""Entries in the Common Event Format, version 0: one line each, whatever is in them. The mapping is in docs/audit.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from audit.actions import title_of
from audit.exports.columns import as_text
from audit.exports.ocsf import severity_of

if TYPE_CHECKING:
    from audit.models import AuditEntry

_SEVERITY: Final = {1: 1, 2: 4, 3: 6, 5: 10}
_LABELS: Final = (
    ("cs1", "server", "server_name"),
    ("cs2", "tool", "tool_name"),
    ("cs3", "bud", "bud_name"),
    ("cs4", "arguments", "arguments_preview"),
    ("cs5", "result", "result_preview"),
    ("cs6", "details", "details"),
    ("cn1", "durationMs", "duration_ms"),
    ("cn2", "resultBytes", "result_size"),
)


def as_cef(batch: Sequence[AuditEntry], is_first: bool) -> bytes:
    """Write one event a line."""
    return "".join(f"{line_of(entry)}\n" for entry in batch).encode()


def line_of(entry: AuditEntry) -> str:
    """Give an entry as a line."""
    head = ("Trellis", "Trellis", "1", entry.action, title_of(entry.action))
    fields: dict[str, str] = {
        "rt": str(int(entry.created_at.timestamp() * 1000)),
        "externalId": str(entry.pk),
        "suser": entry.actor_label,
        "suid": as_text(entry.actor_id),
        "spriv": entry.actor_role,
        "src": as_text(entry.ip_address),
        "sourceServiceName": entry.source,
        "act": entry.action,
        "outcome": "refused" if entry.refused_by else entry.outcome,
        "reason": " ".join(filter(None, [entry.refused_by, entry.rule])),
        "requestContext": as_text(entry.call_id),
    }
    for key, label, column in _LABELS:
        value = getattr(entry, column)
        if value not in (None, "", {}):
            fields[key] = as_text(value)
            fields[f"{key}Label"] = label
    start = "|".join(["CEF:0", *(_head(one) for one in head), str(_SEVERITY[severity_of(entry)])])
    extension = " ".join(f"{key}={_value(value)}" for key, value in fields.items() if value)
    return f"{start}|{extension}"


def _head(text: str) -> str:
    return _line(text).replace("\\", "\\\\").replace("|", "\\|")


def _value(text: str) -> str:
    return _line(text.replace("\\", "\\\\").replace("=", "\\=").replace("\n", "\\n"))


def _line(text: str) -> str:
    """What would end the line, or move a terminal's cursor, becomes a blank."""
    return "".join(char if char.isprintable() else " " for char in text)
