"""The index of what messages say (`chat/sql/message_search`): the newest messages of a person that hold some words.

However many messages hold them, the first answer reads few: a word that is said all the time is among the newest, and
one that is not is found by its place in the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

MOST_CANDIDATES: Final = 300
_EDGE_SECONDS: Final = 3_600.0
MOST_NEWEST: Final = 1_000
"""Messages of a person that PostgreSQL looks through at first."""
_ENOUGH: Final = 45
"""Hits that are hoped for among more of the newest: half as many again as an answer shows."""
_FEWEST: Final = 4
"""Hits among the first ones. With fewer the word is rare, so its index leads to less than the newest messages hold."""

# FTS5 walks the words' lists from their ends, which is the newest row.
_SQLITE = """
SELECT rowid FROM chat_message_words WHERE chat_message_words MATCH %s
AND rowid >= coalesce((SELECT rowid FROM chat_message WHERE id >= %s ORDER BY id LIMIT 1), 9223372036854775807)
AND rowid <= coalesce((SELECT rowid FROM chat_message WHERE id < %s ORDER BY id DESC LIMIT 1), -1)
ORDER BY rowid DESC"""
_POSTGRESQL_NEWEST = f"""
SELECT message_id FROM (
    SELECT message_id, words FROM chat_message_lexemes WHERE workspace_id = %s AND owner_id = %s
    AND message_id >= %s AND message_id < %s ORDER BY message_id DESC LIMIT %s
) newest WHERE words @@ to_tsquery('simple', %s)
ORDER BY message_id DESC LIMIT {MOST_CANDIDATES}"""  # noqa: S608  a number of ours
_POSTGRESQL_ALL = """
SELECT message_id FROM chat_message_lexemes
WHERE words @@ (CAST(%s AS tsquery) && to_tsquery('simple', %s)) AND numnode(to_tsquery('simple', %s)) > 0
AND message_id >= %s AND message_id < %s"""
# Materialized: else the planner, which does not know how rare the beginning of a word is, may read all in their order.
_POSTGRESQL_SOME = f"""
WITH found AS MATERIALIZED ({_POSTGRESQL_ALL})
SELECT message_id FROM found ORDER BY message_id DESC LIMIT {MOST_CANDIDATES}"""  # noqa: S608  our own words


@dataclass(frozen=True, slots=True)
class Part:
    """A word, by its beginning; or a phrase of several, as it stands."""

    text: str
    is_phrase: bool


@dataclass(frozen=True, slots=True)
class Span:
    """A time that messages are of; None: without an end."""

    after: datetime | None = None
    before: datetime | None = None

    def ids(self) -> tuple[UUID, UUID]:
        """The first id that a message of it may have, and the first one after it: ids begin with the time.

        A message gets its id a moment before it is stored, so the rows' own times decide at the edges.
        """
        first, last = UUID(int=0), UUID(int=2**128 - 1)
        if self.after is not None:
            first = _id_at(self.after.timestamp() - _EDGE_SECONDS)
        if self.before is not None:
            last = _id_at(self.before.timestamp() + _EDGE_SECONDS)
        return first, last


def _id_at(seconds: float) -> UUID:
    """The least id of that millisecond, counted from 1970. Source: RFC 9562, section 5.7."""
    return UUID(int=max(0, int(seconds * 1000)) << 80)


def rows_with(
    rows: Any, workspace_id: UUID, owner_id: UUID, parts: list[Part], span: Span
) -> Iterator[Any]:
    """Narrow messages to those of a person that hold all parts: first to some of the newest, then to all.

    Whoever has enough of the newest takes no more; where these are all, nothing follows.

    Args:
        span: only messages of about this time are looked at.
    """
    first, last = span.ids()
    if connection.vendor == "postgresql":
        words = " & ".join(_tsquery(parts))
        for ids in _newest(workspace_id, owner_id, words, first, last):
            yield rows.filter(pk__in=ids) if ids else rows.none()
        params: list[Any] = [f"' {workspace_id}{owner_id}'", words, words, first, last]
        column, some, everything = "id", _POSTGRESQL_SOME, _POSTGRESQL_ALL
    else:
        words = (
            f"owner : {workspace_id.hex}{owner_id.hex} AND text : ({' AND '.join(_fts5(parts))})"
        )
        params = [words, first.hex, last.hex]
        column, some, everything = "rowid", f"{_SQLITE} LIMIT {MOST_CANDIDATES}", _SQLITE
    ids = _listed(some, params)
    if ids:
        known = ", ".join(["%s"] * len(ids))
        yield rows.extra(where=[f"chat_message.{column} IN ({known})"], params=ids)  # noqa: S610  our own words
    if len(ids) == MOST_CANDIDATES:
        yield rows.extra(where=[f"chat_message.{column} IN ({everything})"], params=params)  # noqa: S610  our own words


def _newest(
    workspace_id: UUID, owner_id: UUID, words: str, first: UUID, last: UUID
) -> Iterator[list[Any]]:
    """Those of the newest messages, and then of more of them if that promises enough.

    The index of words leads to all messages that hold a word, all over the table. For a word that is in some of a
    hundred messages these are thousands of pages, and whoever searches first waits for the disk.
    """
    count = MOST_NEWEST
    ids = _listed(_POSTGRESQL_NEWEST, [workspace_id, owner_id, first, last, count, words])
    yield ids
    if _FEWEST <= len(ids) < _ENOUGH:
        count = MOST_NEWEST * _ENOUGH // len(ids)
        yield _listed(_POSTGRESQL_NEWEST, [workspace_id, owner_id, first, last, count, words])


def _listed(sql: str, params: list[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [row[0] for row in cursor.fetchall()]


def _tsquery(parts: Iterable[Part]) -> Iterator[str]:
    """PostgreSQL's form, in which a quote is doubled. Source: PostgreSQL, "Text Search Types"."""
    for part in parts:
        quoted = "'" + part.text.replace("\\", " ").replace("'", "''") + "'"
        yield quoted if part.is_phrase else f"{quoted}:*"


def _fts5(parts: Iterable[Part]) -> Iterator[str]:
    """SQLite's form. Source: SQLite, "FTS5 Extension", section 3."""
    for part in parts:
        yield f'"{part.text}"' if part.is_phrase else f'"{part.text}"*'
