"""Chats that Trellis exported as JSON: the shown path, from its first message. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from chat.importing.values import (
    ImportedChat,
    ImportedMessage,
    Node,
    chat_of,
    clean,
    key_of,
    list_of,
    mapping_of,
    message_of,
    moment_of,
)
from chat.values import MessageRole


def read_own(raw: Mapping[str, Any]) -> ImportedChat:
    """Read one chat.

    Raises:
        LeftOut: it has no id, or holds nothing, or too much.
    """
    key = key_of(raw.get("id"))
    nodes: dict[str, Node] = {}
    above: str | None = None
    for place, value in enumerate(list_of(raw.get("messages"))):
        name = f"place {place}"
        nodes[name] = Node(parent=above, message=_message(name, mapping_of(value)))
        above = name
    return chat_of(
        key=key,
        title=clean(raw.get("title")),
        began_at=moment_of(raw.get("created_at")),
        nodes=nodes,
        leaf=above,
    )


def _message(key: str, raw: Mapping[str, Any]) -> ImportedMessage | None:
    role = next((one for one in MessageRole if one == raw.get("role")), None)
    names = [clean(name) or _("file") for name in list_of(raw.get("attachments"))]
    return message_of(
        key=key, role=role, said=raw.get("text"), files=names, at=raw.get("created_at")
    )
