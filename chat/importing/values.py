"""What is imported: chats with their messages as a tree, whoever wrote the file. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, TypeVar

from django.utils.translation import gettext as _

from chat.call_texts import fenced
from chat.values import MessageRole
from workspaces.words.text_values import read_moment

Places = TypeVar("Places", bound=Sized)

MOST_MESSAGES: Final = 5_000
"""Of one chat, which is stored whole or not at all."""
LONGEST_TEXT: Final = 1_000_000
"""Characters of one message."""
LONGEST_CHAT: Final = 50_000_000
"""Characters of all its messages together."""
MOST_FILES: Final = 1_000
"""Of one message, that are named in it."""
_LATEST_SECONDS: Final = 253_370_000_000
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


class LeftOut(Exception):
    """A chat that is not imported, and why in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMessage:
    """What one side said."""

    key: str
    parent: str | None
    role: MessageRole
    text: str
    at: datetime | None
    attached: tuple[tuple[str, int], ...] = ()
    """Files of the chat, by their keys, and which version of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedVersion:
    """What a file of a chat held at one time."""

    number: int
    place: str
    """The name of its content within the ZIP."""
    is_upload: bool
    """A person put it there, and no model or tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFile:
    """A file of a chat, with its versions in their order."""

    key: str
    name: str
    versions: tuple[ImportedVersion, ...]


@dataclass(frozen=True, slots=True)
class ImportedFolder:
    """Where a chat is sorted to."""

    name: str
    colour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedChat:
    """A chat with its branches."""

    key: str
    """As the other side names it: the same one again is the same chat."""
    title: str
    began_at: datetime | None
    messages: tuple[ImportedMessage, ...]
    """Each after its parent, and siblings in the order in which they were said."""
    leaf: str
    """The message that the shown path ends with."""
    folder: ImportedFolder | None = None
    is_pinned: bool = False
    is_archived: bool = False
    files: tuple[ImportedFile, ...] = ()
    files_elsewhere: int = 0
    """Versions of files that the chat had, and that are not in the ZIP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A place in the tree of a file; without a message it only leads from its parent to its children."""

    parent: str | None
    message: ImportedMessage | None


def chat_of(
    *, key: str, title: str, began_at: datetime | None, nodes: Mapping[str, Node], leaf: str | None
) -> ImportedChat:
    """Put a chat together from the places of its tree.

    Args:
        leaf: the place that the shown path ends with; None: the last message.

    Raises:
        LeftOut: nothing is said in it, or too much.
    """
    if not any(node.message for node in nodes.values()):
        raise LeftOut(_("Nothing is said in it that Trellis can show."))
    if sum(bool(n.message) for n in bounded(nodes).values()) > MOST_MESSAGES:
        raise _too_many_messages()
    messages = tuple(_in_order(nodes))
    shown = _Ways(nodes).nearest(leaf)
    return ImportedChat(
        key=key,
        title=" ".join(title.split())[:200],
        began_at=began_at or next((one.at for one in messages if one.at), None),
        messages=messages,
        leaf=shown or messages[-1].key,
    )


def bounded(places: Places) -> Places:
    """The places of a tree, of which some have no message.

    Raises:
        LeftOut: there are more than a chat can have.
    """
    if len(places) > 4 * MOST_MESSAGES:
        raise _too_many_messages()
    return places


def too_long() -> LeftOut:
    """Why a chat is not imported whose messages are too much together."""
    return LeftOut(
        _("Its messages have more than %(most)s characters together.") % {"most": LONGEST_CHAT}
    )


def _too_many_messages() -> LeftOut:
    return LeftOut(_("It has more than %(most)s messages.") % {"most": MOST_MESSAGES})


class _Ways:
    """The ways from places up to places with a message; each is walked once."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._known: dict[str, str | None] = {}

    def nearest(self, start: str | None) -> str | None:
        """The first place with a message, itself included; None: there is none, or the way is a circle."""
        walked: list[str] = []
        here = start
        found: str | None = None
        while here is not None and here in self._nodes:
            if self._nodes[here].message is not None:
                found = here
                break
            if here in self._known:
                found = self._known[here]
                break
            self._known[here] = None
            walked.append(here)
            here = self._nodes[here].parent
        self._known.update(dict.fromkeys(walked, found))
        return found


def _in_order(nodes: Mapping[str, Node]) -> Iterable[ImportedMessage]:
    children: dict[str | None, list[str]] = {}
    above: dict[str, str | None] = {}
    ways = _Ways(nodes)
    for key, node in nodes.items():
        if node.message is not None:
            above[key] = ways.nearest(node.parent)
            children.setdefault(above[key], []).append(key)
    if _is_in_order(above):
        for key, parent in above.items():
            yield _placed(nodes, key, parent)
        return
    waiting = children.get(None, [])[::-1]
    found = 0
    while waiting:
        key = waiting.pop()
        found += 1
        yield _placed(nodes, key, above[key])
        waiting += children.get(key, [])[::-1]
    if found != len(above):
        raise LeftOut(_("Its messages refer to each other in a circle."))


def _is_in_order(above: Mapping[str, str | None]) -> bool:
    """Whether each message comes after its parent already."""
    before: set[str] = set()
    for key, parent in above.items():
        if parent is not None and parent not in before:
            return False
        before.add(key)
    return True


def _placed(nodes: Mapping[str, Node], key: str, parent: str | None) -> ImportedMessage:
    message = nodes[key].message
    assert message is not None
    return replace(message, key=key, parent=parent)


def key_of(value: Any) -> str:
    """The id of a chat.

    Raises:
        LeftOut: it is none.
    """
    if not isinstance(value, str) or not value:
        raise LeftOut(_("It has no id, so Trellis could not tell it from others."))
    return value


def message_of(
    *,
    key: str,
    role: MessageRole | None,
    words: Any,
    files: Iterable[str],
    at: Any,
    attached: tuple[tuple[str, int], ...] = (),
) -> ImportedMessage | None:
    """Put a message together from what its file says; None, if no side said it or it says nothing.

    Args:
        files: names of what was attached and does not come along.
        attached: what comes along.

    Raises:
        LeftOut: it is too long, or has too many files.
    """
    names = list(islice(files, MOST_FILES + 1))
    if len(names) > MOST_FILES:
        raise LeftOut(_("A message in it has more than %(most)s files.") % {"most": MOST_FILES})
    text = with_files(clean(words), names)
    if role is None or not (text.strip() or attached):
        return None
    return ImportedMessage(
        key=key, parent=None, role=role, text=text, at=moment_of(at), attached=attached
    )


def clean(value: Any) -> str:
    """A text of the file as it can be stored; empty, if it is none.

    Raises:
        LeftOut: it is too long.
    """
    if not isinstance(value, str):
        return ""
    if len(value) > LONGEST_TEXT:
        raise LeftOut(
            _("A message in it is longer than %(most)s characters.") % {"most": LONGEST_TEXT}
        )
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)


def moment_of(value: Any) -> datetime | None:
    """A moment as seconds since 1970, or in ISO 8601; None if it is none."""
    if isinstance(value, str):
        return read_moment(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return datetime.fromtimestamp(value, UTC) if 0 < value < _LATEST_SECONDS else None


def mapping_of(value: Any) -> Mapping[str, Any]:
    """An object of the file; an empty one if it is none."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """A list of the file; an empty one if it is none."""
    return value if isinstance(value, list) else []


def with_files(text: str, names: Iterable[str]) -> str:
    """A message, and which files were beside it that are not imported."""
    notes = [_("[File that was not imported: %(name)s]") % {"name": name[:200]} for name in names]
    return "\n\n".join([*([text] if text.strip() else []), *notes])


def document_of(*, title: Any, text: Any, language: str | None) -> str:
    """What was written beside a chat, as a part of its answer. Empty, if it is no text.

    Args:
        language: of its code; None: it is Markdown.
    """
    words, name = clean(text), " ".join(clean(title).replace("*", "").split())
    if not words.strip():
        return ""
    shown = words if language is None else fenced(words, re.sub(r"[^\w+#-]", "", language))
    return f"**{name}**\n\n{shown}" if name else shown


def change_of_document() -> str:
    """What stands for a change of a part of such a document: it tells only what took another's place."""
    return _("[A change of this document was not imported.]")
