"""Chats of ChatGPT's data export: a tree of places (`mapping`), of which `current_node` ends the shown path. Pure."""

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

_ROLES: Final = {"user": MessageRole.USER, "assistant": MessageRole.ASSISTANT}
_SAID: Final = {"text", "multimodal_text"}
"""Kinds of content that people see. Others are searches, code that ran, thoughts, and what the person told of themselves."""


def read_chatgpt(raw: Mapping[str, Any]) -> ImportedChat:
    """Read one chat.

    Raises:
        LeftOut: it has no id, or holds nothing, or too much.
    """
    key = key_of(raw.get("conversation_id") or raw.get("id"))
    nodes: dict[str, Node] = {}
    for name, value in bounded(mapping_of(raw.get("mapping"))).items():
        place = mapping_of(value)
        parent = place.get("parent")
        nodes[name] = Node(
            parent=parent if isinstance(parent, str) else None,
            message=_message(name, mapping_of(place.get("message"))),
        )
    leaf = raw.get("current_node")
    return chat_of(
        key=key,
        title=clean(raw.get("title")),
        began_at=moment_of(raw.get("create_time")),
        nodes=nodes,
        leaf=leaf if isinstance(leaf, str) else None,
    )


def _message(key: str, raw: Mapping[str, Any]) -> ImportedMessage | None:
    role = mapping_of(raw.get("author")).get("role")
    content, metadata = mapping_of(raw.get("content")), mapping_of(raw.get("metadata"))
    if not isinstance(role, str) or role not in _ROLES:
        return None
    if content.get("content_type") not in _SAID or raw.get("recipient") not in (None, "all"):
        return None
    if metadata.get("is_visually_hidden_from_conversation") or metadata.get(
        "is_user_system_message"
    ):
        return None
    parts = list_of(content.get("parts"))
    words = "\n\n".join(text for part in parts if (text := _text(part)))
    names = [_name(one) for one in list_of(metadata.get("attachments"))]
    pictures = sum(mapping_of(part).get("content_type") == "image_asset_pointer" for part in parts)
    names += [_("picture")] * max(0, pictures - len(names))
    return message_of(
        key=key, role=_ROLES[role], words=words, files=names, at=raw.get("create_time")
    )


def _text(part: Any) -> str:
    """What a part says: a text, or what was heard of a voice."""
    if isinstance(part, str):
        return part
    heard = mapping_of(part)
    return (
        str(heard.get("text") or "") if heard.get("content_type") == "audio_transcription" else ""
    )


def _name(attachment: Any) -> str:
    return clean(mapping_of(attachment).get("name")) or _("file")
