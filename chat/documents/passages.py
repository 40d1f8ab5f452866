"""A text cut into passages that are found and cited by themselves. Pure."""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

MOST_CHARACTERS: Final = 1_200
"""Of one passage: about 350 tokens, so that several fit beside a question into a small model."""
_PAGE: Final = re.compile(r"Page (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Whole lines, or a piece of one that is very long."""

    first_line: int
    """Counted from 1."""
    last_line: int
    text: str


def cut(text: str, starts: Sequence[int] = ()) -> Iterator[Passage]:
    """Cut a text; what the passages hold, one after the other, is the text.

    Args:
        starts: lines at which a part begins, in order: no passage reaches over one.
    """
    begins = set(starts)
    held: list[str] = []
    size, first = 0, 1
    number = 0
    for number, line in enumerate(io.StringIO(text, newline="\n"), 1):
        if held and (number in begins or size + len(line) > MOST_CHARACTERS):
            yield Passage(first_line=first, last_line=number - 1, text="".join(held))
            held, size = [], 0
        if len(line) > MOST_CHARACTERS:
            for at in range(0, len(line), MOST_CHARACTERS):
                piece = line[at : at + MOST_CHARACTERS]
                yield Passage(first_line=number, last_line=number, text=piece)
            continue
        if not held:
            first = number
        held.append(line)
        size += len(line)
    if held:
        yield Passage(first_line=first, last_line=number, text="".join(held))


def place_of(first_line: int, outline: Sequence[Sequence[object]]) -> str:
    """Where a line stands, as a citation names it: its page if the text has pages, else the line."""
    at = bisect_right([int(str(line)) for _, line in outline], first_line) - 1
    page = _PAGE.fullmatch(str(outline[at][0])) if at >= 0 else None
    return f"p. {page[1]}" if page else f"line {first_line}"


def mark_of(name: str, place: str) -> str:
    """The mark that stands for a passage in answers. Its pattern is known to the web app (`markdown/marks.ts`)."""
    return f"[{name.replace('[', '(').replace(']', ')')}, {place}]"
