"""JSON-RPC messages as text: read without trust, written in the one form that the audit log has too. Pure."""

from __future__ import annotations

import json
from typing import Final

from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter

_PARSE_ERROR: Final = -32700


def read_message(text: str | bytes) -> SessionMessage | ValueError:
    """One message; what is wrong with it if it is none.

    A broken answer to a request becomes an error for that request, because somebody waits for it.
    """
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        number = _answered_id(text)
        if number is None:
            return error
        told = ErrorData(code=_PARSE_ERROR, message="Failed to parse the answer.")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=told))


def write_message(item: SessionMessage) -> str:
    """A message as one line, so that a call's arguments go out byte for byte as audited; see canonical_json()."""
    body = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _answered_id(text: str | bytes) -> int | str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or "method" in value or "jsonrpc" not in value:
        return None
    found = value.get("id")
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None
