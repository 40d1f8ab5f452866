"""What a file is: found in its content, never in what somebody says of it. Only among texts does the name decide.

Source: PNG, JPEG, GIF, RIFF and PDF specifications, as far as how files begin and end; ECMA-376 (Office Open XML) and
EPUB 3.3 for what their archives hold. Nothing is unpacked: only the archive's list of names is read.
"""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from enum import StrEnum
from typing import Final

from chat.files.archives import FAULTS, lists_more_than
from chat.files.charsets import WIDE_MARKS, decoded
from chat.files.names import ending_of
from workspaces.pictures import UnshowablePicture, clean_picture

BINARY: Final = "application/octet-stream"
PLAIN: Final = "text/plain"

_TEXTS: Final = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "html": "text/html",
    "htm": "text/html",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
}
_CODE: Final = frozenset(
    re.split(
        r"\s+",
        "bash bat c cc cfg clj conf cpp cs css diff dockerfile ex go gradle graphql h hpp hs ini java jl js jsx kt less"
        " lua m mjs mk pas patch php pl proto ps1 py r rb rs sass scala scss sh sol sql svelte swift tex tf toml ts tsx"
        " vb vue xml yaml yml zig zsh",
    )
)
_NOT_TEXT: Final = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_NO_BYTES_OF_TEXT: Final = re.compile(_NOT_TEXT.pattern.encode())
_PNG_END: Final = b"\x00\x00\x00\x00IEND\xaeB`\x82"
_MARKUP: Final = re.compile(rb"<(?:script|html|svg|!doctype|body|iframe)\b", re.I)
_PDF_BEGINS: Final = b"%PDF-"
_ARCHIVE_BEGINS: Final = b"PK\x03\x04"
_ZIP_END: Final = b"PK\x05\x06"
_SVG: Final = re.compile(
    # A comment ends where it first can: else each pair of comments would double the ways to read them.
    r"\s*(?:<\?xml[^>]*\?>\s*)?(?:(?><!--.*?-->)\s*)*+(?:<!doctype[^>\[]*>\s*)?(?:(?><!--.*?-->)\s*)*+<svg[\s/>]",
    re.I | re.S,
)


class FileKind(StrEnum):
    """How a file is shown."""

    TEXT = "text"
    MARKDOWN = "markdown"
    CODE = "code"
    HTML = "html"
    SVG = "svg"
    CSV = "csv"
    JSON = "json"
    IMAGE = "image"
    PDF = "pdf"
    DOCUMENT = "document"
    BINARY = "binary"


_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
_ARCHIVES: Final = {
    "word/document.xml": f"{_OFFICE}.wordprocessingml.document",
    "xl/workbook.xml": f"{_OFFICE}.spreadsheetml.sheet",
    "ppt/presentation.xml": f"{_OFFICE}.presentationml.presentation",
    "META-INF/container.xml": "application/epub+zip",
}
"""By the entry that only they have."""
_KINDS: Final = {
    **dict.fromkeys(_ARCHIVES.values(), FileKind.DOCUMENT),
    "text/markdown": FileKind.MARKDOWN,
    "text/html": FileKind.HTML,
    "image/svg+xml": FileKind.SVG,
    "text/csv": FileKind.CSV,
    "text/tab-separated-values": FileKind.CSV,
    "application/json": FileKind.JSON,
    "application/pdf": FileKind.PDF,
}
_MOST_NAMES: Final = 10_000
_PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


def find_type(content: bytes, name: str) -> str:
    """The content's type. May decode a picture, which takes up to some hundred milliseconds.

    What begins as a picture or a document and goes on as something else is `BINARY`, which is only ever downloaded.
    """
    picture = picture_type(content)
    if picture is not None:
        return picture if _is_whole_picture(content, picture) else BINARY
    if content.startswith(_PDF_BEGINS):
        return "application/pdf" if _is_whole_pdf(content) else BINARY
    if content.startswith(_ARCHIVE_BEGINS):
        return _archive_type(content)
    text = as_text(content)
    return BINARY if text is None else _text_type(text, name)


def kind_of(content_type: str, name: str) -> FileKind:
    """How a file of this type and name is shown."""
    if content_type in _PICTURES:
        return FileKind.IMAGE
    if content_type == PLAIN:
        return FileKind.CODE if ending_of(name) in _CODE else FileKind.TEXT
    return _KINDS.get(content_type, FileKind.BINARY)


def is_text(content_type: str) -> bool:
    """Whether a model or an editor can read it."""
    return kind_of(content_type, "") not in (
        FileKind.IMAGE,
        FileKind.PDF,
        FileKind.DOCUMENT,
        FileKind.BINARY,
    )


def as_text(content: bytes) -> str | None:
    """The content as text, in whichever encoding; None if it is none."""
    found = _as_text(content)
    return found[0] if found else None


def text_within(content: bytes) -> str:
    """What is text of content in UTF-8, without characters that no text holds."""
    return _NOT_TEXT.sub("", content.decode("utf-8", "replace"))


def charset_of(content: bytes) -> str | None:
    """The encoding of a text as browsers name it; None if it is no text."""
    found = _as_text(content)
    return found[1] if found else None


def _as_text(content: bytes) -> tuple[str, str] | None:
    # In UTF-16, ASCII letters have a zero.
    if _NO_BYTES_OF_TEXT.search(content) and not content.startswith(WIDE_MARKS):
        return None
    found = decoded(content)
    return found if found and not _NOT_TEXT.search(found[0]) else None


def _text_type(text: str, name: str) -> str:
    ending = ending_of(name)
    if ending == "svg":
        return "image/svg+xml" if _SVG.match(text[:10_000]) else PLAIN
    if ending == "json":
        return "application/json" if _is_json(text) else PLAIN
    return _TEXTS.get(ending, PLAIN)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def picture_type(content: bytes) -> str | None:
    """The type of a picture as which the content begins, whole or not."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    return None


def _is_whole_picture(content: bytes, content_type: str) -> bool:
    ends_well = {
        "image/png": content.endswith(_PNG_END),
        "image/jpeg": content.endswith(b"\xff\xd9"),
        "image/gif": content.endswith(b"\x3b"),
        "image/webp": int.from_bytes(content[4:8], "little") + 8 == len(content),
    }[content_type]
    if not ends_well or _ZIP_END in content[-66_000:] or _MARKUP.search(content[:4096]):
        return False
    try:
        clean_picture(base64.b64encode(content).decode())
    except UnshowablePicture:
        return False
    return True


def _archive_type(content: bytes) -> str:
    if lists_more_than(content, _MOST_NAMES):
        return BINARY
    names = _names_in(content) or ()
    found = {_ARCHIVES[name] for name in names if name in _ARCHIVES}
    return found.pop() if len(found) == 1 else BINARY


def is_broken_document(content: bytes) -> bool:
    """Whether content without a type begins as a PDF or an archive, and is cut off or damaged."""
    if content.startswith(_ARCHIVE_BEGINS):
        return not lists_more_than(content, _MOST_NAMES) and _names_in(content) is None
    return content.startswith(_PDF_BEGINS)


def _names_in(content: bytes) -> list[str] | None:
    """The names of an archive's entries; None for one that cannot be opened."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.namelist()
    except (*FAULTS, OSError):
        return None


def _is_whole_pdf(content: bytes) -> bool:
    if _ZIP_END in content[-66_000:] or _MARKUP.search(content[:1024]):
        return False
    return content[-1024:].rstrip(b"\r\n\t \0").endswith(b"%%EOF")
