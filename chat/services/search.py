"""Search in a person's own conversations: titles, what was said, and names of files.

Words are found by their beginning, phrases in quotation marks as they stand. On PostgreSQL an index of words finds them,
on SQLite FTS5 (`chat/sql/message_search`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from chat.models import Artifact, Conversation, Message
from chat.values import MessageStatus
from mcp_servers.client.hidden_text import show_hidden
from workspaces.errors import InvalidInput
from workspaces.models import User, Workspace

MOST_HITS: Final = 30
LONGEST_QUERY: Final = 200
MOST_WORDS: Final = 12
_AROUND: Final = 80
"""Characters of an excerpt before and after its first match."""
_PARTS = re.compile(r'"([^"]+)"|(\w+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A place where something was found."""

    conversation: Conversation
    excerpt: tuple[tuple[str, bool], ...]
    """Pieces of text, and whether each is what was looked for."""
    at: datetime
    message_id: UUID | None = None
    artifact_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """A word, or a phrase of several."""

    text: str
    is_phrase: bool


def search(*, workspace: Workspace, person: User, query: str) -> list[Hit]:
    """What was found, newest first: conversations by their titles, then files, then messages.

    A conversation in which a message was found is not found by its title once more.

    Raises:
        InvalidInput: the query is too long.
    """
    if len(query) > LONGEST_QUERY:
        raise InvalidInput(fields={"q": [f"At most {LONGEST_QUERY} characters."]})
    parts = [
        _Part(phrase or word, bool(phrase)) for phrase, word in _PARTS.findall(query)[:MOST_WORDS]
    ]
    parts = [part for part in parts if re.search(r"\w", part.text)]
    if not parts:
        return []
    said = list(_messages(workspace, person, parts))
    told = {hit.conversation.pk for hit in said}
    titled = [hit for hit in _titles(workspace, person, parts) if hit.conversation.pk not in told]
    return [*titled, *_files(workspace, person, parts), *said][: 2 * MOST_HITS]


def _titles(workspace: Workspace, person: User, parts: list[_Part]) -> Iterator[Hit]:
    rows: Any = _own(Conversation.objects.for_workspace(workspace), owner=person, deleted_at=None)
    rows = rows.filter(bud__is_draft=False)
    for part in parts:
        rows = rows.filter(title__icontains=part.text)
    for row in rows.select_related("bud").order_by("-last_message_at", "-id")[:10]:
        yield Hit(conversation=row, excerpt=_excerpt(row.title, parts), at=row.last_message_at)


def _files(workspace: Workspace, person: User, parts: list[_Part]) -> Iterator[Hit]:
    rows: Any = _own(
        Artifact.objects.for_workspace(workspace),
        conversation__owner=person,
        conversation__deleted_at=None,
    )
    rows = rows.filter(is_deleted=False, conversation__bud__is_draft=False)
    for part in parts:
        rows = rows.filter(name__icontains=part.text)
    for row in rows.select_related("conversation__bud").order_by("-id")[:10]:
        yield Hit(
            conversation=row.conversation,
            excerpt=_excerpt(row.name, parts),
            at=row.updated_at,
            artifact_id=row.pk,
        )


def _messages(workspace: Workspace, person: User, parts: list[_Part]) -> Iterator[Hit]:
    rows: Any = _own(
        Message.objects.for_workspace(workspace),
        conversation__owner=person,
        conversation__deleted_at=None,
    )
    rows = rows.exclude(status=MessageStatus.STREAMING.value)
    rows = rows.filter(conversation__bud__is_draft=False)
    if connection.vendor == "postgresql":
        where = "chat_message.status <> 'streaming' AND to_tsvector('simple', chat_message.text) @@ to_tsquery('simple', %s)"
        wanted = " & ".join(_tsquery(parts))
    else:
        where = "chat_message.rowid IN (SELECT rowid FROM chat_message_words WHERE chat_message_words MATCH %s)"
        wanted = " ".join(_fts5(parts))
    rows = rows.extra(where=[where], params=[wanted])  # noqa: S610  the query is a parameter
    found = rows.select_related("conversation__bud").order_by("-id")
    for row in found.only("text", "created_at", "workspace_id", "conversation")[:MOST_HITS]:
        yield Hit(
            conversation=row.conversation,
            excerpt=_excerpt(row.text, parts),
            at=row.created_at,
            message_id=row.pk,
        )


def _own(rows: Any, **owner: User | None) -> Any:
    """A conversation is its owner's alone, whatever else somebody may see in a workspace; not one that was deleted."""
    return rows.filter(**owner)


def _tsquery(parts: Iterable[_Part]) -> Iterator[str]:
    """PostgreSQL's form, in which a quote is doubled. Source: PostgreSQL, "Text Search Types"."""
    for part in parts:
        quoted = "'" + part.text.replace("\\", " ").replace("'", "''") + "'"
        yield quoted if part.is_phrase else f"{quoted}:*"


def _fts5(parts: Iterable[_Part]) -> Iterator[str]:
    """SQLite's form. Source: SQLite, "FTS5 Extension", section 3."""
    for part in parts:
        yield f'"{part.text}"' if part.is_phrase else f'"{part.text}"*'


def _excerpt(text: str, parts: list[_Part]) -> tuple[tuple[str, bool], ...]:
    """The text around the first match, cut into pieces."""
    flat = " ".join(show_hidden(text).split())
    pattern = re.compile("|".join(re.escape(" ".join(part.text.split())) for part in parts), re.I)
    first = pattern.search(flat)
    at = first.start() if first else 0
    start = flat.rfind(" ", 0, at - _AROUND) + 1 if at > _AROUND else 0
    end = min(len(flat), at + 2 * _AROUND)
    shown = ("…" if start else "") + flat[start:end] + ("…" if end < len(flat) else "")
    pieces: list[tuple[str, bool]] = []
    place = 0
    for match in pattern.finditer(shown):
        if match.start() > place:
            pieces.append((shown[place : match.start()], False))
        pieces.append((match[0], True))
        place = match.end()
    if place < len(shown):
        pieces.append((shown[place:], False))
    return tuple(pieces)
