"""Commands in the text of models that cannot call functions: taken out wherever the text is cut."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.providers.fenced_json import MOST_HELD, FencedCommand, FencedReader, read_commands

CALL = '{"command": "f", "arguments": {"x": 1}}'


def read(*pieces: str) -> tuple[str, list[FencedCommand], list[str]]:
    """(all that was shown, the commands, what each piece released)."""
    reader = FencedReader()
    shown = [reader.feed(piece) for piece in pieces]
    shown.append(reader.close())
    return "".join(shown), reader.commands, shown


def cut(text: str, cuts: list[int]) -> list[str]:
    """The text in pieces."""
    edges = sorted({0, len(text), *(at % (len(text) + 1) for at in cuts)})
    return [text[start:end] for start, end in pairwise(edges)]


def names(text: str) -> list[str]:
    return [command.name for command in read(text)[1]]


# text → (what is shown, [(name, arguments)])
TABLE: dict[str, tuple[str, str, list[tuple[str, Any]]]] = {
    "backticks": (f"Look:\n```json\n{CALL}\n```\nDone", "Look:\nDone", [("f", {"x": 1})]),
    "tildes": (f"~~~\n{CALL}\n~~~\n", "", [("f", {"x": 1})]),
    "longer fences": (f"`````json\n{CALL}\n`````", "", [("f", {"x": 1})]),
    "closed by a longer fence": (f"```json\n{CALL}\n`````\nok", "ok", [("f", {"x": 1})]),
    "all on one line": (f"```json {CALL} ```", "", [("f", {"x": 1})]),
    "closed on the same line": (f"```json\n{CALL}```\nok", "ok", [("f", {"x": 1})]),
    "no arguments": ('```\n{"command": "f"}\n```', "", [("f", {})]),
    "indented by three": (f"   ```json\n{CALL}\n   ```\nok", "ok", [("f", {"x": 1})]),
    "several blocks": (
        f"a\n```json\n{CALL}\n```\nb\n~~~json\n{CALL}\n~~~\nc",
        "a\nb\nc",
        [("f", {"x": 1})] * 2,
    ),
    "several in one block": (f"```json\n{CALL}\n{CALL}\n```", "", [("f", {"x": 1})] * 2),
    "a list in one block": (f"```json\n[{CALL}, {CALL}]\n```", "", [("f", {"x": 1})] * 2),
    "fences within strings": (
        '```json\n{"command": "f", "arguments": {"x": "```js\\ncode\\n```"}}\n```\nok',
        "ok",
        [("f", {"x": "```js\ncode\n```"})],
    ),
    "fences on lines of their own within a string": (
        '```json\n{"command": "f", "arguments": {"x": "a\n```\nb"}}\n```\nok',
        "ok",
        [("f", {"x": "a\n```\nb"})],
    ),
    "braces and quotes within strings": (
        '```json\n{"command": "f", "arguments": {"x": "}\\"]{"}}\n```',
        "",
        [("f", {"x": '}"]{'})],
    ),
    "never closed": (f"```json\n{CALL}", "", [("f", {"x": 1})]),
    "windows lines": (f"```json\r\n{CALL}\r\n```\r\nok", "ok", [("f", {"x": 1})]),
    "other code": ("```python\nprint({})\n```\nok", "```python\nprint({})\n```\nok", []),
    "other JSON": ('```json\n{"a": 1}\n```\n', '```json\n{"a": 1}\n```\n', []),
    "a configuration that has a command of its own": (
        '```json\n{"command": "npx", "args": ["-y"]}\n```',
        '```json\n{"command": "npx", "args": ["-y"]}\n```',
        [],
    ),
    "a command deeper down": (
        '```json\n{"mcpServers": {"a": {"command": "x", "arguments": {}}}}\n```',
        '```json\n{"mcpServers": {"a": {"command": "x", "arguments": {}}}}\n```',
        [],
    ),
    "a command in other code": (f"```text\n{CALL}\n```", f"```text\n{CALL}\n```", []),
    "a fence shown within a longer one": (
        f"````md\n```json\n{CALL}\n```\n````\n",
        f"````md\n```json\n{CALL}\n```\n````\n",
        [],
    ),
    "no fence at all": (CALL, CALL, []),
    "code in a line": (f"use ```{CALL}``` or ``x``", f"use ```{CALL}``` or ``x``", []),
    "a line that begins with code": ("```x``` is code\n", "```x``` is code\n", []),
    "an empty block": ("```\n```\nok", "```\n```\nok", []),
    "two marks only": (f"``\n{CALL}\n``", f"``\n{CALL}\n``", []),
    "an open fence at the end": ("text\n```", "text\n```", []),
    "an info at the end": ("text\n```js", "text\n```js", []),
    "tildes do not close backticks; it cannot be read": (
        f"```json\n{CALL}\n~~~\n```\nok",
        "ok",
        [("f", f"{CALL}\n~~~")],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_commands_are_taken_out_and_all_else_is_left(name: str) -> None:
    """Ours: as one text, character by character, and cut in two everywhere."""
    text, shown, calls = TABLE[name]

    def check(result: tuple[str, list[FencedCommand], list[str]]) -> None:
        seen, commands, _ = result
        assert seen == shown
        assert [command.name for command in commands] == [name for name, _ in calls]
        for command, (_, arguments) in zip(commands, calls, strict=True):
            if isinstance(arguments, str):
                assert command.arguments == arguments
            else:
                assert json.loads(command.arguments) == arguments

    check(read(text))
    check(read(*text))
    for at in range(len(text)):
        check(read(text[:at], text[at:]))


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('{"command": "f", "arguments": {"x": }}', "f"),
        ('{"command": "f", "arguments": {"x": 1', "f"),
        ('{"command": "f", "command": "g", "arguments": {}}', "f"),
        ('{"command": "f", "arguments": {"x": 1, "x": 2}}', "f"),
        ('{"command": "', ""),
    ],
)
def test_a_command_that_cannot_be_read_is_one_all_the_same(body: str, name: str) -> None:
    """Ours: so that the model is told, and the person sees no raw JSON."""
    shown, commands, _ = read(f"```json\n{body}\n```\n")
    assert shown == ""
    assert commands == [FencedCommand(name, body)]
    assert read_commands("{broken") == []


def test_text_after_a_command_without_end_is_not_lost() -> None:
    """Ours: a quote too few does not swallow the rest of the answer."""
    broken = '{"command": "f", "arguments": {"x": "unfinished}}'
    text = f"a\n```json\n{broken}\n```\nb\n```json\n{CALL}\n```\nc\n```py\n1\n```\n"
    shown, commands, _ = read(text)
    assert shown == "a\nb\nc\n```py\n1\n```\n"
    assert commands == [FencedCommand("f", broken), FencedCommand("f", '{"x": 1}')]


def test_text_is_released_as_soon_as_it_cannot_be_a_command() -> None:
    """Ours: prose and other code stream; a command's beginning never shows."""
    reader = FencedReader()
    assert reader.feed("Hello ") == "Hello "
    assert reader.feed("there\n``") == "there\n"
    assert reader.feed("`py\nx") == "```py\nx"
    assert reader.feed("\n```\n") == "\n```\n"
    for piece in ("```json\n", '{"comm', 'and": "f"', ', "arguments": {}}'):
        assert reader.feed(piece) == ""
    assert reader.feed("\n```\nafter") == "after"
    assert [command.name for command in reader.commands] == ["f"]


def test_a_block_without_end_does_not_fill_the_memory() -> None:
    """Ours: what is longer than any command is text."""
    reader = FencedReader()
    reader.feed('```json\n{"command": "f", "arguments": {"x": "')
    released = "".join(reader.feed("y" * 65_536) for _ in range(MOST_HELD // 65_536 + 2))
    assert len(released) > MOST_HELD


_MARKS = ("`", "```", "````", "~~~", "\n", " ", "{", "}", "[", "]", '"', "\\", ",", ":", "\r\n")
_WORDS = ("json", "x", "py", CALL, '{"command": "', '{"a": 1}', '"command"', '"arguments": ')
_ALPHABET = st.sampled_from([*_MARKS, *_WORDS])


@settings(max_examples=400, deadline=None)
@given(
    parts=st.lists(_ALPHABET, max_size=30),
    cuts=st.lists(st.integers(0, 10_000), max_size=12),
)
def test_where_the_text_is_cut_makes_no_difference(parts: list[str], cuts: list[int]) -> None:
    """Ours: for random texts and random pieces, streaming gives what the whole text gives."""
    text = "".join(parts)
    whole, commands, _ = read(text)
    assert read(*cut(text, cuts))[:2] == (whole, commands)
    assert read(*text)[:2] == (whole, commands)
    if not commands:
        assert whole == text, "what holds no command is untouched"


_PROSE = st.sampled_from(
    ["Some words.\n", "# Head\n\n", "- a\n- b\n", "`code` here\n", '{"command": "x"}\n', "~ ``\n"]
)
_CODE = st.sampled_from(
    ["```py\nx = {}\n```\n", '~~~json\n{"a": [1]}\n~~~\n', "````\n```json\n````\n", "```\n```\n"]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
_COMMAND = st.tuples(
    st.sampled_from(["```", "~~~", "`````"]),
    st.sampled_from(["", "json"]),
    st.dictionaries(st.text(max_size=8), _JSON | st.just("a\n```\nb"), max_size=3),
    st.sampled_from([None, 2]),
)


@settings(max_examples=200, deadline=None)
@given(
    parts=st.lists(_PROSE | _CODE | _COMMAND, max_size=8),
    cuts=st.lists(st.integers(0, 10_000), max_size=12),
)
def test_every_command_and_nothing_else_is_found(parts: list[Any], cuts: list[int]) -> None:
    """Ours: texts put together of prose, other code and commands fall apart into the same."""
    text, shown, wanted = "", "", []
    for part in parts:
        if isinstance(part, str):
            text += part
            shown += part
            continue
        mark, info, arguments, indent = part
        body = json.dumps({"command": "f", "arguments": arguments}, indent=indent)
        text += f"{mark}{info}\n{body}\n{mark}\n"
        wanted.append(arguments)
    seen, commands, _ = read(*cut(text, cuts))
    assert seen == shown
    assert [json.loads(command.arguments) for command in commands] == wanted


@pytest.mark.parametrize("name", TABLE)
def test_the_blocks_are_kept_as_the_model_wrote_them(name: str) -> None:
    """REL-206: wherever the text is cut, nothing of them is lost, and read again they say the same."""
    text, _, calls = TABLE[name]

    def blocks_of(*pieces: str) -> list[str]:
        reader = FencedReader()
        for piece in pieces:
            reader.feed(piece)
        reader.close()
        return reader.blocks

    blocks = blocks_of(text)
    assert all(block in text for block in blocks)
    assert sum(len(read(block)[1]) for block in blocks) == len(calls)
    assert bool(blocks) == bool(calls)
    assert blocks_of(*text) == blocks
    for at in range(len(text)):
        assert blocks_of(text[:at], text[at:]) == blocks
