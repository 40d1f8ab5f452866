"""Chats of Claude's data export: messages in their order, in newer files with the one before each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from chat.importing.values import (
    ImportedChat,
    ImportedMessage,
    Node,
    bounded,
    change_of_document,
    chat_of,
    clean,
    document_of,
    key_of,
    list_of,
    mapping_of,
    message_of,
    moment_of,
)
from chat.values import MessageRole

_ROLES: Final = {"human": MessageRole.USER, "assistant": MessageRole.ASSISTANT}
_PASTED: Final = ("", "paste.txt")
"""How files are named that are long texts which people pasted."""
_MARKDOWN: Final = "text/markdown"
_NOT_SHOWN: Final = "```\nThis block is not supported on your current device yet.\n```"
"""What the export's plain text has in the place of a tool."""


def read_claude(raw: Mapping[str, Any]) -> ImportedChat:
    """Read one chat.

    Raises:
        LeftOut: it has no id, or holds nothing, or too much.
    """
    key = key_of(raw.get("uuid"))
    given = [mapping_of(one) for one in bounded(list_of(raw.get("chat_messages")))]
    names = [str(one.get("uuid") or f"place {place}") for place, one in enumerate(given)]
    is_tree = all(isinstance(one.get("parent_message_uuid"), str) for one in given)
    nodes: dict[str, Node] = {}
    above: str | None = None
    for name, one in zip(names, given, strict=True):
        # The first ones name a parent that no file holds.
        parent = one["parent_message_uuid"] if is_tree else above
        nodes[name] = Node(parent=parent, message=_message(name, one))
        above = name
    leaf = raw.get("current_leaf_message_uuid")
    return chat_of(
        key=key,
        title=clean(raw.get("name")),
        began_at=moment_of(raw.get("created_at")),
        nodes=nodes,
        leaf=leaf if isinstance(leaf, str) else None,
    )


def _message(key: str, raw: Mapping[str, Any]) -> ImportedMessage | None:
    role = _ROLES.get(str(raw.get("sender")))
    blocks = [mapping_of(one) for one in list_of(raw.get("content"))]
    text = "\n\n".join(filter(None, map(_text_of, blocks)))
    text = text or clean(raw.get("text")).replace(_NOT_SHOWN, "")
    files = [mapping_of(one) for one in list_of(raw.get("attachments"))]
    pasted = [clean(one.get("extracted_content")) for one in files if _is_pasted(one)]
    left = [*(one for one in files if not _is_pasted(one)), *list_of(raw.get("files"))]
    return message_of(
        key=key,
        role=role,
        words="\n\n".join(filter(None, [text, *pasted])),
        files=[clean(mapping_of(one).get("file_name")) or _("file") for one in left],
        at=raw.get("created_at"),
    )


def _is_pasted(file: Mapping[str, Any]) -> bool:
    """What the person wrote themselves, and no file of theirs: the export holds its text."""
    return file.get("file_name") in _PASTED and bool(clean(file.get("extracted_content")))


def _text_of(block: Mapping[str, Any]) -> str:
    """What people see of a block: a text, or a document that was written beside the chat."""
    if block.get("type") == "text":
        return str(block.get("text") or "")
    given = mapping_of(block.get("input"))
    tool = block.get("name") if block.get("type") == "tool_use" else None
    if tool == "create_file":
        path = clean(given.get("path"))
        name = path.rpartition("/")[2]
        language = None if name.endswith(".md") else name.rpartition(".")[2]
        return document_of(title=name, text=given.get("file_text"), language=language)
    if tool != "artifacts":
        return ""
    if given.get("command") == "update":
        return change_of_document()
    is_markdown = given.get("type") == _MARKDOWN
    return document_of(
        title=given.get("title"),
        text=given.get("content"),
        language=None if is_markdown else clean(given.get("language")),
    )
