"""Text out of documents: each kind, and those that are broken, protected or made to harm."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from PIL import Image

from chat.documents import extracting
from chat.documents.child import MEMORY_BYTES, MOST_CHARACTERS
from chat.documents.extracting import Extracted, NotReadNow, UnreadableFile, extract
from chat.documents.pictures import MOST_SIDE, for_model
from chat.files.kinds import BINARY, as_text, find_type, is_broken_document
from tests import documents


def read(content: bytes, name: str = "file") -> Extracted:
    """What a model would get of it."""
    return asyncio.run(extract(content, find_type(content, name)))


def test_each_page_of_a_pdf_stands_under_its_number() -> None:
    """REL-320: the outline names the line at which each page begins."""
    found = read(documents.pdf(["The first page", "The second page"]))
    assert found.text.splitlines() == ["[Page 1]", "The first page", "[Page 2]", "The second page"]
    assert found.outline == (("Page 1", 1), ("Page 2", 3))


def test_a_word_that_is_divided_at_the_end_of_a_line_is_one() -> None:
    """REL-1280: PDFium tells such a place by a control character, and letters that it does not know by others."""
    found = read(documents.pdf([r"An exam-) Tj 0 -14 Td (ple of\016ce work\013"]))
    assert found.text == "[Page 1]\nAn example ofce work\n"
    assert as_text(found.text.encode()) == found.text


def test_a_line_break_on_a_slide_is_one() -> None:
    """REL-1280: in its title, and in its text."""
    slide = read(documents.slides("Our\vplan", "What we do\vand when"))
    assert slide.text == "[Slide 1: Our plan]\nOur\nplan\nWhat we do\nand when\n"
    assert as_text(slide.text.encode()) == slide.text


def test_headings_of_a_word_document_are_its_outline() -> None:
    """REL-320: the text is Markdown."""
    found = read(documents.docx("Plan", "We begin on Monday."))
    assert found.text.startswith("# Plan\n\nWe begin on Monday.")
    assert found.outline == (("Plan", 1),)


def test_each_sheet_of_a_workbook_is_csv() -> None:
    """REL-320: with the values that were saved; empty rows are left out."""
    found = read(documents.xlsx("Sales", [["Oslo", 3, None], [None], ["Bergen, old", 2.5]]))
    assert found.text.splitlines() == ["[Sheet Sales]", "Oslo,3", '"Bergen, old",2.5']


def test_slides_and_chapters_have_their_titles() -> None:
    """REL-320: PowerPoint and EPUB."""
    slide = read(documents.slides("Hello", "What we do"))
    assert slide.text.splitlines() == ["[Slide 1: Hello]", "Hello", "What we do"]
    chapter = read(documents.epub("One", "It was a dark night."))
    assert "It was a dark night." in chapter.text
    assert ("One", 2) in chapter.outline


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: documents.pdf([""]), "no text"),
        (lambda: b"%PDF-1.4\nnothing of a document\n%%EOF", "damaged"),
        (
            lambda: documents.archive({"word/document.xml": b"0" * 250_000_000}),
            "unpacks to more",
        ),
        (lambda: documents.archive({"xl/workbook.xml": "<broken"}), "damaged"),
    ],
    ids=["scan", "broken PDF", "zip bomb", "broken workbook"],
)
def test_what_cannot_be_read_says_why(make: Callable[[], bytes], reason: str) -> None:
    """REL-321: in words for people, and never in those of a library."""
    content = make()
    with pytest.raises(UnreadableFile, match=reason):
        read(content)


def test_a_huge_sheet_is_read_in_part() -> None:
    """REL-321: what was read until then is given, and that there is more."""
    wide = [["word " * 200] * 5 for _ in range(1_200)]
    found = read(documents.xlsx("Big", wide))
    assert found.is_cut
    assert len(found.text) <= MOST_CHARACTERS + 1


def test_the_child_can_reach_nothing() -> None:
    """REL-322: no connection, no other program, no writing, and none of the platform's secrets."""
    attack = (
        "import os, sys, runpy\n"
        f"found = runpy.run_path({str(extracting._CHILD)!r})\n"
        "found['_confine'](); sys.addaudithook(found['_forbid'])\n"
        "import socket\n"
        "def refused(work):\n"
        "    try:\n"
        "        work()\n"
        "    except PermissionError:\n"
        "        return True\n"
        "print(refused(lambda: socket.create_connection(('127.0.0.1', 9))),"
        " refused(lambda: os.system('true')), refused(lambda: open('x', 'w')), len(os.environ))\n"
    )

    async def run() -> bytes:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-c", attack, stdout=asyncio.subprocess.PIPE, env={}
        )
        out, _ = await child.communicate()
        return out

    *refused, _ = asyncio.run(run()).split()
    assert refused == [b"True"] * 3


def test_one_that_takes_too_long_is_ended() -> None:
    """REL-321: the child is gone, and another time it may work."""
    with patch.object(extracting, "SECONDS", 0.01), pytest.raises(NotReadNow):
        read(documents.pdf(["x"] * 200))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (documents.pdf_whose_pages_loop, "damaged"),
        (documents.pdf_whose_tables_loop, "no text"),
        (documents.pdf_that_draws_itself, "too much time or memory"),
        (documents.pdf_of_a_thousand_million_words, "too much time or memory"),
    ],
)
def test_a_pdf_that_loops_is_given_up(make: Callable[[], bytes], reason: str) -> None:
    """REL-1223: it says why, and the next document is read as ever."""
    with pytest.raises(UnreadableFile, match=reason):
        read(make())
    assert "The first page" in read(documents.pdf(["The first page"])).text


def test_a_document_takes_no_more_memory_than_it_may() -> None:
    """REL-1223: the process that reads it stays below its limit, and says so or is ended."""
    measured = (
        "import json, resource, subprocess, sys\n"
        f"command = [sys.executable, '-I', {str(extracting._CHILD)!r}, 'application/pdf']\n"
        "done = subprocess.run(command, input=sys.stdin.buffer.read(), capture_output=True)\n"
        "most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
        "print(json.dumps([done.returncode, most * 1024]))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", measured],
        input=documents.pdf_of_a_thousand_million_words(),
        capture_output=True,
        check=True,
    )
    code, most = json.loads(ended.stdout)
    assert code != 0
    assert most < 1.2 * MEMORY_BYTES


def test_work_that_adds_no_text_is_interrupted_too() -> None:
    """REL-715: what was read before is given; where that is nothing, the reason says that it took too long."""
    hurried = (
        "import json, runpy, sys\n"
        f"found = runpy.run_path({str(extracting._CHILD)!r})\n"
        "found['main'].__globals__['_MOST_SECONDS'] = 0.5\n"
        "import openpyxl\n"
        "def read_for_ever(content, text):\n"
        "    while True: pass\n"
        "found['READERS']['endless'] = (read_for_ever, ())\n"
        "found['_stop_in_time']()\n"
        "print(json.dumps(found['main'](sys.argv[1])))\n"
    )
    content = documents.xlsx_with_a_gap()

    def read_as(kind: str) -> Any:
        command = [sys.executable, "-I", "-c", hurried, kind]
        child = subprocess.run(command, input=content, capture_output=True, check=True)
        return json.loads(child.stdout)

    made = read_as(find_type(content, ""))
    assert made["is_cut"]
    assert made["text"].splitlines() == ["[Sheet Gap]", "11"]
    assert read_as("endless") == {"error": "Reading it takes too much time."}


def test_archives_that_are_no_document_are_not_read() -> None:
    """SEC-78: the type comes from the archive's names; a mixture is only bytes."""
    both = {"word/document.xml": "x", "xl/workbook.xml": "x"}
    assert find_type(documents.archive(both), "a.docx") == BINARY
    assert find_type(documents.archive({"readme.txt": "x"}), "a.docx") == BINARY
    assert find_type(b"PK\x03\x04 and then nothing", "a.xlsx") == BINARY


def test_an_archive_that_lists_very_many_files_is_not_opened() -> None:
    """SEC-620: whoever sends it would keep the server busy for seconds, and fill its memory."""
    entry = b"PK\x01\x02" + bytes(24) + (1).to_bytes(2, "little") + bytes(16) + b"a"
    listed = entry * 50_000
    length = len(listed).to_bytes(4, "little")
    begin = b"PK\x03\x04" + bytes(26)
    start = len(begin).to_bytes(4, "little")
    content = begin + listed + b"PK\x05\x06" + bytes(8) + length + start + bytes(2)
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        assert len(opened.namelist()) == 50_000
    tracemalloc.start()
    try:
        assert find_type(content, "a.docx") == BINARY
        assert not is_broken_document(content)
        assert tracemalloc.get_traced_memory()[1] < len(content)
    finally:
        tracemalloc.stop()


def test_pictures_are_made_small_and_flat() -> None:
    """SEC-73: encoded anew, as JPEG, no side longer than models look at."""
    clear = io.BytesIO()
    Image.new("RGBA", (3_000, 300), (255, 0, 0, 0)).save(clear, "PNG")
    made = for_model(clear.getvalue())
    with Image.open(io.BytesIO(made.content)) as image:
        assert (image.format, image.mode) == ("JPEG", "RGB")
        assert image.size == (made.width, made.height) == (MOST_SIDE, 157)
        assert image.getpixel((0, 0)) == (255, 255, 255)


def test_a_picture_of_too_many_points_is_never_decoded() -> None:
    """SEC-73: 50,000 × 50,000 points in a small file."""
    content = documents.png_that_claims(50_000)
    with pytest.raises(UnreadableFile, match="more than 25 million pixels"):
        for_model(content)
