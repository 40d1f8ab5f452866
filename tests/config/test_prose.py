"""The documents: lines that wrap, and sentences that are read once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest

from config.env import ROOT

#: Written by programs.
NOT_PROSE: Final = {"configuration.md", "protocol.md", "security.md"}
DOCUMENTS: Final = sorted(
    path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")) if path.name not in NOT_PROSE
)
LONGEST_LINE: Final = 110
MOST_WORDS: Final = 30

FENCE: Final = re.compile(r"\s*```")
#: Begins a piece of its own: a list's item, a heading, a picture, a row of a table.
BEGINS: Final = re.compile(r"\s*([-*]|\d+\.)\s|#|!\[|<!--|\|")
TABLE: Final = re.compile(r"\s*\|")
LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
CODE: Final = re.compile(r"`[^`]*`")
END: Final = re.compile(r"""(?<=[.!?])["”)*]*\s+""")
WORD: Final = re.compile(r"[^\s]*\w[^\s]*")


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Give paragraphs and items of lists, each as one line with its number; no code and no tables."""
    start, piece, is_code = 0, "", False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_fence = bool(FENCE.match(line))
        if is_fence or is_code or not line.strip() or BEGINS.match(line):
            if piece:
                yield start, piece
            piece = ""
        is_code ^= is_fence
        if is_fence or is_code or not line.strip() or TABLE.match(line):
            continue
        start = start if piece else number
        piece = f"{piece} {line.strip()}".strip()


def faults(text: str) -> list[tuple[int, str]]:
    """Find lines that do not wrap and sentences that are too long; each with its line."""
    found: list[tuple[int, str]] = []
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        is_code ^= bool(FENCE.match(line))
        shown = LINK.sub(r"\1", line)
        if not is_code and not TABLE.match(line) and len(shown) > LONGEST_LINE:
            found.append((number, f"{len(shown)} characters in a line"))
    for number, piece in pieces(text):
        for sentence in END.split(LINK.sub(r"\1", CODE.sub("X", piece))):
            words = len(WORD.findall(sentence))
            if words > MOST_WORDS:
                found.append((number, f"{words} words: {sentence[:80]}"))
    return found


def test_documents_are_read_once() -> None:
    """Ours: lines wrap, and no sentence has more than thirty words."""
    assert len(DOCUMENTS) > 15
    found = [
        f"{path.relative_to(ROOT)}:{line} {fault}"
        for path in DOCUMENTS
        for line, fault in faults(path.read_text())
    ]
    assert not found, "\n".join(found)


def test_promises_are_read_once() -> None:
    """Ours: the table of promises is made from these lines."""
    lines = (ROOT / "docs" / "promises.txt").read_text().splitlines()
    found = [
        f"{line.partition(':')[0]} {fault}"
        for line in lines
        for _, fault in faults(line.partition(": ")[2])
        if "words" in fault
    ]
    assert len(lines) > 400
    assert not found, "\n".join(found)


def test_documents_call_nobody_he() -> None:
    """Ours: people are they, and the reader is you."""
    found = [
        f"{path.relative_to(ROOT)}:{number} {line}"
        for path in (*DOCUMENTS, *(ROOT / "docs" / name for name in NOT_PROSE))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\b(he|him|his|she|her)\b", line, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("word\n" * 30 + "end.", 1),
        ("word\n" * 15 + "end. " + "word\n" * 15 + "end.", 0),
        ("\n".join(["word " * 10] * 3) + "end.", 1),
        ("- " + "word\n" * 20 + "- " + "word\n" * 20, 0),
        ("```\n" + "word " * 40 + "\n```", 0),
        ("| " + "word " * 40 + "|", 0),
        ("x" * 111, 1),
        (f"[link](https://example.org/{'x' * 111})", 0),
    ],
)
def test_the_check_of_prose_sees(text: str, count: int) -> None:
    """Ours: it finds long lines and long sentences, and those alone."""
    assert len(faults(text)) == count
