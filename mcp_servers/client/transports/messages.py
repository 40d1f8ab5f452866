"""JSON-RPC messages as text: read without trust, written in the one form that the audit log has too. Pure."""

from __future__ import annotations

import json
import re
from typing import Final

from mcp_servers.client.sdk import mcp, mcp_types
from mcp_servers.client.transports.density import check_parts
from mcp_servers.client.transports.http_failures import GUARD_ERROR_CODE, fault_data
from mcp_servers.client.transports.surrogates import without_halves
from workspaces.outbound import ResponseTooLarge

RECORDED: Final = frozenset({"tools/call", "resources/read", "prompts/get"})
"""What the gate sends. The log has an entry for each sending, so nothing below the gate sends one of these again."""

LINES_PER_SECOND: Final = 2_000.0
"""Of what a server sends. All connections share one loop, which one that never stops would keep busy."""
LINES_PER_MESSAGE: Final = 2
"""As in an event stream; a message counts as much elsewhere."""

_PARSE_ERROR: Final = -32700
_ID: Final = re.compile(rb'[{,]\s*"id"\s*:\s*([0-9]{1,9})\s*[,}]')
_ID_WITHIN: Final = 100


def read_message(text: str | bytes) -> mcp.shared.message.SessionMessage | ValueError:
    """One message; what is wrong with it if it is none.

    A broken answer to a request becomes an error for that request, because somebody waits for it.
    """
    try:
        check_parts(text)
    except ResponseTooLarge as error:
        data = fault_data("too_large")
        wire_error = mcp_types.ErrorData(
            code=GUARD_ERROR_CODE, message="The answer is too large.", data=data
        )
        return _answer_for(_first_id(text), wire_error) or ValueError(str(error))
    content = without_halves(text.encode() if isinstance(text, str) else text)
    try:
        return mcp.shared.message.SessionMessage(
            mcp_types.jsonrpc_message_adapter.validate_json(content, by_name=False)
        )
    except ValueError as error:
        wire_error = mcp_types.ErrorData(code=_PARSE_ERROR, message="Failed to parse the answer.")
        return _answer_for(_answered_id(text), wire_error) or error


def write_message(item: mcp.shared.message.SessionMessage) -> str:
    """A message as one line, so that a call's arguments go out byte for byte as audited; see canonical_json()."""
    body = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def is_recorded(content: bytes) -> bool:
    """Whether a request's body is one of those that only the gate may send, and send again."""
    if not any(name.encode() in content for name in RECORDED):
        return False
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return True  # not ours, so nothing is lost by care
    return isinstance(body, dict) and body.get("method") in RECORDED


def _answer_for(
    number: int | str | None, error: mcp_types.ErrorData
) -> mcp.shared.message.SessionMessage | None:
    if number is None:
        return None
    return mcp.shared.message.SessionMessage(
        mcp_types.JSONRPCError(jsonrpc="2.0", id=number, error=error)
    )


def _first_id(text: str | bytes) -> int | None:
    """The id of an answer that is not read, where it stands at the beginning or at the end as it mostly does."""
    ends = (text[:_ID_WITHIN], text[-_ID_WITHIN:])
    for end in ends:
        found = _ID.search(end.encode() if isinstance(end, str) else end)
        if found is not None:
            return int(found[1])
    return None


def _answered_id(text: str | bytes) -> int | str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or "method" in value or "jsonrpc" not in value:
        return None
    found = value.get("id")
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None
