"""Asks a child process for a document's text. Two documents are read at once; the others wait."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from django.utils.translation import gettext_noop as _

from chat.documents.child import READERS
from workspaces.errors import DomainError

logger = logging.getLogger(__name__)

HTML: Final = "text/html"
SECONDS: Final = 90.0
"""For one document. The child gives what it has read after 40 seconds of work."""
_CHILD: Final = Path(__file__).with_name("child.py")
_MOST_WAITING_SECONDS: Final = 300.0
_AT_ONCE: Final = 2
_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class UnreadableFile(DomainError):
    """A file that has no text for a model, with the reason in words for people."""

    code = "unreadable_file"
    status = 422
    default_message = _("This file cannot be read.")


class NotReadNow(DomainError):
    """A file that could not be read this time; another time it may be."""

    code = "file_not_read"
    status = 503
    default_message = _("Reading this file took too long. Try again in a moment.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """A document's text, and where its parts begin."""

    text: str
    outline: tuple[tuple[str, int], ...] = ()
    """Title and first line, counted from 1, of pages, sheets, slides, chapters or headings."""
    is_cut: bool = False
    """The document holds more."""


def is_document(content_type: str) -> bool:
    """Whether text can be got out of files of this type."""
    return content_type in READERS


async def extract(content: bytes, content_type: str) -> Extracted:
    """The text of a document. Takes up to 90 seconds, after those that came before.

    Raises:
        UnreadableFile: it has none, is damaged or protected, or takes too much work or memory.
        NotReadNow: too many others are being read, or the machine is too busy.
    """
    try:
        async with asyncio.timeout(_MOST_WAITING_SECONDS):
            await _room().acquire()
    except TimeoutError as error:
        raise NotReadNow(_("Many files are being read now. Try again in a moment.")) from error
    try:
        output = await _run_child(content, content_type)
    finally:
        _room().release()
    return _answer(output, content_type)


async def extract_page(source: str) -> Extracted:
    """What is to be read on a page, as Markdown. Its source, if nothing is, or if it cannot be told.

    Raises:
        NotReadNow: as extract().
    """
    try:
        page = await extract(source.encode(), HTML)
    except UnreadableFile:
        return Extracted(text=source)
    return page if page.text.strip() else Extracted(text=source)


async def _run_child(content: bytes, content_type: str) -> bytes:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(_CHILD), content_type),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # It may quote the document.
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        cwd="/",
    )
    try:
        async with asyncio.timeout(SECONDS):
            output, _ = await child.communicate(content)
    except TimeoutError as error:
        raise NotReadNow from error
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return output


def _room() -> asyncio.Semaphore:
    """Of the running loop: a semaphore serves one loop alone."""
    loop = asyncio.get_running_loop()
    return _rooms.setdefault(loop, asyncio.Semaphore(_AT_ONCE))


def _answer(output: bytes, content_type: str) -> Extracted:
    try:
        answer = json.loads(output)
    except ValueError as error:
        # Killed by a limit, most likely.
        logger.warning("document_child_died", extra={"type": content_type})
        raise UnreadableFile(_("Reading this file takes too much time or memory.")) from error
    if "error" in answer:
        logger.info("document_unreadable", extra={"type": content_type, "kind": answer.get("kind")})
        raise UnreadableFile(answer["error"])
    return Extracted(
        text=answer["text"],
        outline=tuple((title, line) for title, line in answer["outline"]),
        is_cut=answer["is_cut"],
    )
