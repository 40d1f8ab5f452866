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
    chat_of,
    clean,
    key_of,
    list_of,
    mapping_of,
    message_of,
    moment_of,
)
from chat.values import MessageRole

_ROLES: Final = {"human": MessageRole.USER, "assistant": MessageRole.ASSISTANT}


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
    texts = [str(one.get("text") or "") for one in blocks if one.get("type") == "text"]
    text = "\n\n".join(filter(None, texts)) or raw.get("text")
    files = [*list_of(raw.get("attachments")), *list_of(raw.get("files"))]
    names = [clean(mapping_of(one).get("file_name")) or _("file") for one in files]
    return message_of(key=key, role=role, words=text, files=names, at=raw.get("created_at"))
