"""Chats of ChatGPT's data export: a tree of places (`mapping`), of which `current_node` ends the shown path. Pure."""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
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

_ROLES: Final = {"user": MessageRole.USER, "assistant": MessageRole.ASSISTANT}
_SAID: Final = {"text", "multimodal_text"}
"""Kinds of content that people see. Others are searches, code that ran, thoughts, and what the person told of themselves."""
_CANVAS: Final = "canmore."
"""How tools begin that write a document beside the chat."""
_MARK: Final = re.compile(r"\ue200([^\ue200\ue201]*)\ue201|【[0-9:]+†[^【】\n]*】")
"""Where an answer names a source, as text that only ChatGPT's own page can read."""
_LONGEST_MARK: Final = 1_000
_STRAY_MARKS: Final = re.compile(r"[\ue200-\ue206]")


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
    author, content = mapping_of(raw.get("author")), mapping_of(raw.get("content"))
    metadata, recipient = mapping_of(raw.get("metadata")), raw.get("recipient")
    role, parts = _ROLES.get(str(author.get("role"))), list_of(content.get("parts"))
    if metadata.get("is_visually_hidden_from_conversation") or metadata.get(
        "is_user_system_message"
    ):
        return None
    words, names = "", [_name(one) for one in list_of(metadata.get("attachments"))]
    if author.get("role") == "tool":
        # What tools give back is for the model, apart from what they draw.
        role, names = MessageRole.ASSISTANT, [_("picture")] * sum(map(_is_drawn, parts))
    elif isinstance(recipient, str) and recipient.startswith(_CANVAS):
        words = _document(content)
    elif content.get("content_type") not in _SAID or recipient not in (None, "all"):
        return None
    else:
        words = "\n\n".join(text for part in parts if (text := _text(part)))
        pictures = sum(map(_is_picture, parts))
        names += [_("picture")] * max(0, pictures - len(names))
    if role is MessageRole.ASSISTANT:
        words = _with_sources(words, metadata)
    return message_of(key=key, role=role, words=words, files=names, at=raw.get("create_time"))


def _is_picture(part: Any) -> bool:
    return mapping_of(part).get("content_type") == "image_asset_pointer"


def _is_drawn(part: Any) -> bool:
    """A picture that the model made, and not one of a file that it looked at."""
    made = mapping_of(mapping_of(part).get("metadata"))
    return _is_picture(part) and bool(made.get("dalle") or made.get("generation"))


def _document(content: Mapping[str, Any]) -> str:
    """A document that is written beside the chat, or rewritten there as a whole."""
    try:
        given = mapping_of(json.loads(clean(content.get("text") or _first(content.get("parts")))))
    except (ValueError, RecursionError):
        return ""
    if "updates" not in given:
        kind = clean(given.get("type"))
        language = kind.removeprefix("code/") if kind.startswith("code/") else None
        return document_of(title=given.get("name"), text=given.get("content"), language=language)
    update = mapping_of(_first(given.get("updates")))
    if update.get("pattern") != ".*":
        return change_of_document()
    return document_of(title=None, text=update.get("replacement"), language="")


def _first(values: Any) -> Any:
    return next(iter(list_of(values)), None)


def _with_sources(text: str, metadata: Mapping[str, Any]) -> str:
    """The text with links where it names its sources. Each reference stands once, so few of them do not become many."""
    known: defaultdict[str, deque[str]] = defaultdict(deque)
    for one in map(mapping_of, list_of(metadata.get("content_references"))):
        known[clean(one.get("matched_text"))].append(_source(one))
    for one in map(mapping_of, list_of(metadata.get("citations"))):
        start, end = one.get("start_ix"), one.get("end_ix")
        if isinstance(start, int) and isinstance(end, int) and end - start < _LONGEST_MARK:
            known[text[start:end]].append(_link(mapping_of(one.get("metadata"))))

    def shown(mark: re.Match[str]) -> str:
        if known[mark[0]]:
            return known[mark[0]].popleft()
        return mark[0] if mark[1] is None else _entity(mark[1])

    return _STRAY_MARKS.sub("", _MARK.sub(shown, text))


def _source(reference: Mapping[str, Any]) -> str:
    """What ChatGPT shows for a reference: its own words for it, or links."""
    if words := clean(reference.get("alt")):
        return words
    pages = list_of(reference.get("items")) or [reference]
    return ", ".join(filter(None, (_link(mapping_of(page)) for page in pages)))


def _link(page: Mapping[str, Any]) -> str:
    url, title = clean(page.get("url")), clean(page.get("title"))
    if not re.fullmatch(r"https?://[^\s<>]+", url):
        return ""
    words = re.sub(r"([\\[\]])", r"\\\1", title) or url
    return f"[{words}](<{url}>)"


def _entity(mark: str) -> str:
    """The name of a thing that ChatGPT tells more of: `entity`, a kind, the name, and more."""
    try:
        kind, values = mark.split("\ue202", 1)
        return clean(json.loads(values)[1]) if kind == "entity" else ""
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


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
