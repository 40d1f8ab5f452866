"""Search in a person's own conversations: titles, what was said, and names of files.

Words are found by their beginning, phrases in quotation marks as they stand (`word_index`). Filters narrow what is looked through (`search_filters`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, Value
from django.db.models.functions import Upper
from django.utils.translation import gettext as _

from chat.models import Artifact, Attachment, Conversation, Message, ToolCall
from chat.services.search_filters import Filters, read_filters
from chat.services.word_index import MOST_MARKED, Part, Span, Wanted, rows_with
from chat.values import MessageStatus
from mcp_servers.client.hidden_text import show_hidden
from workspaces.errors import InvalidInput
from workspaces.models import User, Workspace

MOST_HITS: Final = 30
LONGEST_QUERY: Final = 200
MOST_WORDS: Final = 12
_NAMES: Final = {
    "upper_tool": Upper("tool_name"),
    "upper_builtin": Upper("builtin"),
    "upper_server": Upper("server_name"),
}
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


def search(*, workspace: Workspace, person: User, query: str) -> list[Hit]:
    """What was found, newest first: conversations by their titles, then files, then messages.

    A conversation in which a message was found is not found by its title once more.

    Filters without words find conversations, with `has:file` files, and with `tool:` the answers that called it.

    Raises:
        InvalidInput: the query is too long, or a filter of it cannot be read.
    """
    if len(query) > LONGEST_QUERY:
        raise InvalidInput(
            fields={"q": [_("At most %(most)s characters.") % {"most": LONGEST_QUERY}]}
        )
    filters, words = read_filters(query, workspace=workspace, person=person)
    parts = [
        Part(phrase or word, bool(phrase)) for phrase, word in _PARTS.findall(words)[:MOST_WORDS]
    ]
    parts = [part for part in parts if re.search(r"\w", part.text)]
    if not parts and not filters:
        return []
    says_something = bool(parts or filters.tool)
    marked = _marked(workspace, person, filters) if says_something else None
    said = list(_messages(workspace, person, parts, filters, marked)) if says_something else []
    told = {hit.conversation.pk for hit in said}
    titles = _titles(workspace, person, parts, filters, marked)
    titled = [hit for hit in titles if hit.conversation.pk not in told]
    # A file belongs to no call.
    wants_files = not filters.tool and bool(parts or filters.has_file)
    found = list(_files(workspace, person, parts, filters)) if wants_files else []
    return [*titled, *found, *said][: 2 * MOST_HITS]


def _titles(
    workspace: Workspace,
    person: User,
    parts: list[Part],
    filters: Filters,
    marked: Mapping[UUID, UUID] | None,
) -> Iterator[Hit]:
    rows: Any = _own(Conversation.objects.for_workspace(workspace), owner=person, deleted_at=None)
    rows = _narrowed(rows, filters, conversation="", at="last_message_at")
    for part in parts:
        rows = rows.filter(title__icontains=part.text)
    if filters.has_file:
        rows = rows.filter(has_files=True)
    if filters.tool and marked is not None and len(marked) < MOST_MARKED:
        rows = rows.filter(pk__in=set(marked.values()))
    elif filters.tool:
        rows = rows.filter(Exists(_calls(workspace, filters, turn__conversation=OuterRef("pk"))))
    most = 10 if parts else MOST_HITS
    for row in rows.select_related("bud").order_by("-last_message_at", "-id")[:most]:
        yield Hit(conversation=row, excerpt=_excerpt(row.title, parts), at=row.last_message_at)


def _files(
    workspace: Workspace, person: User, parts: list[Part], filters: Filters
) -> Iterator[Hit]:
    rows: Any = _own(
        Artifact.objects.for_workspace(workspace),
        conversation__owner=person,
        conversation__deleted_at=None,
    )
    rows = _narrowed(rows.filter(is_deleted=False), filters, at="updated_at")
    for part in parts:
        rows = rows.filter(name__icontains=part.text)
    most = 10 if parts else MOST_HITS
    for row in rows.select_related("conversation__bud").order_by("-id")[:most]:
        yield Hit(
            conversation=row.conversation,
            excerpt=_excerpt(row.name, parts),
            at=row.updated_at,
            artifact_id=row.pk,
        )


def _messages(
    workspace: Workspace,
    person: User,
    parts: list[Part],
    filters: Filters,
    marked: Mapping[UUID, UUID] | None,
) -> Iterator[Hit]:
    rows: Any = _own(
        Message.objects.for_workspace(workspace),
        conversation__owner=person,
        conversation__deleted_at=None,
    )
    rows = _narrowed(rows.exclude(status=MessageStatus.STREAMING.value), filters, at="created_at")
    if filters.has_file:
        attached = Attachment.objects.for_workspace(workspace).filter(version__isnull=False)
        rows = rows.filter(Exists(attached.filter(message=OuterRef("pk"))))
    if filters.tool:
        rows = rows.filter(Exists(_calls(workspace, filters, message=OuterRef("pk"))))
    newest = rows.select_related("conversation__bud").order_by("-id")
    newest = newest.only("text", "created_at", "workspace_id", "conversation")
    if parts:
        wanted = Wanted(
            workspace_id=workspace.pk,
            owner_id=person.pk,
            parts=parts,
            span=Span(filters.after, filters.before),
            has_imports=_has_imports(workspace, person),
            chats=_chats(workspace, person, filters),
            marked=None if marked is None else list(marked),
        )
        narrowed = rows_with(newest, wanted)
    else:
        narrowed = _with_marks(newest, marked)
    found: list[Message] = []
    for some in narrowed:
        found = list(some[:MOST_HITS])
        if len(found) == MOST_HITS:
            break
    for row in found:
        yield Hit(
            conversation=row.conversation,
            excerpt=_excerpt(row.text, parts),
            at=row.created_at,
            message_id=row.pk,
        )


def _has_imports(workspace: Workspace, person: User) -> bool:
    rows = Conversation.objects.for_workspace(workspace)
    return bool(rows.filter(owner=person, chat_import__isnull=False).exists())


def _with_marks(rows: Any, marked: Mapping[UUID, UUID] | None) -> Iterator[Any]:
    """The rows among the newest that a filter asks for, and then all, unless these are all."""
    if marked is not None:
        yield rows.filter(pk__in=list(marked))
    if marked is None or len(marked) >= MOST_MARKED:
        yield rows


def _chats(workspace: Workspace, person: User, filters: Filters) -> list[UUID] | None:
    """The wanted conversations; None: all."""
    if not filters.picks_chats:
        return None
    rows: Any = _own(Conversation.objects.for_workspace(workspace), owner=person, deleted_at=None)
    return list(rows.filter(**_wanted(filters, "")).values_list("pk", flat=True).order_by())


def _marked(workspace: Workspace, person: User, filters: Filters) -> Mapping[UUID, UUID] | None:
    """The newest messages that called the wanted tool, or have a file, with their chats; None: that does not matter."""
    if filters.tool:
        calls = ToolCall.objects.for_workspace(workspace).alias(**_NAMES)
        sources: list[Any] = [calls.filter(named) for named in _named(filters.tool)]
    elif filters.has_file:
        sources = [Attachment.objects.for_workspace(workspace).filter(version__isnull=False)]
    else:
        return None
    found: dict[UUID, UUID] = {}
    for source in sources:
        rows: Any = _own(source, owner=person, message__conversation__deleted_at=None)
        conversation = "message__conversation__"
        rows = _narrowed(rows, filters, at="message__created_at", conversation=conversation)
        rows = rows.order_by("-message_id").values_list("message_id", "message__conversation_id")
        # A message may have several: if fewer messages than asked for come back, there are no more.
        found.update(rows.distinct()[:MOST_MARKED])
    return dict(sorted(found.items(), reverse=True)[:MOST_MARKED])


def _narrowed(rows: Any, filters: Filters, *, at: str, conversation: str = "conversation__") -> Any:
    """Rows of the wanted conversations and times."""
    wanted = _wanted(filters, conversation)
    if filters.before is not None:
        wanted[f"{at}__lt"] = filters.before
    if filters.after is not None:
        wanted[f"{at}__gte"] = filters.after
    return rows.filter(**wanted)


def _wanted(filters: Filters, conversation: str) -> dict[str, Any]:
    """What the wanted conversations have; neither temporary ones nor those of a bud's editor are among them."""
    wanted: dict[str, Any] = {
        f"{conversation}bud__is_draft": False,
        f"{conversation}is_temporary": False,
    }
    if filters.bud_id is not None:
        wanted[f"{conversation}bud_id"] = filters.bud_id
    if filters.folder_id is not None:
        wanted[f"{conversation}folder_id"] = filters.folder_id
    if filters.is_archived:
        wanted[f"{conversation}is_archived"] = True
    if filters.is_pinned:
        wanted[f"{conversation}is_pinned"] = True
    return wanted


def _calls(workspace: Workspace, filters: Filters, **of: Any) -> Any:
    """Calls of the wanted tool, by its name alone or with its server's; or of all tools of a server."""
    calls = ToolCall.objects.for_workspace(workspace).alias(**_NAMES)
    return calls.filter(reduce(or_, _named(filters.tool)), **of)


def _named(name: str) -> Iterator[Q]:
    """What such a call has, one way after the other: an index leads to each."""
    yield Q(upper_tool=Upper(Value(name)))
    yield Q(upper_builtin=Upper(Value(name)))
    yield Q(upper_server=Upper(Value(name)))
    server, dot, tool = name.rpartition(".")
    if dot:
        yield Q(upper_server=Upper(Value(server)), upper_tool=Upper(Value(tool)))


def _own(rows: Any, **owner: User | None) -> Any:
    """A conversation is its owner's alone, whatever else somebody may see in a workspace; not one that was deleted."""
    return rows.filter(**owner)


def _excerpt(text: str, parts: list[Part]) -> tuple[tuple[str, bool], ...]:
    """The text around the first match, cut into pieces."""
    flat = " ".join(show_hidden(text).split())
    wanted = "|".join(re.escape(" ".join(part.text.split())) for part in parts)
    pattern = re.compile(wanted or r"(?!)", re.I)  # without words nothing is marked
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
