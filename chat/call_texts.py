"""A tool call and other code as Markdown, for files that people read and for chats that come back from them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def call_in_markdown(
    *, name: str, status: str, arguments: Mapping[str, Any], result: str, left_out: str = ""
) -> str:
    """What was called, with what, and what came back.

    Args:
        name: the tool's, behind its server's and a point.
        status: how it ended; empty: nobody knows.
        left_out: a sentence on what the result does not show; empty: it shows all.
    """
    parts = [
        f"Tool call `{name}`" + (f": {status.replace('_', ' ')}" if status else ""),
        fenced(json.dumps(arguments, ensure_ascii=False, indent=2), "json"),
        *([fenced(result, "")] if result else []),
        *([left_out] if left_out else []),
    ]
    return "\n\n".join(parts)


def fenced(text: str, language: str) -> str:
    """A code block that no line of its content can end."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
