"""Chats as ChatGPT's and Claude's data exports hold them."""

from __future__ import annotations

from typing import Any


def node(role: str, text: str, parent: str | None, *, at: float, **more: Any) -> dict[str, Any]:
    """A place of ChatGPT's tree."""
    content = {"content_type": "text", "parts": [text]}
    message = {"author": {"role": role}, "content": content, "create_time": at, **more}
    return {"parent": parent, "message": message}


def chatgpt(key: str = "gpt-1", title: str = "Radish planning") -> dict[str, Any]:
    """A chat with a hidden beginning, a question that was asked in two ways, a search, and a picture."""
    picture = [{"content_type": "image_asset_pointer"}, "See this"]
    mapping = {
        "root": {"parent": None, "message": None},
        "system": node("system", "", "root", at=0),
        "q1": node("user", "When do I sow radishes?", "system", at=1_700_000_000.5),
        "a1": node("assistant", "In \x00 April\ud800.", "q1", at=1_700_000_010),
        "q2": node("user", "When do I sow turnips?", "system", at=1_700_000_100),
        "tool": node("assistant", "search(turnips)", "q2", at=1_700_000_105, recipient="browser"),
        "found": node("tool", "turnip.example", "tool", at=1_700_000_106),
        "a2": node("assistant", "In July.", "found", at=1_700_000_110),
        "q3": {
            "parent": "a2",
            "message": {
                "author": {"role": "user"},
                "content": {"content_type": "multimodal_text", "parts": picture},
                "metadata": {"attachments": [{"name": "turnip.png"}]},
                "create_time": 1_700_000_200,
            },
        },
    }
    return {
        "conversation_id": key,
        "title": title,
        "create_time": 1_700_000_000,
        "mapping": mapping,
        "current_node": "a1",
    }


def claude(key: str = "claude-1") -> dict[str, Any]:
    """A chat in Claude's older form, without a tree."""
    messages = [
        {
            "uuid": "m1",
            "sender": "human",
            "text": "old text",
            "content": [{"type": "text", "text": "Which compost?"}],
            "created_at": "2025-03-01T10:00:00.000000Z",
            "attachments": [{"file_name": "soil.pdf"}],
        },
        {
            "uuid": "m2",
            "sender": "assistant",
            "text": "Leaves.",
            "created_at": "2025-03-01T10:00:05Z",
        },
    ]
    return {
        "uuid": key,
        "name": "Compost",
        "created_at": "2025-03-01T09:59:00Z",
        "chat_messages": messages,
    }
