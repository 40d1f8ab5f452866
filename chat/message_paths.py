"""Paths through the tree of a conversation's messages, walked in the database: nobody reads a whole tree.

A statement touches the messages of the path, and of those beside it no more than are wanted. So it costs as much in a
conversation of ten thousand messages, or with a thousand branches, as in a small one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import UUIDField
from django.db.models.expressions import RawSQL

from chat.models import Message

LONGEST_PATH = 1_000_000
"""More than anybody says; it ends a walk that would not end by itself."""

UP = "JOIN chat_message m ON m.id = path.parent_id"
"""One step of a walk to the beginning, from a row of `path`."""
_UP_BY_KEY = """JOIN LATERAL (
    SELECT * FROM chat_message above WHERE above.id = path.parent_id OFFSET 0
) m ON TRUE"""
# From the end upwards.
_PATH = f"""
WITH RECURSIVE path(id, parent_id, conversation_id, order_key, place) AS (
    SELECT m.id, m.parent_id, m.conversation_id, m.order_key, 1 FROM chat_message m WHERE m.id = %s
  UNION ALL
    SELECT m.id, m.parent_id, m.conversation_id, m.order_key, path.place + 1
    FROM path {UP}
    WHERE path.place < %s
)"""  # noqa: S608  our own words
_IDS = f"{_PATH} SELECT id FROM path"  # noqa: S608  our own words
# From the end upwards to a message, and of that the part that begins with it.
_IDS_FROM = f"""
WITH RECURSIVE path(id, parent_id, place) AS (
    SELECT m.id, m.parent_id, 1 FROM chat_message m WHERE m.id = %s
  UNION ALL
    SELECT m.id, m.parent_id, path.place + 1
    FROM path {UP}
    WHERE path.id <> %s AND path.place < %s
)
SELECT id FROM path ORDER BY place DESC LIMIT %s"""  # noqa: S608  our own words
# Of a message's siblings those next to it, on both sides. A conversation's first messages have no parent.
_NEXT_TO_IT = """s.id <> path.id AND s.order_key > coalesce((
    SELECT o.order_key FROM chat_message o WHERE {siblings} AND o.order_key < path.order_key
    ORDER BY o.order_key DESC LIMIT 1 OFFSET %s
), -1) AND s.order_key < coalesce((
    SELECT o.order_key FROM chat_message o WHERE {siblings} AND o.order_key > path.order_key
    ORDER BY o.order_key LIMIT 1 OFFSET %s
), 9223372036854775807)"""
_BESIDE = f"""{_PATH}
SELECT s.id FROM path JOIN chat_message s ON s.parent_id = path.parent_id
WHERE {_NEXT_TO_IT.format(siblings="o.parent_id = path.parent_id")}
UNION ALL
SELECT s.id FROM path JOIN chat_message s ON s.conversation_id = path.conversation_id
WHERE path.parent_id IS NULL AND s.parent_id IS NULL AND
{_NEXT_TO_IT.format(siblings="o.conversation_id = path.conversation_id AND o.parent_id IS NULL")}"""  # noqa: S608  our own words
_NEWEST_LEAF = """
WITH RECURSIVE down(id, depth) AS (
    SELECT m.id, 0 FROM chat_message m WHERE m.id = %s
  UNION ALL
    SELECT (
        SELECT c.id FROM chat_message c WHERE c.parent_id = down.id
        ORDER BY c.order_key DESC, c.id DESC LIMIT 1
    ), down.depth + 1
    FROM down WHERE down.id IS NOT NULL AND down.depth < %s
)
SELECT id FROM down WHERE id IS NOT NULL ORDER BY depth DESC LIMIT 1"""


def path_to(workspace_id: UUID, end: UUID | None, most: int = LONGEST_PATH) -> Any:
    """Query the last messages of the path from the first message to this one, in their order; none without one."""
    ids = ids_of_walk(_IDS, (as_param(end), most))
    rows = Message.objects.for_workspace(workspace_id).order_by("order_key", "pk")
    return rows.filter(pk__in=ids)


def path_from(workspace_id: UUID, start: UUID, end: UUID, most: int) -> list[Message]:
    """Read the first messages of the path from one message down to another; none where it does not lead there."""
    params = (as_param(end), as_param(start), LONGEST_PATH, most)
    ids = ids_of_walk(_IDS_FROM, params)
    rows = Message.objects.for_workspace(workspace_id).order_by("order_key", "pk")
    found = list(rows.filter(pk__in=ids))
    return found if found and found[0].pk == start else []


def beside_path(workspace_id: UUID, end: UUID, *, most: int, siblings: int) -> Any:
    """Query the messages beside those of `path_to`: so many before and after each, of those with its parent."""
    params = (as_param(end), most, *[siblings] * 4)
    ids = ids_of_walk(_BESIDE, params)
    rows = Message.objects.for_workspace(workspace_id).order_by("order_key", "pk")
    return rows.filter(pk__in=ids)


def newest_leaf(workspace_id: UUID, start: UUID) -> UUID:
    """Find the end of the path through a message of this workspace that always takes the newest branch below it."""
    ids = ids_of_walk(_NEWEST_LEAF, (as_param(start), LONGEST_PATH))
    rows = Message.objects.for_workspace(workspace_id).filter(pk__in=ids)
    found: UUID = rows.order_by().values_list("pk", flat=True).get()
    return found


def ids_of_walk(sql: str, params: Sequence[Any]) -> RawSQL:
    """The ids that a walk finds, for `pk__in`.

    PostgreSQL is told to walk once, before it reads, and each step by the key. With statistics of another time, when the
    table was nearly empty, it takes any scan for cheap: it has read all messages at each step, and walked anew for each
    message of the workspace, a minute instead of milliseconds.
    """
    if connection.vendor == "postgresql":
        sql = f"SELECT unnest(ARRAY({sql.replace(UP, _UP_BY_KEY)}))"
    return RawSQL(sql, params)  # noqa: S611  our own words


def as_param(value: UUID | None) -> Any:
    """An id as the driver takes it."""
    column: UUIDField[Any, Any] = UUIDField()
    return column.get_db_prep_value(value, connection)
