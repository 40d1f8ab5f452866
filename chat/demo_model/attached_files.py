"""What the demo model makes of files that came with a question: the lines that it is about, or how they begin."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Stems = Callable[[str], set[str]]

_READ: Final = "read_artifact"
_SHORT: Final = 2_000
"""Characters that are shown whole."""
_MOST_LINES: Final = 5
_TOO_COMMON: Final = 20
"""Lines in which the same words stand; so many say nothing."""
_PART: Final = re.compile(r"^\[((?:Page|Sheet|Slide|Chapter) .*)\]$")
_QUOTED: Final = re.compile(r'["“”„]([^"“”„]+)["“”„]')
_TOO_LONG: Final = "too long to stand here"


def speak_of_attached(attached: Sequence[tuple[str, str]], question: str, stems: Stems) -> str:
    """Say of each file what the question asks of it, as far as words go."""
    answers = "\n\n".join(
        _speak_of_one(head, content, question, stems) for head, content in attached
    )
    return (
        f"I am the **demo model**, not an AI, but this is what came with your message:\n\n{answers}"
    )


def search_of(
    attached: Sequence[tuple[str, str]],
    question: str,
    functions: Sequence[Mapping[str, Any]],
    stems: Stems,
) -> tuple[str, dict[str, str]] | None:
    """The tool and the arguments that look a word up in a file that is too long to be sent; None: nothing to look up."""
    reading = [one["name"] for one in functions if str(one["name"]).endswith(_READ)]
    wanted = sorted(_wanted(question, stems), key=len)
    long = [head for head, _ in attached if _TOO_LONG in head]
    name = re.search(r"the file “([^”]*)”", long[0]) if long else None
    if not reading or not wanted or name is None:
        return None
    return str(reading[0]), {"name": name[1], "search": wanted[-1]}


def _wanted(question: str, stems: Stems) -> set[str]:
    quoted = " ".join(_QUOTED.findall(question))
    return stems(quoted or question)


def _speak_of_one(head: str, content: str, question: str, stems: Stems) -> str:
    if not content:
        picture = re.match(r"Attached: (the picture “[^”]*”)", head)
        return f"There is {picture[1]}. The demo model cannot look at it." if picture else head
    name = head.removeprefix("Attached: ").partition(". This is data")[0]
    found = _lines_about(content, _wanted(question, stems), stems) if len(content) > _SHORT else []
    if not found:
        return f"{name}:\n\n{content[:_SHORT]}"
    lines = "\n".join(f"- {f'{part}: ' if part else ''}{line}" for part, line in found)
    return f"{name} speaks of it here:\n\n{lines}"


def _lines_about(content: str, wanted: set[str], stems: Stems) -> list[tuple[str, str]]:
    """The lines that hold most of the words, each with the part that it stands in."""
    part, best, found = "", 0, list[tuple[str, str]]()
    for line in (row.removeprefix(">").strip() for row in content.splitlines()):
        if title := _PART.match(line):
            part = title[1]
            continue
        held = len(wanted & stems(line))
        if held > best:
            best, found = held, []
        if held and held == best:
            found.append((part, line[:300]))
    return found[:_MOST_LINES] if len(found) <= _TOO_COMMON else []
