"""The index of what messages say (`chat/sql/message_search`): the newest messages of a person that hold some words.

However many messages hold them, the first answer reads few: a word that is said all the time is among the newest, and
one that is not is found by its place in the index. Where only some chats are wanted, they are walked, the newest first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from chat.services.dated_ids import first_id_at

MOST_CANDIDATES: Final = 300
_EDGE_SECONDS: Final = 3_600.0
MOST_NEWEST: Final = 1_000
"""Messages of a person that PostgreSQL looks through at first."""
_ENOUGH: Final = 45
"""Hits that are hoped for among more of the newest: half as many again as an answer shows."""
_FEWEST: Final = 4
"""Hits among the first ones. With fewer the word is rare, so its index leads to less than the newest messages hold."""
FIRST_CHATS: Final = 50
MORE_CHATS: Final = 500
"""Chats that are walked at once: at first, and then."""
FEW_MESSAGES: Final = 5_000
"""Messages of the wanted chats that PostgreSQL looks through one by one, however rare the words are."""
MOST_MARKED: Final = 1_000
"""Messages with a file, or a call of the wanted tool, that are looked through first."""
_LAST_ROW: Final = 2**63 - 1

# FTS5 walks the words' lists from their ends, which is the newest row.
_SQLITE_UP_TO = (
    "SELECT rowid FROM chat_message_words WHERE chat_message_words MATCH %s AND rowid <= %s"
)
# Of those of a time, and of whoever has imported chats: such messages are younger rows with older ids.
_SQLITE_DATED = """
SELECT m.rowid FROM chat_message_words CROSS JOIN chat_message m ON m.rowid = chat_message_words.rowid
WHERE chat_message_words MATCH %s AND m.id >= %s AND m.id < %s"""
_SQLITE_OF_CHATS = " AND m.conversation_id IN (SELECT value FROM json_each(%s))"
# The plus keeps SQLite from asking the index for each row of the list.
_SQLITE_MARKED = f"""
SELECT rowid FROM chat_message_words WHERE chat_message_words MATCH %s
AND +rowid IN (SELECT rowid FROM chat_message WHERE id IN (SELECT value FROM json_each(%s)))
ORDER BY rowid DESC LIMIT {MOST_CANDIDATES}"""  # noqa: S608  a number of ours
_SQLITE_CHATS = """
SELECT chat.value, (SELECT max(rowid) FROM chat_message WHERE conversation_id = chat.value)
FROM json_each(%s) chat ORDER BY 2 DESC"""
_POSTGRESQL_NEWEST = f"""
SELECT message_id FROM (
    SELECT message_id, words FROM chat_message_lexemes WHERE workspace_id = %s AND owner_id = %s
    AND message_id >= %s AND message_id < %s ORDER BY message_id DESC LIMIT %s
) newest WHERE words @@ to_tsquery('simple', %s)
ORDER BY message_id DESC LIMIT {MOST_CANDIDATES}"""  # noqa: S608  a number of ours
_POSTGRESQL_ENDS = """
SELECT message_id FROM chat_message_lexemes WHERE workspace_id = %s AND owner_id = %s
AND message_id >= %s AND message_id < %s ORDER BY message_id DESC LIMIT %s"""
_POSTGRESQL_ALL = """
SELECT message_id FROM chat_message_lexemes
WHERE words @@ (CAST(%s AS tsquery) && to_tsquery('simple', %s)) AND numnode(to_tsquery('simple', %s)) > 0
AND message_id >= %s AND message_id < %s"""
# Materialized: else the planner, which does not know how rare the beginning of a word is, may read all in their order.
_POSTGRESQL_SOME = f"""
WITH found AS MATERIALIZED ({_POSTGRESQL_ALL})
SELECT message_id FROM found ORDER BY message_id DESC LIMIT {MOST_CANDIDATES}"""  # noqa: S608  our own words
_POSTGRESQL_MARKED = f"""
SELECT message_id FROM chat_message_lexemes WHERE message_id = ANY (CAST(%s AS uuid[]))
AND words @@ to_tsquery('simple', %s) ORDER BY message_id DESC LIMIT {MOST_CANDIDATES}"""  # noqa: S608  a number of ours
_POSTGRESQL_COUNT = f"""
SELECT count(*) FROM (
    SELECT FROM unnest(CAST(%s AS uuid[])) chat (id) JOIN chat_message ON conversation_id = chat.id
    AND chat_message.id >= %s AND chat_message.id < %s LIMIT {FEW_MESSAGES + 1}
) few"""  # noqa: S608  a number of ours
# As texts, which are in the same order: only this statement is to use the index of times.
_POSTGRESQL_SINCE = f"""
WITH found AS MATERIALIZED ({_POSTGRESQL_ALL} AND CAST(message_id AS text) >= %s)
SELECT message_id FROM found ORDER BY message_id DESC LIMIT {MOST_CANDIDATES}"""  # noqa: S608  our own words
_POSTGRESQL_CHATS = """
SELECT chat.id, newest.id FROM unnest(CAST(%s AS uuid[])) chat (id) CROSS JOIN LATERAL (
    SELECT id FROM chat_message WHERE conversation_id = chat.id AND id >= %s AND id < %s ORDER BY id DESC LIMIT 1
) newest ORDER BY newest.id DESC"""
# Each chat is walked from its end, until it gave enough: so those with many hits cost no more than those with few.
_POSTGRESQL_IN_CHATS = f"""
SELECT hit.id FROM unnest(CAST(%s AS uuid[])) chat (id) CROSS JOIN LATERAL (
    SELECT message.id FROM chat_message message CROSS JOIN LATERAL (
        SELECT words FROM chat_message_lexemes WHERE message_id = message.id OFFSET 0
    ) said WHERE message.conversation_id = chat.id AND message.id >= %s AND message.id < %s
    AND said.words @@ to_tsquery('simple', %s) ORDER BY message.id DESC LIMIT {_ENOUGH}
) hit ORDER BY hit.id DESC LIMIT {MOST_CANDIDATES}"""  # noqa: S608  numbers of ours


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """A word, by its beginning; or a phrase of several, as it stands."""

    text: str
    is_phrase: bool


@dataclass(frozen=True, slots=True)
class SearchPeriod:
    """A time that messages are of; None: without an end."""

    after: datetime | None = None
    before: datetime | None = None

    def ids(self) -> tuple[UUID, UUID]:
        """The first id that a message of it may have, and the first one after it: ids begin with the time.

        A message gets its id a moment before it is stored, so the rows' own times decide at the edges.
        """
        first, last = UUID(int=0), UUID(int=2**128 - 1)
        if self.after is not None:
            first = first_id_at(self.after.timestamp() - _EDGE_SECONDS)
        if self.before is not None:
            last = first_id_at(self.before.timestamp() + _EDGE_SECONDS)
        return first, last


@dataclass(frozen=True, slots=True, kw_only=True)
class WordSearch:
    """Which messages of a person are looked for."""

    workspace_id: UUID
    owner_id: UUID
    parts: list[SearchTerm]
    span: SearchPeriod
    """Only messages of about this time are looked at."""
    chats: Sequence[UUID] | None = None
    """Only those of these chats; None: of all."""
    has_imports: bool = False
    """Some of the person's messages were said long before their rows were made."""
    marked: Sequence[UUID] | None = None
    """Only those of these: the newest that have what a filter asks for, all if there are less than `MOST_MARKED`."""


def rows_with(rows: Any, wanted: WordSearch) -> Iterator[Any]:
    """Narrow messages to those that hold all parts: first to some of the newest, then to all.

    Whoever has enough of the newest takes no more; where these are all, nothing follows. The rows are narrowed to the
    wanted chats and marks as well.
    """
    if wanted.marked is not None and not wanted.marked:
        return
    if connection.vendor == "postgresql":
        yield from _on_postgresql(rows, wanted)
    else:
        yield from _on_sqlite(rows, wanted)


def _on_postgresql(rows: Any, wanted: WordSearch) -> Iterator[Any]:
    words = " & ".join(tsquery(wanted.parts))
    owner = f"' {wanted.workspace_id}{wanted.owner_id}'"
    first, last = wanted.span.ids()
    if wanted.marked is not None:
        ids = _listed(_POSTGRESQL_MARKED, [list(wanted.marked), words])
        yield _among(rows, ids)
        if len(wanted.marked) < MOST_MARKED and len(ids) < MOST_CANDIDATES:
            return
    chats: list[tuple[Any, Any]] = []
    if wanted.chats is not None:
        chats = _pairs(_POSTGRESQL_CHATS, [list(wanted.chats), first, last])
        if not chats:
            return
        last = min(last, UUID(int=chats[0][1].int + 1))
    is_common, is_few = True, False
    if chats:
        some = [chat for chat, _ in chats]
        is_few = _listed(_POSTGRESQL_COUNT, [some, first, last])[0] <= FEW_MESSAGES
    if not is_few:
        newest: list[Any] = [wanted.workspace_id, wanted.owner_id, first]
        ids = _listed(_POSTGRESQL_NEWEST, [*newest, last, MOST_NEWEST, words])
        yield _among(rows, ids)
        is_common = len(ids) >= _FEWEST
        if chats and not is_common:
            # Chats that ended long ago say little about a word that is said all the time elsewhere.
            ids = _listed(_POSTGRESQL_NEWEST, [*newest, UUID(int=2**128 - 1), MOST_NEWEST, words])
            is_common = len(ids) >= _FEWEST
        # The index of words leads to all messages that hold a word, all over the table. For a word that is in some of
        # a hundred messages these are thousands of pages, and whoever searches first waits for the disk.
        elif not chats and _FEWEST <= len(ids) < _ENOUGH:
            count = MOST_NEWEST * _ENOUGH // len(ids)
            yield _among(rows, _listed(_POSTGRESQL_NEWEST, [*newest, last, count, words]))
        elif not chats and 0 < len(ids) < _FEWEST:
            since = str(_since(newest, last, len(ids)))
            ids = _listed(_POSTGRESQL_SINCE, [owner, words, words, first, last, since])
            yield _among(rows, ids)
    if chats and is_common:
        ids, is_whole = _in_chats(
            chats, lambda some: _listed(_POSTGRESQL_IN_CHATS, [some, first, last, words])
        )
        yield _among(rows, ids)
        if is_whole:
            return
    params: list[Any] = [owner, words, words, first, last]
    ids = _listed(_POSTGRESQL_SOME, params)
    yield _among(rows, ids)
    if len(ids) == MOST_CANDIDATES:
        yield rows.extra(where=[f"chat_message.id IN ({_POSTGRESQL_ALL})"], params=params)  # noqa: S610  our own words


def _since(newest: list[Any], last: UUID, hits: int) -> UUID:
    """The first id of a time that most likely holds enough hits, when so many were among the newest messages.

    Args:
        newest: workspace, person, and the first id that is wanted.
    """
    ends = _listed(_POSTGRESQL_ENDS, [*newest, last, MOST_NEWEST])
    begin, end = (one.int >> 80 for one in (ends[-1], ends[0]))
    return UUID(int=max(0, end - 2 * (end - begin) * _ENOUGH // hits) << 80)


def _on_sqlite(rows: Any, wanted: WordSearch) -> Iterator[Any]:
    wanted_words = f"text : ({' AND '.join(fts5(wanted.parts))})"
    owned = f"owner : {wanted.workspace_id.hex}{wanted.owner_id.hex} AND {wanted_words}"
    if wanted.marked is not None:
        marked = json.dumps([one.hex for one in wanted.marked])
        ids = _listed(_SQLITE_MARKED, [owned, marked])
        yield _among_numbered(rows, ids)
        if len(wanted.marked) < MOST_MARKED and len(ids) < MOST_CANDIDATES:
            return
    if wanted.has_imports or wanted.span != SearchPeriod():
        yield from _on_sqlite_by_ids(rows, wanted, owned)
    else:
        yield from _on_sqlite_by_rows(rows, wanted, owned, wanted_words)


def _on_sqlite_by_ids(rows: Any, wanted: WordSearch, owned: str) -> Iterator[Any]:
    """All that hold the words are looked at, since only their ids tell which are the newest."""
    query = _SQLITE_DATED
    params: list[Any] = [owned, *(one.hex for one in wanted.span.ids())]
    if wanted.chats is not None:
        query += _SQLITE_OF_CHATS
        params.append(json.dumps([one.hex for one in wanted.chats]))
    ids = _listed(f"{query} ORDER BY m.id DESC LIMIT {MOST_CANDIDATES}", params)
    yield _among_numbered(rows, ids)
    if len(ids) == MOST_CANDIDATES:
        yield rows.extra(where=[f"chat_message.rowid IN ({query})"], params=params)  # noqa: S610  our own words


def _on_sqlite_by_rows(
    rows: Any, wanted: WordSearch, owned: str, wanted_words: str
) -> Iterator[Any]:
    """The newest are the last rows, so few are looked at."""
    some = f"{_SQLITE_UP_TO} ORDER BY rowid DESC LIMIT {MOST_CANDIDATES}"
    end = _LAST_ROW
    chats: list[tuple[Any, Any]] = []
    if wanted.chats is not None:
        listed = json.dumps([one.hex for one in wanted.chats])
        chats = [one for one in _pairs(_SQLITE_CHATS, [listed]) if one[1] is not None]
        if not chats:
            return
        end = chats[0][1]
    if not 0 < len(chats) <= FIRST_CHATS:
        ids = _listed(some, [owned, end])
        yield _among_numbered(rows, ids)
        if len(ids) < MOST_CANDIDATES:
            return
    if chats:
        ids, is_whole = _in_chats(
            chats,
            lambda few: _listed(some, [f"owner : ({' OR '.join(few)}) AND {wanted_words}", end]),
        )
        yield _among_numbered(rows, ids)
        if is_whole:
            return
    yield rows.extra(where=[f"chat_message.rowid IN ({_SQLITE_UP_TO})"], params=[owned, end])  # noqa: S610  our own words


def _in_chats(
    chats: Sequence[tuple[Any, Any]], ask: Callable[[list[Any]], list[Any]]
) -> tuple[list[Any], bool]:
    """Ask for the hits of some chats after the other until there are enough that are newer than all that follows.

    Args:
        chats: each with its newest message, the newest first.

    Returns:
        the newest hits, and whether there are no others.
    """
    found: list[Any] = []
    is_whole = True
    at, count = 0, FIRST_CHATS
    while at < len(chats):
        some = ask([chat for chat, _ in chats[at : at + count]])
        is_whole = is_whole and len(some) < _ENOUGH
        found = sorted([*found, *some], reverse=True)[:MOST_CANDIDATES]
        at, count = at + count, MORE_CHATS
        if at < len(chats) and len(found) >= _ENOUGH and found[_ENOUGH - 1] > chats[at][1]:
            return found, False
    return found, is_whole


def _among(rows: Any, ids: list[Any]) -> Any:
    return rows.filter(pk__in=ids) if ids else rows.none()


def _among_numbered(rows: Any, numbers: list[Any]) -> Any:
    """Rows by their numbers in SQLite's table."""
    if not numbers:
        return rows.none()
    known = ", ".join(["%s"] * len(numbers))
    return rows.extra(where=[f"chat_message.rowid IN ({known})"], params=numbers)  # noqa: S610  our own words


def _listed(sql: str, params: list[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [row[0] for row in cursor.fetchall()]


def _pairs(sql: str, params: list[Any]) -> list[tuple[Any, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [(row[0], row[1]) for row in cursor.fetchall()]


def tsquery(parts: Iterable[SearchTerm]) -> Iterator[str]:
    """PostgreSQL's form, in which a quote is doubled. Source: PostgreSQL, "Text Search Types"."""
    for part in parts:
        quoted = "'" + part.text.replace("\\", " ").replace("'", "''") + "'"
        yield quoted if part.is_phrase else f"{quoted}:*"


def fts5(parts: Iterable[SearchTerm]) -> Iterator[str]:
    """SQLite's form. Source: SQLite, "FTS5 Extension", section 3."""
    for part in parts:
        yield f'"{part.text}"' if part.is_phrase else f'"{part.text}"*'
