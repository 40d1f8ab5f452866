"""Search in a person's own conversations: titles, what was said, names of files, calls of tools, and attached files.

Words are found by their beginning, phrases in quotation marks as they stand (`word_index`). Filters narrow what is looked through (`search_filters`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, Value
from django.db.models.functions import Upper
from django.utils.translation import gettext as _

from chat.models import Artifact, Attachment, Conversation, Message, ToolCall
from chat.services.beside_index import MOST_GIVEN, MOST_OF_FILE, MOST_RESULT, texts_with
from chat.services.search_filters import Filters, read_filters
from chat.services.word_index import MOST_MARKED, SearchPeriod, SearchTerm, WordSearch, rows_with
from chat.values import MessageStatus
from mcp_servers.client.hidden_text import show_hidden
from workspaces.errors import InvalidInput
from workspaces.models import User, Workspace

MOST_HITS: Final = 30
MOST_BESIDE: Final = 10
"""Messages with a call or a file in which something was found."""
LONGEST_QUERY: Final = 200
MOST_WORDS: Final = 12
_NAMES: Final = {
    "upper_tool": Upper("tool_name"),
    "upper_builtin": Upper("builtin"),
    "upper_server": Upper("server_name"),
}
_OF_MESSAGE: Final = ("workspace_id", "position", "message__created_at", "message__conversation")
_CALL_COLUMNS: Final = (
    *("arguments", "model_text", "server_name", "tool_name", "tool_title", "function_name"),
    *_OF_MESSAGE,
)
_FILE_COLUMNS: Final = ("title", "server_id", "server_name", "uri", "model_text", *_OF_MESSAGE)
_AROUND: Final = 80
"""Characters of an excerpt before and after its first match."""
_ENOUGH_AROUND: Final = 1_000
"""The same in a text as it is stored, in which most may be white space. Long texts take long to make fit to be shown."""
_MARKS = re.compile(
    r"^[ ]{0,3}(?:#{1,6}[ ]+|```.*$|(?:>[ ]?)+)"
    r"|(?<![\w*])\*\*(?=\S)([^*\n]*[^*\s])\*\*(?![\w*])"
    r"|(?<!`)`([^`\n]+)`(?!`)"
    r"|(?<!\w)!?\[([^\[\]\n]+)\]\([^()\s]*\)",
    re.M,
)
"""What makes headings, quotations, blocks of code, bold words, code and links of Markdown."""
_PARTS = re.compile(r'"([^"]+)"|(\w+)')


class FoundIn(StrEnum):
    """What holds the words."""

    TITLE = "title"
    MESSAGE = "message"
    FILE_NAME = "file_name"
    CALL = "call"
    """A call of a tool that a message made."""
    FILE = "file"
    """A file or a resource that is attached to a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A place where something was found."""

    found_in: FoundIn
    conversation: Conversation
    excerpt: tuple[tuple[str, bool], ...]
    """Pieces of text, and whether each is what was looked for; none where they only repeat the conversation's title."""
    at: datetime
    name: str = ""
    """Of the tool or the file."""
    message_id: UUID | None = None
    artifact_id: UUID | None = None


def search(*, workspace: Workspace, person: User, query: str) -> list[SearchHit]:
    """What was found, newest first: conversations by their titles, then files by their names, then messages, then what
    stands beside messages: calls of tools and attached files.

    A conversation in which a message was found is not found by its title once more, nor a message by its calls.

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
        SearchTerm(phrase or word, bool(phrase))
        for phrase, word in _PARTS.findall(words)[:MOST_WORDS]
    ]
    parts = [part for part in parts if re.search(r"\w", part.text)]
    if not parts and not filters:
        return []
    says_something = bool(parts or filters.tool)
    marked = _marked(workspace, person, filters) if says_something else None
    wanted = _wanted_texts(workspace, person, parts, filters, marked) if parts else None
    in_messages = (
        list(_messages(workspace, person, filters, marked, wanted)) if says_something else []
    )
    found_in_texts = {hit.conversation.pk for hit in in_messages}
    titles = _titles(workspace, person, parts, filters, marked)
    titled = [hit for hit in titles if hit.conversation.pk not in found_in_texts]
    # A file belongs to no call.
    wants_files = not filters.tool and bool(parts or filters.has_file)
    found = list(_files(workspace, person, parts, filters)) if wants_files else []
    shown = {hit.message_id for hit in in_messages}
    beside = _beside(workspace, person, filters, wanted, shown) if wanted else []
    return [*titled, *found, *in_messages, *beside][: 2 * MOST_HITS]


def _titles(
    workspace: Workspace,
    person: User,
    parts: list[SearchTerm],
    filters: Filters,
    marked: Mapping[UUID, UUID] | None,
) -> Iterator[SearchHit]:
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
        yield SearchHit(
            found_in=FoundIn.TITLE,
            conversation=row,
            excerpt=(),
            at=row.last_message_at,
        )


def _files(
    workspace: Workspace, person: User, parts: list[SearchTerm], filters: Filters
) -> Iterator[SearchHit]:
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
        yield SearchHit(
            found_in=FoundIn.FILE_NAME,
            conversation=row.conversation,
            name=row.name,
            excerpt=_excerpt(row.name, parts),
            at=row.updated_at,
            artifact_id=row.pk,
        )


def _messages(
    workspace: Workspace,
    person: User,
    filters: Filters,
    marked: Mapping[UUID, UUID] | None,
    wanted: WordSearch | None,
) -> Iterator[SearchHit]:
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
    parts = wanted.parts if wanted else []
    narrowed = rows_with(newest, wanted) if wanted else _with_marks(newest, marked)
    found: list[Message] = []
    for some in narrowed:
        found = list(some[:MOST_HITS])
        if len(found) == MOST_HITS:
            break
    for row in found:
        yield SearchHit(
            found_in=FoundIn.MESSAGE,
            conversation=row.conversation,
            excerpt=_beyond_title(_excerpt(row.text, parts), row.conversation.title),
            at=row.created_at,
            message_id=row.pk,
        )


def _beside(
    workspace: Workspace,
    person: User,
    filters: Filters,
    wanted: WordSearch,
    shown: Container[UUID | None],
) -> list[SearchHit]:
    """Newest messages with a call or a file that holds all parts, each once.

    Args:
        shown: messages that were found already.
    """
    calls: Any = ToolCall.objects.for_workspace(workspace)
    files: Any = Attachment.objects.for_workspace(workspace)
    if filters.tool:
        calls = calls.alias(**_NAMES).filter(reduce(or_, _named(filters.tool)))
    kept = Q(server_id__isnull=False) | Q(version__artifact__is_deleted=False)
    # A file belongs to no call.
    files = files.none() if filters.tool else files.filter(kept)
    attached = Attachment.objects.for_workspace(workspace).filter(version__isnull=False)
    found: dict[UUID, tuple[bool, UUID]] = {}
    for ids in texts_with(wanted):
        for is_call, source in ((True, calls), (False, files)) if ids else ():
            rows = _own(source, owner=person, message__conversation__deleted_at=None)
            if filters.has_file:
                rows = rows.filter(Exists(attached.filter(message=OuterRef("message"))))
            at, conversation = "message__created_at", "message__conversation__"
            rows = _narrowed(rows.filter(pk__in=ids), filters, at=at, conversation=conversation)
            for message, pk in rows.order_by("-message_id", "position").values_list(
                "message_id", "pk"
            ):
                if message not in shown:
                    found.setdefault(message, (is_call, pk))
        if len(found) >= MOST_BESIDE:
            break
    newest = sorted(found.items(), reverse=True)[:MOST_BESIDE]
    hits = [
        *_hits(
            calls,
            [pk for _, (is_call, pk) in newest if is_call],
            _CALL_COLUMNS,
            _hit_in_call,
            wanted.parts,
        ),
        *_hits(
            files,
            [pk for _, (is_call, pk) in newest if not is_call],
            _FILE_COLUMNS,
            _hit_in_file,
            wanted.parts,
        ),
    ]
    return sorted(hits, key=lambda hit: str(hit.message_id), reverse=True)


def _hits(
    rows: Any,
    ids: list[UUID],
    columns: Sequence[str],
    hit_in: Callable[[Any, list[SearchTerm]], SearchHit],
    parts: list[SearchTerm],
) -> Iterator[SearchHit]:
    """What is shown of those rows; only theirs are the long texts that are fetched."""
    if ids:
        some = rows.filter(pk__in=ids).select_related("message__conversation__bud").only(*columns)
        for row in some.order_by():
            yield hit_in(row, parts)


def _hit_in_call(row: ToolCall, parts: list[SearchTerm]) -> SearchHit:
    given = " ".join(_values(row.arguments))[:MOST_GIVEN]
    name = row.tool_name or row.function_name
    named = " ".join(dict.fromkeys(filter(None, (row.server_name, name, row.tool_title))))
    return SearchHit(
        found_in=FoundIn.CALL,
        conversation=row.message.conversation,
        name=show_hidden(f"{row.server_name}.{name}" if row.server_name else name),
        excerpt=_excerpt(_best([given, row.model_text[:MOST_RESULT], named], parts), parts),
        at=row.message.created_at,
        message_id=row.message_id,
    )


def _hit_in_file(row: Attachment, parts: list[SearchTerm]) -> SearchHit:
    named = row.title if row.server_id is None else f"{row.title} {row.server_name} {row.uri}"
    return SearchHit(
        found_in=FoundIn.FILE,
        conversation=row.message.conversation,
        name=show_hidden(row.title or row.uri),
        excerpt=_excerpt(_best([row.model_text[:MOST_OF_FILE], named], parts), parts),
        at=row.message.created_at,
        message_id=row.message_id,
    )


def _values(given: Any) -> Iterator[str]:
    """Words and numbers of a call's arguments, wherever they stand in them."""
    if isinstance(given, Mapping):
        given = list(given.values())
    if isinstance(given, list):
        for one in given:
            yield from _values(one)
    elif isinstance(given, str | int | float) and not isinstance(given, bool):
        yield str(given)


def _best(texts: list[str], parts: list[SearchTerm]) -> str:
    """What stands around the first match in the text that holds most of what was looked for, the first of several."""
    patterns = [_pattern([part]) for part in parts]
    text = max(texts, key=lambda text: sum(bool(one.search(text)) for one in patterns))
    first = _pattern(parts).search(text)
    at = first.start() if first else 0
    return text[max(0, at - _ENOUGH_AROUND) : at + 2 * _ENOUGH_AROUND]


def _wanted_texts(
    workspace: Workspace,
    person: User,
    parts: list[SearchTerm],
    filters: Filters,
    marked: Mapping[UUID, UUID] | None,
) -> WordSearch:
    return WordSearch(
        workspace_id=workspace.pk,
        owner_id=person.pk,
        parts=parts,
        span=SearchPeriod(filters.after, filters.before),
        has_imports=_has_imports(workspace, person),
        chats=_chats(workspace, person, filters),
        marked=None if marked is None else list(marked),
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


def _excerpt(text: str, parts: list[SearchTerm]) -> tuple[tuple[str, bool], ...]:
    """The text around the first match, cut into pieces; without marks of Markdown, where they were not looked for."""
    pattern = _pattern(parts)
    shown_text = show_hidden(text)
    flat = " ".join(_MARKS.sub(r"\1\2\3", shown_text).split())
    first = pattern.search(flat)
    if first is None:
        flat = " ".join(shown_text.split())
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


def _beyond_title(
    excerpt: tuple[tuple[str, bool], ...], title: str
) -> tuple[tuple[str, bool], ...]:
    """The excerpt, or nothing where the title above it says the same; a title is often a chat's first question."""
    words = re.findall(r"\w+", "".join(text for text, _is_match in excerpt).casefold())
    return () if words and words == re.findall(r"\w+", title.casefold()) else excerpt


def _pattern(parts: list[SearchTerm]) -> re.Pattern[str]:
    """Finds any of the parts; without parts nothing."""
    wanted = "|".join(r"\s+".join(map(re.escape, part.text.split())) for part in parts)
    return re.compile(wanted or r"(?!)", re.I)
