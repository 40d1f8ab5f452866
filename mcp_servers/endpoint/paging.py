"""Long lists come page by page. A cursor says after which row the next page begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import mcp_types
from mcp.shared.exceptions import MCPError

PAGE: Final = 100
"""Entries in one answer."""


def rows_after(rows: Any, cursor: str) -> tuple[Sequence[Any], str | None]:
    """The page of these rows that a client asks for, and the cursor of the next one; None: there is none. One statement.

    Raises:
        MCPError: this is no cursor of ours.
    Source: MCP specification, "Pagination".
    """
    if cursor:
        rows = rows.filter(pk__gt=_id_in(cursor))
    found = list(rows.order_by("pk")[: PAGE + 1])
    page = found[:PAGE]
    return page, page[-1].pk.hex if len(found) > PAGE else None


def _id_in(cursor: str) -> UUID:
    try:
        return UUID(hex=cursor[:64])
    except ValueError as error:
        raise MCPError(mcp_types.INVALID_PARAMS, "This is not a cursor of this list.") from error
