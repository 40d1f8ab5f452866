"""Giving content away: as a download, or to be looked at in a frame that can do nothing.

Every answer says what it is and that nobody shall guess, is meant for our own pages alone, and has a policy of its own
under which nothing runs and nothing is fetched. Whoever calls has asked whose file it is, each time.

Source: RFC 9110, sections 13 (conditional requests) and 14 (ranges); HTML, "sandboxing"; CSP level 3.
"""

from __future__ import annotations

import asyncio
import base64
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from django.core.files.base import File
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from chat.artifacts import storage
from chat.files.kinds import FileKind, as_text, charset_of, is_text, kind_of
from chat.files.names import download_name
from workspaces.database import in_database
from workspaces.errors import NotFound
from workspaces.pictures import UnshowablePicture, clean_picture

if TYPE_CHECKING:
    from django.http import HttpRequest

    from chat.models import Artifact, ArtifactVersion, KnowledgeFile

_Response = TypeVar("_Response", bound=HttpResponseBase)
_PIECE: Final = 256 * 1024
CHECK_SECONDS: Final = 3.0
"""How often it is asked whether somebody may still have a long file."""
_RANGE = re.compile(r"bytes=(\d{0,19})-(\d{0,19})", re.I | re.A)
_FRAMES = re.compile(rb"(</?(?:[\w.-]+:)?)(iframe|frameset|frame|portal|fencedframe)\b", re.I)

_DOCTYPE = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*(?:<!doctype[^>]*>)?", re.I)
_COLOURS = re.compile(rb"color|background|<link\b|<body[^<>]*\s(?:text|bgcolor)\b|filter\s*:", re.I)
_THEMES = {
    theme: (
        f'<meta name="color-scheme" content="{theme}">'
        "<style>:where(body){margin:1.25rem;font:1rem/1.6 system-ui,sans-serif}</style>"
    ).encode()
    for theme in ("light", "dark")
}

DOWNLOAD_POLICY = (
    "sandbox; default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PREVIEW_POLICY = (
    "default-src 'none'; {scripts}style-src 'unsafe-inline'; img-src data:; font-src data:; media-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
FRAME_POLICY = "sandbox allow-scripts; " + _PREVIEW_POLICY.format(
    scripts="script-src 'unsafe-inline'; "
)
PAGE_POLICY = "sandbox; " + _PREVIEW_POLICY.format(scripts="")
"""For drawings, and for a page that is opened by itself: not even their own scripts run."""


class _Part(NamedTuple):
    start: int
    length: int
    is_asked_for: bool
    """Somebody wants just this of it, also where it is all."""


def download(
    request: HttpRequest,
    artifact: Artifact | KnowledgeFile,
    version: ArtifactVersion | KnowledgeFile,
) -> HttpResponse:
    """The content as it was saved, whole or in part, to be saved.

    Raises:
        ContentMissing: the storage does not have it.
    """
    etag, size = f'"{version.sha256}"', version.size
    part = _wanted(request, etag, size)
    if isinstance(part, HttpResponse):
        return _with_headers(part, etag, DOWNLOAD_POLICY)
    is_head, kind = request.method == "HEAD", version.content_type
    content = b"" if is_head else storage.read(version.path, part.start, part.length)
    is_whole = part.length == size
    response = HttpResponse(
        content, content_type=_with_charset(kind, content) if is_whole else kind
    )
    _say_part(response, part, size)
    name = download_name(artifact.name, kind)
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return _with_headers(response, etag, DOWNLOAD_POLICY)


def give_large(
    request: HttpRequest,
    *,
    path: str,
    size: int,
    sha256: str,
    content_type: str,
    name: str,
    record: Callable[[int, int], None],
    check: Callable[[], object],
) -> HttpResponseBase:
    """A file of any size, whole or from where a download stopped, to be saved. It is read while it is sent, and kept by nobody on the way.

    Args:
        record: told the first byte and how many are given, before any is. Where the content is missing, nothing is given.
        check: asked now and then while it is sent; raises once the reader may have no more of it.

    Raises:
        ContentMissing: the storage does not have it.
    """
    etag = f'"{sha256}"'
    part = _wanted(request, etag, size)
    if isinstance(part, HttpResponse):
        return _for_one_person(part, etag)
    response: HttpResponseBase
    if request.method == "HEAD":
        response = HttpResponse(content_type=content_type)
    else:
        file = storage.open_content(path)
        try:
            record(part.start, part.length)
        except BaseException:
            file.close()
            raise
        # A synchronous iterator under an asynchronous server would be read whole before the first byte.
        pieces = _pieces(file, part)
        given = (
            _checked_by_and_by(file, pieces, check)
            if isinstance(request, ASGIRequest)
            else _checked(pieces, check)
        )
        response = StreamingHttpResponse(given, content_type=content_type)
    _say_part(response, part, size)
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return _for_one_person(response, etag)


def _for_one_person(response: HttpResponseBase, etag: str) -> HttpResponseBase:
    _with_headers(response, etag, DOWNLOAD_POLICY)
    response["Cache-Control"] = "private, no-store"
    return response


def _pieces(file: File[bytes], part: _Part) -> Iterator[bytes]:
    with file:
        file.seek(part.start)
        left = part.length
        while left and (piece := file.read(min(left, _PIECE))):
            left -= len(piece)
            yield piece


def _checked(pieces: Iterator[bytes], check: Callable[[], object]) -> Iterator[bytes]:
    asked = time.monotonic()
    for piece in pieces:
        if time.monotonic() - asked >= CHECK_SECONDS:
            check()
            asked = time.monotonic()
        yield piece


async def _checked_by_and_by(
    file: File[bytes], pieces: Iterator[bytes], check: Callable[[], object]
) -> AsyncIterator[bytes]:
    asked = time.monotonic()
    try:
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            if time.monotonic() - asked >= CHECK_SECONDS:
                await in_database(check)
                asked = time.monotonic()
            yield piece
    finally:
        file.close()


def preview(request: HttpRequest, artifact: Artifact, version: ArtifactVersion) -> HttpResponse:
    """An HTML page or a drawing for a sandboxed frame; a picture, drawn anew.

    Raises:
        NotFound: nothing that is looked at this way.
        ContentMissing: the storage does not have it.
    """
    kind = kind_of(version.content_type, artifact.name)
    if kind is FileKind.IMAGE:
        return _picture(request, version)
    if kind not in (FileKind.HTML, FileKind.SVG):
        raise NotFound
    # A browser opens a connection for a frame before it finds that the policy has none.
    text = as_text(storage.read(version.path)) or ""
    content = _FRAMES.sub(rb"\1x-\2", text.encode())
    theme = request.GET.get("theme", "") if kind is FileKind.HTML else ""
    content = _themed(content, theme)
    response = HttpResponse(content, content_type=f"{version.content_type}; charset=utf-8")
    is_alone = request.headers.get("Sec-Fetch-Dest") == "document"
    is_still = is_alone or kind is FileKind.SVG
    _with_headers(response, f'"{version.sha256}-shown"', PAGE_POLICY if is_still else FRAME_POLICY)
    response["X-Frame-Options"] = "SAMEORIGIN"
    response["X-DNS-Prefetch-Control"] = "off"
    response["Vary"] = "Sec-Fetch-Dest, Cookie"
    return response


def _with_charset(kind: str, content: bytes) -> str:
    return f"{kind}; charset={charset_of(content) or 'utf-8'}" if is_text(kind) else kind


def _themed(content: bytes, theme: str) -> bytes:
    """A page that chooses no colours of its own follows the reader's theme, and keeps off the frame's edge."""
    style = _THEMES.get(theme)
    if style is None or _COLOURS.search(content):
        return content
    head = _DOCTYPE.match(content)
    at = head.end() if head else 0
    return content[:at] + style + content[at:]


def reading(version: ArtifactVersion, text: str) -> HttpResponse:
    """The text that was read in a version."""
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    return _with_headers(response, f'"{version.sha256}-read"', DOWNLOAD_POLICY)


def _picture(request: HttpRequest, version: ArtifactVersion) -> HttpResponse:
    etag = f'"{version.sha256}-drawn"'
    early = get_conditional_response(request, etag=etag)
    if early is not None:
        return _with_headers(early, etag, DOWNLOAD_POLICY)
    try:
        picture = clean_picture(base64.b64encode(storage.read(version.path)).decode())
    except UnshowablePicture as error:
        raise NotFound(_("This picture cannot be shown.")) from error
    response = HttpResponse(base64.b64decode(picture.data), content_type=picture.mime_type)
    return _with_headers(response, etag, DOWNLOAD_POLICY)


def _with_headers(response: _Response, etag: str, policy: str) -> _Response:
    response["Content-Security-Policy"] = policy
    response["X-Content-Type-Options"] = "nosniff"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["ETag"] = etag
    # May be kept, and is asked for again each time: whose it is is decided anew.
    response["Cache-Control"] = "private, no-cache"
    return response


def _wanted(request: HttpRequest, etag: str, size: int) -> _Part | HttpResponse:
    """What of a file to give; or the answer, if it is known already, is not the one that is meant, or has no such part."""
    early = get_conditional_response(request, etag=etag)
    if early is not None:
        return early
    part = _part_of(request, etag, size)
    if part is None:
        return _Part(0, size, is_asked_for=False)
    if part.length <= 0:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    return part


def _say_part(response: HttpResponseBase, part: _Part, size: int) -> None:
    response["Accept-Ranges"] = "bytes"
    response["Content-Length"] = str(part.length)
    if part.is_asked_for:
        response.status_code = 206
        response["Content-Range"] = f"bytes {part.start}-{part.start + part.length - 1}/{size}"


def _part_of(request: HttpRequest, etag: str, size: int) -> _Part | None:
    """The one range that is asked for; None for the whole, and for what is not understood."""
    match = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if match is None or request.method != "GET":
        return None
    if (condition := request.headers.get("If-Range")) and condition.strip() != etag:
        return None
    first, last = match.groups()
    if not first and not last:
        return None
    if not first:
        length = min(int(last), size)
        return _Part(size - length, length, is_asked_for=True)
    start = int(first)
    end = min(int(last), size - 1) if last else size - 1
    if last and int(last) < start:
        return None
    return _Part(start, end - start + 1, is_asked_for=True)
