"""The index of what stands beside messages (`chat/sql/beside_search`): calls of tools, and attached files and resources.

Of each text its beginning is looked at, so storing one stays quick and the index small. Names are always whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from django.db import connection

from chat.services.word_index import FIRST_CHATS, MOST_MARKED, WordSearch, fts5, tsquery

MOST_GIVEN: Final = 10_000
MOST_RESULT: Final = 20_000
MOST_OF_FILE: Final = 60_000
"""Characters of a call's arguments, of its result and of a file that are looked at. The triggers have the same numbers."""
AT_ONCE: Final = 300
MOST_NEWEST: Final = 60
"""Texts that PostgreSQL looks through at first: a word that is in most of them need not be looked up."""
_SIGNS: Final = str.maketrans(dict.fromkeys("./\\:@-_=&?#+~", " "))
"""What parts words on PostgreSQL, where a path or an address were one word otherwise. The triggers have the same ones."""
_END: Final = 2**63 - 1

_SQLITE: Final = """
SELECT b.text_id, b.number FROM chat_beside_words CROSS JOIN chat_beside b ON b.number = chat_beside_words.rowid
WHERE chat_beside_words MATCH %s AND chat_beside_words.rowid < %s AND b.message_id >= %s AND b.message_id < %s"""
_SQLITE_LAST: Final = f" ORDER BY chat_beside_words.rowid DESC LIMIT {AT_ONCE}"
_POSTGRESQL_NEWEST: Final = f"""
WITH newest AS MATERIALIZED (
    SELECT text_id FROM chat_beside_lexemes WHERE message_id >= %s AND message_id < %s AND {{whose}}
    ORDER BY message_id DESC LIMIT {MOST_NEWEST}
)
SELECT newest.text_id FROM newest CROSS JOIN LATERAL (
    SELECT words FROM chat_beside_lexemes WHERE text_id = newest.text_id OFFSET 0
) said WHERE words @@ to_tsquery('simple', %s)"""  # noqa: S608  our own words
# Materialized, as that of messages: the planner does not know how rare the beginning of a word is.
_POSTGRESQL_ALL: Final = f"""
WITH found AS MATERIALIZED (
    SELECT text_id, message_id FROM chat_beside_lexemes
    WHERE words @@ (CAST(%s AS tsquery) && to_tsquery('simple', %s)) AND numnode(to_tsquery('simple', %s)) > 0
    AND message_id >= %s AND message_id < %s {{narrowed}}
)
SELECT text_id, message_id FROM found WHERE (message_id, text_id) < (%s, %s)
ORDER BY message_id DESC, text_id DESC LIMIT {AT_ONCE}"""  # noqa: S608  our own words


def texts_with(wanted: WordSearch) -> Iterator[list[Any]]:
    """Give ids of calls and attachments that hold all parts: some of the newest, then all, piece by piece.

    Whoever has enough takes no more. On SQLite the newest are those that ended last.
    """
    if wanted.marked is not None and len(wanted.marked) >= MOST_MARKED:
        # There are more marked ones than these, so the caller's own filter decides.
        wanted = replace(wanted, marked=None)
    if any(some is not None and not some for some in (wanted.marked, wanted.chats)):
        return
    if connection.vendor == "postgresql":
        yield from _on_postgresql(wanted)
    else:
        yield from _on_sqlite(wanted)


def _on_postgresql(wanted: WordSearch) -> Iterator[list[Any]]:
    parts = [replace(part, text=part.text.translate(_SIGNS)) for part in wanted.parts]
    words = " & ".join(tsquery(parts))
    owner = f"' {wanted.workspace_id}{wanted.owner_id}'"
    times = list(wanted.span.ids())
    narrowed, lists = "", []
    if wanted.marked is not None:
        narrowed, lists = "AND message_id = ANY (CAST(%s AS uuid[]))", [list(wanted.marked)]
    elif wanted.chats is not None:
        narrowed, lists = "AND conversation_id = ANY (CAST(%s AS uuid[]))", [list(wanted.chats)]
        whose: list[Any] = lists
        newest = _POSTGRESQL_NEWEST.format(whose=narrowed.removeprefix("AND "))
        yield [one for (one,) in _rows(newest, [*times, *whose, words])]
    else:
        newest = _POSTGRESQL_NEWEST.format(whose="workspace_id = %s AND owner_id = %s")
        whose = [wanted.workspace_id, wanted.owner_id]
        yield [one for (one,) in _rows(newest, [*times, *whose, words])]
    last: tuple[Any, Any] = (UUID(int=2**128 - 1), UUID(int=2**128 - 1))
    some: list[Any] = [None] * AT_ONCE
    while len(some) == AT_ONCE:
        query = _POSTGRESQL_ALL.format(narrowed=narrowed)
        some = _rows(query, [owner, words, words, *times, *lists, *last])
        yield [one for one, _ in some]
        if some:
            last = (some[-1][1], some[-1][0])


def _on_sqlite(wanted: WordSearch) -> Iterator[list[Any]]:
    owner = f"{wanted.workspace_id.hex}{wanted.owner_id.hex}"
    query, lists = _SQLITE, []
    if wanted.marked is not None:
        query += " AND b.message_id IN (SELECT value FROM json_each(%s))"
        lists = [json.dumps([one.hex for one in wanted.marked])]
    elif wanted.chats is not None and len(wanted.chats) <= FIRST_CHATS:
        owner = f"({' OR '.join(one.hex for one in wanted.chats)})"
    elif wanted.chats is not None:
        query += " AND b.conversation_id IN (SELECT value FROM json_each(%s))"
        lists = [json.dumps([one.hex for one in wanted.chats])]
    match = f"owner : {owner} AND said : ({' AND '.join(fts5(wanted.parts))})"
    times = [one.hex for one in wanted.span.ids()]
    end = _END
    some: list[Any] = [None] * AT_ONCE
    while len(some) == AT_ONCE:
        some = _rows(query + _SQLITE_LAST, [match, end, *times, *lists])
        yield [one for one, _ in some]
        if some:
            end = some[-1][1]


def _rows(sql: str, params: list[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())
