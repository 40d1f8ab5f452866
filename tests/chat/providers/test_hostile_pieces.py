"""Answers of a model provider that are made to cost time: nobody else's turn waits for them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from chat.providers.answer_reader import AnswerReader
from chat.providers.errors import ProviderBadAnswer, ProviderError
from chat.providers.json_ends import JsonPieces

LONG = 1_000_000


def event(*calls: dict[str, Any]) -> bytes:
    """One chunk with these pieces of calls."""
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": list(calls)}}]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


def piece(arguments: str, **fields: Any) -> dict[str, Any]:
    return {"index": 0, "function": {"name": "f", "arguments": arguments}, **fields}


def read(reader: AnswerReader, *chunks: bytes) -> None:
    for chunk in chunks:
        list(reader.feed(chunk))


@contextmanager
def little_work(seconds: float = 3.0) -> Iterator[None]:
    """Of this process, however busy the machine is."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


def test_many_pieces_of_a_long_call_take_little_time() -> None:
    """SEC-766: whether arguments are whole is known without reading them anew at each piece."""
    reader = AnswerReader(has_tools=True)
    with little_work():
        read(reader, event(piece('{"a": "' + "x" * LONG)))
        read(reader, *[event(*[piece("x")] * 1_000)] * 10)
        read(reader, event(piece('"}')), event(piece('{"b": 1}')))
    first, second = reader.completion().calls
    assert len(json.loads(first.arguments)["a"]) == LONG + 10_000
    assert json.loads(second.arguments) == {"b": 1}


def test_many_pieces_beside_a_call_take_little_time() -> None:
    """SEC-766: what a provider wants back is not copied at each piece."""
    reader = AnswerReader(has_tools=True)
    many = {str(number): 1 for number in range(200_000)}
    more = {"index": 0, "extra_content": {"a": 1}}
    with little_work():
        read(reader, event(piece("{}", id="1", extra_content=many)))
        read(reader, *[event(*[more] * 1_000)] * 10)


def test_an_event_with_calls_without_number_is_refused() -> None:
    """SEC-766: no server sends so many at once."""
    with pytest.raises(ProviderBadAnswer):
        read(AnswerReader(has_tools=True), event(*[piece("")] * 1_001))


def test_a_line_that_comes_byte_by_byte_takes_little_time() -> None:
    """SEC-766: nothing of it is looked at before it ends."""
    reader = AnswerReader()
    with little_work():
        read(reader, b"data: " + b"x" * LONG, *[b"x"] * 10_000)
        with pytest.raises(ProviderError):
            read(reader, b"\n\n")


@pytest.mark.parametrize("depth", [100, 400, 900, 950, 980, 990, 100_000])
@pytest.mark.parametrize("place", ["arguments", "text", "extra_content"])
def test_nesting_without_end_is_no_fault_of_ours(depth: int, place: str) -> None:
    """SEC-766, SEC-76: it is a bad answer of the provider, whatever is nested."""
    deep = '{"a":' * depth + "1" + "}" * depth
    call = {
        "arguments": f'{{"index": 0, "function": {{"name": "f", "arguments": {deep}}}}}',
        "extra_content": f'{{"index": 0, "function": {{"name": "f"}}, "extra_content": {deep}}}',
        "text": json.dumps(piece(deep)),
    }[place]
    chunk = f'data: {{"choices": [{{"delta": {{"tool_calls": [{call}, {call}]}}}}]}}\n\n'
    reader = AnswerReader(has_tools=True)
    try:
        read(reader, chunk.encode())
        reader.completion()
    except ProviderError:
        return
    assert place == "text" or depth < 1_000


@pytest.mark.parametrize("cut", range(1, 12))
@pytest.mark.parametrize(
    "text",
    ['{"a": "}\\"]"}', "[[], {}]", '"a \\" text"', "null", "12.5", '{"a": {"b": [1, "{"]}}'],
)
def test_a_text_is_whole_at_its_end_and_not_before(text: str, cut: int) -> None:
    """REL-33: wherever it is cut. A number is whole at every digit."""
    pieces = JsonPieces()
    for at in range(0, len(text), cut):
        assert not pieces.is_whole or text == "12.5"
        pieces.add(text[at : at + cut])
    assert pieces.is_whole
