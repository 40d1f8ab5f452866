"""Bounds on the parts of a message, counted whatever the pieces it comes in."""

from __future__ import annotations

import itertools
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_servers.client.transports import density
from mcp_servers.client.transports.density import MAX_PARTS, PartCounter, check_parts
from mcp_servers.client.transports.messages import read_message
from workspaces.outbound import ResponseTooLarge

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('\\"{[,]}x\né', max_size=12),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text('"\\,{', max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


def parts_of(value: object) -> int:
    """The same number, from the value itself."""
    if isinstance(value, dict):
        return 1 + max(len(value) - 1, 0) + sum(parts_of(inner) for inner in value.values())
    if isinstance(value, list):
        return 1 + max(len(value) - 1, 0) + sum(parts_of(inner) for inner in value)
    return 0


@given(JSON_VALUES, st.lists(st.integers(0, 200), max_size=6))
def test_parts_are_counted_in_any_pieces(value: object, cuts: list[int]) -> None:
    """REL-43: strings hide nothing and count nothing, wherever the text is cut."""
    text = json.dumps(value, ensure_ascii=False).encode()
    counter = PartCounter()
    edges = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    for start, end in itertools.pairwise(edges):
        counter.feed(text[start:end])
    assert counter._parts == parts_of(value)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch, end: bytes) -> None:
    """REL-43: in an event stream the bound is for each event, whatever its lines end with."""
    monkeypatch.setattr(density, "MAX_PARTS", 5)
    counter = PartCounter()
    for _ in range(10):
        counter.feed_lines(b"data: [1,2,3]" + end + b"da")
        counter.feed_lines(b'ta: "[,[,[,[,"' + end + end)
    with pytest.raises(ResponseTooLarge):
        counter.feed_lines(b"data: [1,2,3,4,5,6]" + end)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("pieces", ["whole", "single bytes"])
def test_the_lines_of_an_event_are_counted_together(
    monkeypatch: pytest.MonkeyPatch, end: bytes, pieces: str
) -> None:
    """REL-43: an event spread over many lines is one message, and no comment hides its parts."""
    monkeypatch.setattr(density, "MAX_PARTS", 5)
    counter = PartCounter()
    event = end.join([b'data: [1,"', b': "', b"data: 2,3,", b"data: 4,5,6]", b""])
    step = len(event) if pieces == "whole" else 1
    with pytest.raises(ResponseTooLarge):
        for start in range(0, len(event), step):
            counter.feed_lines(event[start : start + step])


def test_a_long_text_is_no_crowd() -> None:
    """REL-43: ten megabytes of text pass, and fast; as many small parts do not."""
    text = json.dumps({"id": 1, "text": "a, b, {c} [d] " * 700_000})
    started = time.process_time()
    check_parts(text)
    assert time.process_time() - started < 0.5
    crowd = json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"a": [0] * (MAX_PARTS + 1)}})
    with pytest.raises(ResponseTooLarge):
        check_parts(crowd)
    answer = read_message(crowd)
    assert not isinstance(answer, ValueError)
    assert answer.message.id == 7  # type: ignore[union-attr]
