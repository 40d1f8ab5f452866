"""JSON with comments and trailing commas, as editors keep their settings, made plain JSON. Pure."""

from __future__ import annotations

import re
from typing import Final

_STRING: Final = r'"(?:[^"\\]|\\.)*+"?'
_COMMENT: Final = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?(?:\*/|(?P<open>\Z))", re.DOTALL)
_COMMA: Final = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_VISIBLE: Final = re.compile(r"[^\r\n]")


def plain_json(text: str) -> str:
    """The text with spaces instead of comments and trailing commas, so that lines and columns stay."""
    return _COMMA.sub(_blank, _COMMENT.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    is_kept = found.startswith('"') or match.lastgroup == "open"
    return found if is_kept else _VISIBLE.sub(" ", found)
