"""Long lists come page by page. A cursor says after which row the next page begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import mcp_types
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

PAGE: Final = 100
"""Entries in one answer."""
MOST_BYTES: Final = 4 * 1024 * 1024
"""Of them together. Servers say as much of their tools and prompts as they like."""


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
    return page, cursor_after(page[-1]) if len(found) > PAGE else None


def cursor_after(row: Any) -> str:
    """The cursor of the page that begins after this row."""
    return str(row.pk.hex)


def count_fitting(entries: Sequence[BaseModel]) -> int:
    """How many entries from the first on fit into one answer. At least one: a list has to go on."""
    left = MOST_BYTES
    for number, entry in enumerate(entries):
        left -= len(entry.model_dump_json(by_alias=True, exclude_none=True).encode())
        if left < 0:
            return max(number, 1)
    return len(entries)


def _id_in(cursor: str) -> UUID:
    try:
        return UUID(hex=cursor[:64])
    except ValueError as error:
        raise MCPError(mcp_types.INVALID_PARAMS, "This is not a cursor of this list.") from error
