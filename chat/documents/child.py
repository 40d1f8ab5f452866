"""Turns one document into text, in a process of its own: documents come from strangers, and so may what is in them.

Started by path with `python -I`: nothing of the platform is imported. The document comes on standard input, its type is
the one argument, and one JSON object leaves on standard output: `text` and `outline`, or `error` with a reason for people.
The process limits its own memory, time and files first, and refuses connections, other programs and writing.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import json
import posixpath
import re
import resource
import signal
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

MOST_CHARACTERS = 5_000_000
MOST_UNPACKED = 200 * 1024 * 1024
MOST_ENTRIES = 10_000
MOST_OUTLINE = 500
_MOST_PAGE_BYTES = 2 * MOST_CHARACTERS
"""Of a page, or a book's chapter. Turning markup into text takes some fifty times its memory."""
MEMORY_BYTES = 1024 * 1024 * 1024
_CPU_SECONDS = 60
_MOST_SECONDS = 40
"""After so much work what has been read so far is given."""
_OPEN_FILES = 64
_NO_WORDS = ["script", "style", "noscript", "template", "svg", "iframe", "canvas"]
"""Elements of a page in which nothing is to be read."""
_NO_LETTERS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""What no text holds. PDFs give such characters where a line ends within a word, and for letters of fonts of their own."""
_LINE_BREAK = "\v"
"""How `pptx` tells a line that ends within a paragraph."""
_FORBIDDEN = re.compile(
    r"socket\.|subprocess\.|os\.(system|exec|posix_spawn|fork|remove|rename|mkdir)|ctypes\.dlopen"
)


class ExtractionFailed(Exception):
    """Why there is no text, in words for people."""


class _TimeIsUp(BaseException):
    """Of no kind that a library would catch."""


class ExtractedText:
    """What has been read so far, and where its parts begin."""

    def __init__(self) -> None:
        self.outline: list[tuple[str, int]] = []
        self.is_cut = False
        self._parts: list[str] = []
        self._size = 0
        self._lines = 1

    def add(self, text: str) -> bool:
        """Add a piece and a line end; false once there is no room for more."""
        text = _NO_LETTERS.sub("", text)[: MOST_CHARACTERS - self._size]
        self._parts.append(text + "\n")
        self._size += len(text) + 1
        self._lines += text.count("\n") + 1
        self.is_cut = self.is_cut or self._size >= MOST_CHARACTERS
        return not self.is_cut

    def begin(self, title: str) -> bool:
        """Begin a part: a page, sheet, slide or chapter."""
        self.note(title)
        return self.add(f"[{title}]")

    def note(self, title: str) -> None:
        """Put the place that comes next into the outline."""
        if len(self.outline) < MOST_OUTLINE:
            title = " ".join(_NO_LETTERS.sub("", title).split())
            self.outline.append((title[:200], self._lines))

    def __str__(self) -> str:
        return "".join(self._parts)


def read_pdf(content: bytes, text: ExtractedText) -> None:
    """Each page under its number."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        reason = (
            "It is protected by a password."
            if "password" in str(error).lower()
            else "It is damaged."
        )
        raise ExtractionFailed(reason) from error
    has_words = False
    for number in range(len(document)):
        page = document[number]
        words = page.get_textpage().get_text_bounded().replace("\r\n", "\n").strip()
        has_words = has_words or bool(words)
        page.close()
        if not (text.begin(f"Page {number + 1}") and text.add(words)):
            break
    if not has_words:
        raise ExtractionFailed("Its pages hold no text. It may be a scan.")


def read_docx(content: bytes, text: ExtractedText) -> None:
    """Headings, lists and tables as Markdown."""
    import mammoth

    _check_archive(content)
    # Pictures are left out: they would be megabytes of base64.
    drop = mammoth.images.img_element(lambda _: {"src": ""})
    html = mammoth.convert_to_html(io.BytesIO(content), convert_image=drop).value
    _add_markdown(html, text)


def read_xlsx(content: bytes, text: ExtractedText) -> None:
    """Each sheet as CSV under its name, with the values that were saved."""
    import openpyxl

    _check_archive(content)
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    for sheet in book.worksheets:
        if not text.begin(f"Sheet {sheet.title}"):
            return
        for row in sheet.iter_rows(values_only=True):
            if any(value is not None for value in row) and not text.add(_csv_line(row)):
                return


def read_pptx(content: bytes, text: ExtractedText) -> None:
    """Each slide with its tables and its notes."""
    import pptx

    _check_archive(content)
    for number, slide in enumerate(pptx.Presentation(io.BytesIO(content)).slides, start=1):
        title = slide.shapes.title.text if slide.shapes.title is not None else ""
        title = title.replace(_LINE_BREAK, " ")
        if not text.begin(f"Slide {number}: {title}" if title else f"Slide {number}"):
            return
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        words = [*_words_of(slide.shapes), f"Notes: {notes.text}" if notes and notes.text else ""]
        if not text.add("\n".join(filter(None, words)).replace(_LINE_BREAK, "\n")):
            return


def read_epub(content: bytes, text: ExtractedText) -> None:
    """The chapters in reading order. Source: EPUB 3.3, sections 4.2.6 and 5."""
    from defusedxml.ElementTree import fromstring

    book = _check_archive(content)
    container = fromstring(book.read("META-INF/container.xml"))
    root = next(one.get("full-path") for one in container.iter() if one.tag.endswith("}rootfile"))
    package = fromstring(book.read(root))
    files = {one.get("id"): one.get("href") for one in package.iter() if one.tag.endswith("}item")}
    order = [one.get("idref") for one in package.iter() if one.tag.endswith("}itemref")]
    for number, name in enumerate((files[one] for one in order if one in files), start=1):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(root), name))
        if not text.begin(f"Chapter {number}"):
            return
        with book.open(path) as chapter:
            html = chapter.read(_MOST_PAGE_BYTES)
            text.is_cut = bool(chapter.read(1))
        _add_markdown(html.decode("utf-8", "replace"), text)
        if text.is_cut:
            return


def read_html(content: bytes, text: ExtractedText) -> None:
    """A page in UTF-8 as Markdown."""
    _add_markdown(content[:_MOST_PAGE_BYTES].decode("utf-8", "replace"), text)
    text.is_cut = text.is_cut or len(content) > _MOST_PAGE_BYTES


_OFFICE = "application/vnd.openxmlformats-officedocument"
READERS: dict[str, tuple[Callable[[bytes, ExtractedText], None], tuple[str, ...]]] = {
    "application/pdf": (read_pdf, ("pypdfium2",)),
    f"{_OFFICE}.wordprocessingml.document": (read_docx, ("mammoth", "markdownify")),
    f"{_OFFICE}.spreadsheetml.sheet": (read_xlsx, ("openpyxl",)),
    f"{_OFFICE}.presentationml.presentation": (read_pptx, ("pptx",)),
    "application/epub+zip": (read_epub, ("defusedxml.ElementTree", "markdownify")),
    "text/html": (read_html, ("markdownify",)),
}
"""How each type is read, and what that needs. Libraries load before the process forbids itself to load more."""


def _check_archive(content: bytes) -> zipfile.ZipFile:
    """The archive, if it does not unpack to far more than it is."""
    archive = zipfile.ZipFile(io.BytesIO(content))
    entries = archive.infolist()
    if len(entries) > MOST_ENTRIES or sum(one.file_size for one in entries) > MOST_UNPACKED:
        raise ExtractionFailed("It unpacks to more than a document may hold.")
    return archive


def _add_markdown(html: str, text: ExtractedText) -> None:
    """HTML as Markdown, with its headings in the outline."""
    import bs4
    import markdownify

    page = bs4.BeautifulSoup(html, "html.parser")
    for one in page(_NO_WORDS):
        one.decompose()
    converter = markdownify.MarkdownConverter(heading_style="ATX", strip=["img", "a"])
    plain = converter.convert_soup(page)
    lines: list[str] = []
    for line in re.sub(r"\n{3,}", "\n\n", plain.strip()).split("\n"):
        if line.startswith("#"):
            if lines:
                text.add("\n".join(lines))
            lines = []
            text.note(line.lstrip("# "))
        lines.append(line.rstrip())
    text.add("\n".join(lines))


def _csv_line(row: Iterable[Any]) -> str:
    values = ["" if value is None else str(value) for value in row]
    while values and not values[-1]:
        values.pop()
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(values)
    return out.getvalue()


def _words_of(shapes: Iterable[Any]) -> Iterator[str]:
    for shape in shapes:
        if shape.has_text_frame:
            yield shape.text_frame.text.strip()
        elif getattr(shape, "has_table", False):
            yield "\n".join(_csv_line(cell.text for cell in row.cells) for row in shape.table.rows)
        elif hasattr(shape, "shapes"):
            yield from _words_of(shape.shapes)


def _confine() -> None:
    # Where the machine runs out of memory, this process goes first, and not the server.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    for which, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, MEMORY_BYTES),
        (resource.RLIMIT_CPU, _CPU_SECONDS),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_FSIZE, 0),
    ):
        _, hard = resource.getrlimit(which)
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (value, value))


def _stop_in_time() -> None:
    """Interrupt the work wherever it is, also where no text is added: in a million empty rows, or inside a library."""

    def interrupt(*_: object) -> None:
        raise _TimeIsUp

    signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS)


def _forbid(event: str, arguments: tuple[Any, ...]) -> None:
    if _FORBIDDEN.match(event) or (event == "open" and _writes(arguments)):
        raise PermissionError(event)


def _writes(arguments: tuple[Any, ...]) -> bool:
    mode = arguments[1] if len(arguments) > 1 else None
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")


def main(content_type: str) -> dict[str, Any]:
    """The answer for the document on standard input."""
    text = ExtractedText()
    try:
        READERS[content_type][0](sys.stdin.buffer.read(), text)
    except ExtractionFailed as error:
        return {"error": str(error)}
    except _TimeIsUp:
        if not str(text).strip():
            return {"error": "Reading it takes too much time."}
        text.is_cut = True
    except MemoryError:
        return {"error": "Reading it takes more memory than a document may use."}
    except Exception as error:  # noqa: BLE001  libraries fail at strangers' documents in hundreds of ways
        return {"error": "It is damaged, or not what its type says.", "kind": type(error).__name__}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {"text": str(text), "outline": text.outline, "is_cut": text.is_cut}


if __name__ == "__main__":
    _confine()
    _stop_in_time()
    for _needed in READERS[sys.argv[1]][1]:
        importlib.import_module(_needed)
    sys.addaudithook(_forbid)
    answer = json.dumps(main(sys.argv[1]), ensure_ascii=False)
    sys.stdout.buffer.write(answer.encode("utf-8", "replace"))
