"""What narrows a search: ``from:clerk in:Plans has:file tool:mail.send before:2026-11-01 after:7d is:archived``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat.models import Bud, Conversation, Folder
from workspaces.database import database_now
from workspaces.errors import InvalidInput
from workspaces.models import User, Workspace
from workspaces.words.typed_filters import FilterKey, one_of, plain, read_age, read_typed

_FILTER: Final = re.compile(r'(?<!\S)([A-Za-z]{2,}):(?!//)(?:"[^"]*"|\S*)')
_QUOTED: Final = re.compile(r'"[^"]*"')
HELP: Final = {
    "from": gettext_noop("a bud, by its name"),
    "in": gettext_noop("one of your folders"),
    "has": "file",
    "tool": gettext_noop("a tool that was called, such as mail.send, or its server"),
    "before": gettext_noop("a date, such as 2026-11-01, or an age, such as 7d"),
    "after": gettext_noop("a date, such as 2026-11-01, or an age, such as 7d"),
    "is": gettext_noop("archived or pinned"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What of a person's conversations is looked through. Empty values narrow nothing."""

    bud_id: UUID | None = None
    folder_id: UUID | None = None
    has_file: bool = False
    tool: str = ""
    before: datetime | None = None
    after: datetime | None = None
    is_archived: bool = False
    is_pinned: bool = False

    def __bool__(self) -> bool:
        return self != Filters()

    @property
    def picks_chats(self) -> bool:
        """Whether only some conversations are looked through."""
        return bool(self.bud_id or self.folder_id or self.is_archived or self.is_pinned)


def read_filters(query: str, *, workspace: Workspace, person: User) -> tuple[Filters, str]:
    """Part the filters of a query from the words that are looked for. Days are those of UTC.

    Raises:
        InvalidInput: a filter is unknown, or its value is; the message says which, and what may have been meant.
    """
    terms: list[str] = []
    quoted = [match.span() for match in _QUOTED.finditer(query)]

    def take(match: re.Match[str]) -> str:
        if any(start < match.start() < end for start, end in quoted):
            return match[0]  # a phrase that holds a colon
        terms.append(match[0])
        return " "

    words = _FILTER.sub(take, query)
    if not terms:
        return Filters(), query
    buds = _named(_known_buds(workspace, person).values_list("pk", "name", "slug"))
    folders = _named(
        Folder.objects.for_workspace(workspace).filter(owner=person).values_list("pk", "name")
    )
    keys = {
        "from": FilterKey(help=HELP["from"], read=_known("bud_id", buds)),
        "in": FilterKey(help=HELP["in"], read=_known("folder_id", folders)),
        "has": FilterKey(help=HELP["has"], read=one_of("has", ["file"])),
        "tool": FilterKey(help=HELP["tool"], read=plain("tool")),
        "before": FilterKey(help=HELP["before"], read=_moment("before")),
        "after": FilterKey(help=HELP["after"], read=_moment("after")),
        "is": FilterKey(help=HELP["is"], read=one_of("is", ["archived", "pinned"])),
    }
    typed = read_typed(" ".join(terms), keys, words="words")
    if typed.errors:
        raise InvalidInput(fields={"q": list(typed.errors)})
    given = typed.values
    return (
        Filters(
            bud_id=UUID(given["bud_id"]) if "bud_id" in given else None,
            folder_id=UUID(given["folder_id"]) if "folder_id" in given else None,
            has_file="has" in given,
            tool=given.get("tool", ""),
            before=datetime.fromisoformat(given["before"]) if "before" in given else None,
            after=datetime.fromisoformat(given["after"]) if "after" in given else None,
            is_archived=given.get("is") == "archived",
            is_pinned=given.get("is") == "pinned",
        ),
        words.strip(),
    )


def _known_buds(workspace: Workspace, person: User) -> Any:
    """The buds that a person may know of: those that they see, and those that have answered in their chats."""
    chats = Conversation.objects.for_workspace(workspace).filter(owner=person)
    rows = Bud.objects.for_workspace(workspace)
    return rows.usable_by(person.pk) | rows.filter(pk__in=chats.order_by().values("bud"))


def _named(rows: object) -> dict[str, str]:
    """Names, in small letters, and whose they are."""
    found: dict[str, str] = {}
    for pk, *names in rows:  # type: ignore[attr-defined]  # rows of values
        for name in names:
            found.setdefault(str(name).lower(), str(pk))
    return found


def _known(name: str, ids: Mapping[str, str]) -> Callable[[str], Mapping[str, str] | str]:
    check = one_of(name, ids)

    def read(value: str) -> Mapping[str, str] | str:
        found = check(value.lower())
        return found if isinstance(found, str) else {name: ids[value.lower()]}

    return read


def _moment(name: str) -> Callable[[str], Mapping[str, str] | str]:
    def read(value: str) -> Mapping[str, str] | str:
        try:
            age: timedelta | None = read_age(value)
            moment = (
                database_now() - age
                if age is not None
                else datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC)
            )
        except (ValueError, OverflowError):
            return _("takes a date, such as 2026-11-01, or an age, such as 7d.")
        return {name: moment.isoformat()}

    return read
