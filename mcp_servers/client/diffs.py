"""What changed in a tool's definition, for a person who has to accept it: part by part, hidden characters written out.

Pure. Texts are compared word by word, schemas and hints path by path.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, Final, Literal, TypeAlias

from mcp_servers.client.hidden_text import show_hidden

Change: TypeAlias = Literal["same", "added", "removed"]

_TEXT_PARTS: Final = {"name": "Name", "title": "Title", "description": "Description"}
_TREE_PARTS: Final = {
    "inputSchema": "Arguments",
    "outputSchema": "Result",
    "annotations": "Hints",
    "_meta": "Metadata",
}
_WORDS: Final = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")
MOST_WORDS: Final = 300
"""Of the part of a text that is compared word by word; a longer one is shown as replaced."""
MOST_PAIRS: Final = 20_000
"""Of equal words, one on each side; the comparison's work grows with them, and repetitive text has many."""
_MOST_LINES: Final = 200
_LONGEST_VALUE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class WordRun:
    """A run of words, all of the same fate."""

    change: Change
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One value of a tree: added, removed, or changed."""

    path: str
    before: str = ""
    after: str = ""

    @property
    def change(self) -> Literal["added", "removed", "changed"]:
        """What happened to it."""
        if not self.before:
            return "added"
        return "changed" if self.after else "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartDiff:
    """One part of the definition that is not what it was."""

    label: str
    words: tuple[WordRun, ...] = ()
    """For texts."""
    lines: tuple[DiffLine, ...] = ()
    """For schemas, hints and metadata."""
    left_out: int = 0
    """Further lines."""


def diff_definitions(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[PartDiff, ...]:
    """The parts that differ, in the order in which people read a tool."""
    parts: list[PartDiff] = []
    for key, label in _TEXT_PARTS.items():
        old, new = _text(before.get(key)), _text(after.get(key))
        if old != new:
            parts.append(PartDiff(label=label, words=tuple(_words(old, new))))
    for key, label in _TREE_PARTS.items():
        lines = list(_lines(before.get(key) or {}, after.get(key) or {}))
        if lines:
            parts.append(
                PartDiff(
                    label=label,
                    lines=tuple(lines[:_MOST_LINES]),
                    left_out=max(len(lines) - _MOST_LINES, 0),
                )
            )
    return tuple(parts)


def _text(value: object) -> str:
    return show_hidden(value) if isinstance(value, str) else ""


def _words(old: str, new: str) -> Iterator[WordRun]:
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    head = _shared(zip(before, after, strict=False))
    tail = _shared(zip(reversed(before[head:]), reversed(after[head:]), strict=False))
    yield from _run("same", before[:head])
    yield from _compared(
        before[head : len(before) - tail],
        after[head : len(after) - tail],
    )
    yield from _run("same", before[len(before) - tail :])


def _shared(pairs: Iterable[tuple[str, str]]) -> int:
    """How many pairs are equal before the first that is not."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _compared(before: list[str], after: list[str]) -> Iterator[WordRun]:
    if not is_comparable(before, after):
        yield from _run("removed", before)
        yield from _run("added", after)
        return
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from _run("same", before[a:b])
        else:
            yield from _run("removed", before[a:b])
            yield from _run("added", after[c:d])


def is_comparable(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether these words are compared one by one: the texts are a server's, and must not keep a page waiting."""
    if max(len(before), len(after)) > MOST_WORDS:
        return False
    theirs = Counter(after)
    return sum(count * theirs[word] for word, count in Counter(before).items()) <= MOST_PAIRS


def _run(change: Change, words: Sequence[str]) -> Iterator[WordRun]:
    if words:
        yield WordRun(change=change, text="".join(words))


def _lines(old: Any, new: Any) -> Iterator[DiffLine]:
    before, after = dict(_leaves(old)), dict(_leaves(new))
    for path in dict.fromkeys([*before, *after]):
        if before.get(path) != after.get(path):
            yield DiffLine(path=path, before=before.get(path, ""), after=after.get(path, ""))


def _leaves(value: Any) -> Iterator[tuple[str, str]]:
    """Every value of a tree with its path, in the tree's order."""
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, dict) and item:
            pending.extend(
                (f"{path}.{show_hidden(str(key))}".lstrip("."), inner)
                for key, inner in reversed(item.items())
            )
        elif isinstance(item, list) and item and not _is_plain(item):
            pending.extend(
                (f"{path}[{number}]", inner) for number, inner in reversed(list(enumerate(item)))
            )
        elif path:
            yield path, _value(item)


def _is_plain(items: list[Any]) -> bool:
    """A list of plain values is shown in one line, such as the names of what is required."""
    return not any(isinstance(item, dict | list) for item in items)


def _value(item: Any) -> str:
    shown = show_hidden(json.dumps(item, ensure_ascii=False))
    return shown if len(shown) <= _LONGEST_VALUE else f"{shown[:_LONGEST_VALUE]}…"
