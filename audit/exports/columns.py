"""What of an entry leaves in a file, and how a value becomes text or JSON. Pure."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audit.models import AuditEntry

COLUMNS = (
    *("id", "created_at", "action", "actor_kind", "actor_id", "actor_label", "actor_role"),
    *("on_behalf_of", "sign_in", "credential_id"),
    *("token_id", "source", "ip_address", "request_id", "trace_id", "call_id"),
    *("bud_id", "bud_name", "conversation_id", "turn_id", "model"),
    *("server_id", "server_name", "transport", "protocol_revision"),
    *("tool_id", "tool_name", "definition_hash", "annotations"),
    *("arguments_preview", "arguments_size", "arguments_commitment"),
    *("result_preview", "result_size", "result_commitment"),
    *("body_commitment", "redactions"),
    *("outcome", "refused_by", "rule", "duration_ms", "queue_ms", "approval", "details"),
)
NUMBERS = frozenset({"arguments_size", "result_size", "duration_ms", "queue_ms"})
_QUOTES = frozenset("\"'`´‘’“”«»")
_DANGEROUS = frozenset("=+-@")


def as_json(entry: AuditEntry) -> dict[str, Any]:
    """Give an entry as JSON values, by column."""
    return {name: as_value(getattr(entry, name)) for name in COLUMNS}


def cells_of(entry: AuditEntry) -> list[str]:
    """Give an entry as the cells of a spreadsheet, which shows them as text and never runs them."""
    return [neutral(as_text(getattr(entry, name))) for name in COLUMNS]


def neutral(text: str) -> str:
    """Put an apostrophe before what a spreadsheet would run as a formula.

    Blanks, quotes and full-width forms before or of the sign do not hide it. Source: OWASP ASVS 1.2.10.
    """
    text = text.replace("\x00", "")
    first = next((char for char in text if not _is_blank(char)), "")
    start = unicodedata.normalize("NFKC", first)[:1]
    if start in _DANGEROUS or text[:1] in {"\t", "\r", "\n"}:
        return f"'{text}"
    return text


def _is_blank(char: str) -> bool:
    return char.isspace() or char in _QUOTES or unicodedata.category(char) in {"Cc", "Cf", "Zs"}


def as_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str | dict | list):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return str(as_value(value))
