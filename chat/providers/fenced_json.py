"""Finds commands in the text of models that cannot call functions, while it streams. Pure.

A command is a fenced block (three or more backticks or tildes, with or without the word json) that holds
`{"command": "…", "arguments": {…}}`. Commands are taken out of the text; nothing of them is ever released. Whatever
turns out to be no command is released untouched: other code, other JSON, a fence that was none. Where the text is
cut into pieces makes no difference.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from chat.providers.json_ends import JsonEnd

MOST_HELD = 1_000_000
"""Characters of one block; a longer one is text."""
_MOST_INFO = 40
_INFO = frozenset({"", "json", "jsonc", "json5", "command", "tool", "tool_call", "tool_code"})
_LOOKS_LIKE = re.compile(r'\s*\[?\s*\{\s*"command"\s*:\s*"', re.S)
_NAMES_ONE = re.compile(r'"command"\s*:\s*"((?:[^"\\]|\\.){1,200})"')


@dataclass(frozen=True, slots=True)
class FencedCommand:
    """What a block asked for; where it cannot be read, its text stands for the arguments."""

    name: str
    arguments: str


class _State(Enum):
    LINE_START = auto()
    """Outside of blocks, where one may begin."""
    TEXT = auto()
    """Outside of blocks, somewhere in a line."""
    INFO = auto()
    """After an opening fence."""
    BODY = auto()
    """Before the first character of a block that may hold a command."""
    JSON = auto()
    """Within an object or array."""
    AFTER = auto()
    """Behind one: the fence closes, or another one follows."""
    LINES = auto()
    """In a block that cannot be read as JSON, or that is to be read by its lines alone."""
    LINES_START = auto()
    OPAQUE = auto()
    """In a block of other code; it is released as it comes."""
    OPAQUE_START = auto()
    TAIL = auto()
    """The rest of a closing fence's line."""


class FencedReader:
    """Feed it the text's pieces; it gives what may be shown, and keeps the commands."""

    def __init__(self) -> None:
        self.commands: list[FencedCommand] = []
        self.blocks: list[str] = []
        """What the commands were taken out of, as the model wrote it."""
        self._state = _State.LINE_START
        self._out: list[str] = []
        self._held: list[str] = []
        self._held_length = 0
        self._line = ""
        """The beginning of a line, as long as it may be a fence."""
        self._mark = ""
        self._body_start = 0
        self._info = ""
        self._json = JsonEnd()
        self._by_lines = False

    def feed(self, text: str) -> str:
        """Take some more; returns what it releases."""
        at = 0
        while at < len(text):
            at = _STEPS[self._state](self, text, at)
        return self._released()

    def close(self) -> str:
        """The text has ended; returns what was still held and is no command."""
        while self._held or self._line:
            rest = self._end()
            if rest:
                # What could not be read to its end is read again by its lines alone: linear, and the same each time.
                self._by_lines = True
                at = 0
                while at < len(rest):
                    at = _STEPS[self._state](self, rest, at)
        return self._released()

    # Outside of blocks

    def _at_line_start(self, text: str, at: int) -> int:
        char = text[at]
        if self._may_be_fence(char):
            self._line += char
            return at + 1
        if _run(self._line) >= 3:
            self._mark = self._line.lstrip(" ")
            self._hold(self._line)
            self._line = self._info = ""
            self._state = _State.INFO
            return at
        self._release(self._line)
        self._line = ""
        self._state = _State.TEXT
        return at

    def _in_text(self, text: str, at: int) -> int:
        end = text.find("\n", at)
        if end < 0:
            self._release(text[at:])
            return len(text)
        self._release(text[at : end + 1])
        self._state = _State.LINE_START
        return end + 1

    # At the beginning of a block

    def _in_info(self, text: str, at: int) -> int:
        char = text[at]
        word = self._info.strip().lower()
        if char in "{[" and word in _INFO:
            self._begin_body()
            return at
        if char == "\n":
            self._hold(char)
            if word in _INFO:
                self._begin_body()
            else:
                self._let_go(_State.OPAQUE_START)
            return at + 1
        if char == "`" and self._mark[0] == "`":
            # Backticks within one line are code in a text.
            self._let_go(_State.TEXT)
            return at
        if len(self._info) >= _MOST_INFO:
            end = text.find("\n", at)
            if self._mark[0] == "`" and "`" in text[at : end if end >= 0 else len(text)]:
                self._let_go(_State.TEXT)
                return at
            self._hold(text[at:] if end < 0 else text[at:end])
            return len(text) if end < 0 else end
        self._info += char
        self._hold(char)
        return at + 1

    def _begin_body(self) -> None:
        self._state = _State.BODY
        self._body_start = self._held_length

    def _before_body(self, text: str, at: int) -> int:
        char = text[at]
        if char in "{[":
            self._json = JsonEnd()
            self._state = _State.LINES if self._by_lines else _State.JSON
            return at
        if char.isspace():
            self._hold(char)
            self._limit()
            return at + 1
        # No command begins like this; it may even be the closing fence.
        is_new_line = "".join(self._held[-40:]).rstrip(" ").endswith("\n")
        self._let_go(_State.OPAQUE_START if is_new_line else _State.OPAQUE)
        return at

    # Within a block that may hold commands

    def _in_json(self, text: str, at: int) -> int:
        position = self._json.feed(text, at)
        if self._json.is_over:
            self._state = _State.AFTER
        self._hold(text[at:position])
        self._limit()
        return position

    def _after_json(self, text: str, at: int) -> int:
        char = text[at]
        if char == self._mark[0]:
            self._line += char
            return at + 1
        if self._line:
            return self._after_fence(at)
        if char in "{[":
            self._state = _State.JSON
            return at
        if char.isspace() or char in ",;":
            self._hold(char)
            self._limit()
            return at + 1
        self._state = _State.LINES
        return at

    def _after_fence(self, at: int) -> int:
        """Behind marks that followed the JSON: they closed the block, or were too few."""
        if len(self._line) >= len(self._mark):
            self._decide(self._line)
        else:
            self._hold(self._line)
            self._state = _State.LINES
        self._line = ""
        return at

    def _in_lines(self, text: str, at: int) -> int:
        end = text.find("\n", at)
        self._hold(text[at:] if end < 0 else text[at : end + 1])
        if end >= 0:
            self._state = _State.LINES_START
        self._limit()
        return len(text) if end < 0 else end + 1

    def _at_lines_start(self, text: str, at: int) -> int:
        return self._closing(text, at, is_held=True)

    def _in_tail(self, text: str, at: int) -> int:
        """Nothing but blanks belongs to the closing fence's line."""
        char = text[at]
        if char in " \t\r":
            return at + 1
        self._state = _State.LINE_START if char == "\n" else _State.TEXT
        return at + 1 if char == "\n" else at

    # Within other code

    def _in_opaque(self, text: str, at: int) -> int:
        end = text.find("\n", at)
        self._release(text[at:] if end < 0 else text[at : end + 1])
        if end >= 0:
            self._state = _State.OPAQUE_START
        return len(text) if end < 0 else end + 1

    def _at_opaque_start(self, text: str, at: int) -> int:
        return self._closing(text, at, is_held=False)

    def _closing(self, text: str, at: int, *, is_held: bool) -> int:
        """The beginning of a line in a block: a closing fence, and only blanks behind it, or more of the block."""
        char = text[at]
        has_run = bool(self._line.strip())
        if self._may_be_fence(char) or (has_run and char in " \t\r"):
            self._line += char
            return at + 1
        closes = (
            char == "\n"
            and self._line.lstrip(" ")[:1] == self._mark[0]
            and _run(self._line.rstrip(" \t\r")) >= len(self._mark)
        )
        line, self._line = self._line, ""
        if not closes:
            self._state = _State.LINES if is_held else _State.OPAQUE
            self._hold(line) if is_held else self._release(line)
        elif is_held:
            self._decide(line)
        else:
            self._release(line)
            self._state = _State.TEXT
        return at

    # Decisions

    def _decide(self, fence: str) -> None:
        """A block is complete: it held commands, or it is text."""
        held = self._take_held()
        commands = read_commands(held[self._body_start :])
        if commands:
            self._keep(commands, held + fence)
            self._state = _State.TAIL
        else:
            self._release(held + fence)
            self._state = _State.TEXT

    def _end(self) -> str:
        """What becomes of what is held when the text ends; returns what has to be read again."""
        state, line = self._state, self._line
        self._line = ""
        self._state = _State.LINE_START
        if not self._held:
            self._release(line)
            return ""
        if state in (_State.LINES, _State.LINES_START, _State.AFTER):
            is_fence = bool(line.strip()) and _run(line.rstrip(" \t\r")) >= len(self._mark)
            if not is_fence:
                self._hold(line)
            self._decide(line if is_fence else "")
            self._state = _State.LINE_START
            return ""
        held = self._take_held()
        if state is not _State.JSON:
            self._release(held + line)
            return ""
        body = held[self._body_start :]
        end = self._find_fence(body)
        if end is None:
            commands = read_commands(body)
            self._keep(commands, held)
            self._release("" if commands else held)
            return ""
        start, stop = end
        commands = read_commands(body[:start])
        self._keep(commands, held[: self._body_start] + body[:stop])
        self._release("" if commands else held[: self._body_start] + body[:stop])
        rest = body[stop:]
        return rest.removeprefix("\n") if commands else self._released_line_end(rest)

    def _released_line_end(self, rest: str) -> str:
        if rest.startswith("\n"):
            self._release("\n")
            return rest[1:]
        return rest

    def _find_fence(self, body: str) -> tuple[int, int] | None:
        """Where the first line that closes the block begins and ends."""
        mark = re.escape(self._mark[0])
        closing = re.compile(rf"^ {{0,3}}{mark}{{{len(self._mark)},}}[ \t\r]*$", re.M)
        found = closing.search(body)
        return (found.start(), found.end()) if found else None

    # Small things

    def _may_be_fence(self, char: str) -> bool:
        run = self._line.lstrip(" ")
        if char == " ":
            return not run and len(self._line) < 3
        return char in "`~" and (not run or (run[0] == char and run[-1] == char))

    def _hold(self, text: str) -> None:
        if text:
            self._held.append(text)
            self._held_length += len(text)

    def _keep(self, commands: list[FencedCommand], block: str) -> None:
        if commands:
            self.commands += commands
            self.blocks.append(block)

    def _take_held(self) -> str:
        held = "".join(self._held)
        self._held.clear()
        self._held_length = 0
        return held

    def _limit(self) -> None:
        if self._held_length > MOST_HELD:
            self._let_go(_State.OPAQUE)

    def _let_go(self, state: _State) -> None:
        """What is held is text after all."""
        self._release(self._take_held())
        self._state = state

    def _release(self, text: str) -> None:
        if text:
            self._out.append(text)

    def _released(self) -> str:
        out = "".join(self._out)
        self._out.clear()
        return out


_STEPS = {
    _State.LINE_START: FencedReader._at_line_start,
    _State.TEXT: FencedReader._in_text,
    _State.INFO: FencedReader._in_info,
    _State.BODY: FencedReader._before_body,
    _State.JSON: FencedReader._in_json,
    _State.AFTER: FencedReader._after_json,
    _State.LINES: FencedReader._in_lines,
    _State.LINES_START: FencedReader._at_lines_start,
    _State.OPAQUE: FencedReader._in_opaque,
    _State.OPAQUE_START: FencedReader._at_opaque_start,
    _State.TAIL: FencedReader._in_tail,
}


def read_commands(body: str) -> list[FencedCommand]:
    """The commands of a block's body; one that is meant as a command and cannot be read counts too.

    Nothing comes of a block that is something else.
    """
    try:
        values = _values(body)
    except (ValueError, RecursionError):
        if not _LOOKS_LIKE.match(body):
            return []
        named = _NAMES_ONE.search(body)
        return [FencedCommand(named.group(1) if named else "", body.strip())]
    if not values or not all(_is_command(value) for value in values):
        return []
    return [
        FencedCommand(value["command"], _arguments_text(value.get("arguments"))) for value in values
    ]


def _values(body: str) -> list[Any]:
    """The JSON values of a body: one, several in a row, or a list of them."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_doubles, strict=False)
    values: list[Any] = []
    at = 0
    while True:
        while at < len(body) and (body[at].isspace() or (values and body[at] in ",;")):
            at += 1
        if at >= len(body):
            return values
        value, at = decoder.raw_decode(body, at)
        values += value if isinstance(value, list) else [value]


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _is_command(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("command"), str)
        and bool(value["command"])
        and ("arguments" in value or len(value) == 1)
    )


def _arguments_text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments  # a model that words them as functions' arguments are worded
    return json.dumps({} if arguments is None else arguments, ensure_ascii=False)


def _run(line: str) -> int:
    """How many marks a possible fence has."""
    return len(line.lstrip(" "))
