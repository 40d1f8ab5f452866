"""Names of files: safe in headers, on any disk and on screen. Pure.

Source: Microsoft, "Naming Files, Paths, and Namespaces" (characters and names that Windows reserves).
"""

from __future__ import annotations

import re
import unicodedata

from mcp_servers.client.hidden_text import strip_hidden

MOST_BYTES = 180
MOST_CHARACTERS = 120
_UNNAMED = "file"
_SEPARATORS = re.compile(r"[/\\]")
_FORBIDDEN = re.compile(r'[<>:"|?*\x00-\x1f\x7f-\x9f\ufffd\ud800-\udfff]')
_BLANKS = re.compile(r"\s+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\.|$)", re.I)
# A browser that opens a saved file goes by its name.
_ACTIVE = frozenset(
    "htm html xhtml xht shtml mht mhtml svg svgz xml xsl js mjs hta swf jar exe bat cmd com scr ps1 vbs lnk url".split()  # noqa: SIM905
)
_OWN_ENDINGS = {
    "image/png": ("png",),
    "image/jpeg": ("jpg", "jpeg", "jpe", "jfif"),
    "image/gif": ("gif",),
    "image/webp": ("webp",),
    "application/pdf": ("pdf",),
}


def clean_name(raw: str) -> str:
    """A file name that is only a name: no path, nothing hidden, nothing reserved, not too long."""
    name = strip_hidden(unicodedata.normalize("NFC", raw[:2000].replace("\0", "")))
    name = _SEPARATORS.split(name.rstrip("/\\ "))[-1]
    name = _BLANKS.sub(" ", _FORBIDDEN.sub("_", name))
    name = name.strip().lstrip(".").rstrip(". ").strip()
    if _RESERVED.match(name):
        name = f"_{name}"
    return _shortened(name) or _UNNAMED


def numbered(name: str, number: int) -> str:
    """The same name for another file: `note.md` → `note (2).md`."""
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem:
        return _shortened(f"{_cut(name, 100).rstrip()} ({number})")
    return _shortened(f"{_cut(stem, 100).rstrip()} ({number}).{ending}")


def ending_of(name: str) -> str:
    """What follows the last dot, in small letters; empty if there is none."""
    stem, dot, ending = name.rpartition(".")
    return ending.lower() if dot and stem else ""


def download_name(name: str, content_type: str) -> str:
    """The name under which it is saved: one that says no more than what the content is."""
    ending = ending_of(name)
    own = _OWN_ENDINGS.get(content_type)
    if own is not None:
        return name if ending in own else f"{name}.{own[0]}"
    if content_type == "application/octet-stream" and ending in _ACTIVE:
        return f"{name}.bin"
    return name


def _shortened(name: str) -> str:
    if len(name) <= MOST_CHARACTERS and len(name.encode()) <= MOST_BYTES:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem or len(ending) > 16:
        stem, dot, ending = name, "", ""
    tail = f"{dot}{ending}"
    stem = stem[: MOST_CHARACTERS - len(tail)]
    return _cut(stem, MOST_BYTES - len(tail.encode())).rstrip(". ") + tail


def _cut(text: str, most_bytes: int) -> str:
    return text.encode()[:most_bytes].decode(errors="ignore")
