"""Chats that Trellis wrote as JSON. Pure.

A chat that was downloaded alone is its shown path, from its first message. In a copy of somebody's data each message
has an id and a parent, so all branches are there, and the chat names its files within the ZIP.

Tool calls come as text of their answer. They were made elsewhere, so no card and no entry of the log stands for them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from django.utils.translation import gettext as _

from chat.call_texts import call_in_markdown
from chat.importing.values import (
    LONGEST_CHAT,
    LONGEST_TEXT,
    ImportedChat,
    ImportedFile,
    ImportedFolder,
    ImportedMessage,
    ImportedVersion,
    Node,
    bounded,
    chat_of,
    clean,
    key_of,
    list_of,
    mapping_of,
    message_of,
    moment_of,
    too_long,
)
from chat.values import MessageRole

_UPLOAD: Final = "upload"
_LONGEST_NAME: Final = 256
_BETWEEN: Final = "\n\n"
_ROOM: Final = 1_000
"""Characters that stay free for what is said of what did not come."""


def read_own(raw: Mapping[str, Any], places: Container[str] = ()) -> ImportedChat:
    """Read one chat.

    Args:
        places: names of what is beside it in its ZIP.

    Raises:
        LeftOut: it has no id, or holds nothing, or too much.
    """
    key = key_of(raw.get("id"))
    files_in_json = [mapping_of(one) for one in list_of(raw.get("files"))]
    files = tuple(file for one in files_in_json if (file := _file(one, places)))
    had = sum(len(list_of(one.get("versions"))) for one in files_in_json)
    given = [mapping_of(one) for one in bounded(list_of(raw.get("messages")))]
    is_tree = bool(given) and all(_id(one.get("id")) for one in given)
    known = {(file.key, version.number) for file in files for version in file.versions}
    nodes: dict[str, Node] = {}
    above: str | None = None
    room = LONGEST_CHAT
    for place, one in enumerate(given):
        name = str(one["id"]) if is_tree else f"place {place}"
        parent = _id(one.get("parent")) if is_tree else above
        message = _message(name, one, known)
        nodes[name] = Node(parent=parent, message=message)
        above = name
        # A call of few bytes becomes a text of many: nothing is put together that is too much.
        room -= len(message.text) if message is not None else 0
        if room < 0:
            raise too_long()
    chat = chat_of(
        key=key,
        title=clean(raw.get("title")),
        began_at=moment_of(raw.get("created_at")),
        nodes=nodes,
        leaf=_id(raw.get("leaf")) if is_tree else above,
    )
    return replace(
        chat,
        folder=_folder(mapping_of(raw.get("folder"))),
        is_pinned=raw.get("is_pinned") is True,
        is_archived=raw.get("is_archived") is True,
        files=files,
        files_elsewhere=had - sum(len(file.versions) for file in files),
    )


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _folder(raw: Mapping[str, Any]) -> ImportedFolder | None:
    name = " ".join(clean(raw.get("name")).split())
    return ImportedFolder(name, clean(raw.get("colour"))) if name else None


def _file(raw: Mapping[str, Any], places: Container[str]) -> ImportedFile | None:
    """A file, as far as its versions are beside the chat."""
    key = _id(raw.get("id"))
    versions = [
        ImportedVersion(
            number=number, place=place, is_upload=mapping_of(one).get("origin") == _UPLOAD
        )
        for one in list_of(raw.get("versions"))
        if (place := _id(mapping_of(one).get("path"))) and place in places
        if (number := _number(mapping_of(one).get("number")))
    ]
    if key is None or not versions:
        return None
    once = {one.number: one for one in versions}
    return ImportedFile(
        key=key,
        name=clean(raw.get("name")) or _("file"),
        versions=tuple(once[number] for number in sorted(once)),
    )


def _number(value: Any) -> int:
    """A version's number; 0: it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _message(
    key: str, raw: Mapping[str, Any], known: Container[tuple[str, int]]
) -> ImportedMessage | None:
    role = next((one for one in MessageRole if one == raw.get("role")), None)
    names: list[str] = []
    attached: list[tuple[str, int]] = []
    for one in list_of(raw.get("attachments")):
        entry = mapping_of(one)
        version = (_id(entry.get("file")) or "", _number(entry.get("version")))
        if version in known and role is MessageRole.USER:
            attached.append(version)
        else:
            names.append(clean(entry.get("name") or one) or _("file"))
    return message_of(
        key=key,
        role=role,
        words=_with_calls(clean(raw.get("text")), list_of(raw.get("tool_calls"))),
        files=names,
        at=raw.get("created_at"),
        attached=tuple(dict.fromkeys(attached)),
    )


def _with_calls(text: str, calls: Sequence[Any]) -> str:
    """An answer with its tool calls, as many as a message has room for."""
    if not calls:
        return text
    parts = list(filter(None, [text.strip()]))
    room = LONGEST_TEXT - _ROOM - len(text)
    for place, one in enumerate(calls):
        call = _call(mapping_of(one))
        room -= len(call) + len(_BETWEEN)
        if room < 0:
            parts.append(_("[Further tool calls: %(number)s]") % {"number": len(calls) - place})
            break
        parts.append(call)
    return _BETWEEN.join(parts)


def _call(raw: Mapping[str, Any]) -> str:
    names = [_word(raw.get("server")), _word(raw.get("tool")) or _("tool")]
    hidden = _number(raw.get("result_left_out"))
    return call_in_markdown(
        name=".".join(name for name in names if name),
        status=_word(raw.get("status")),
        arguments=mapping_of(raw.get("arguments")),
        result=clean(raw.get("result")),
        left_out=_("Further characters that were not in the file: %(number)s") % {"number": hidden}
        if hidden
        else "",
    )


def _word(value: Any) -> str:
    """A name that ends no code and no line."""
    return " ".join(clean(value).replace("`", "'").split())[:_LONGEST_NAME]
