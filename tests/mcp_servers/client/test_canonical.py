"""JSON at the edge: one form, or a refusal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_servers.client.canonical import (
    MAX_DEPTH,
    arguments_hash,
    canonical_json,
    clean_text,
    parse_arguments,
    parse_json,
)
from mcp_servers.client.errors import InvalidArguments, InvalidJson

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(VALUES)
def test_the_canonical_form_reads_back_and_is_stable(value: object) -> None:
    """SEC-76: hashed, approved, audited and sent are one byte string."""
    raw = canonical_json(value)
    again = parse_json(raw, max_bytes=10**7)
    assert canonical_json(again) == raw
    assert json.loads(raw) == value


def test_the_order_of_keys_does_not_matter() -> None:
    """Equal values, equal hashes."""
    assert arguments_hash({"a": 1, "b": [2]}) == arguments_hash({"b": [2], "a": 1})
    assert arguments_hash({"a": 1}) != arguments_hash({"a": "1"})


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        '{"a":1,"a":2}',
        '{"a":{"b":1,"b":2}}',
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e400",
        "9" * 5000,
        "18446744073709551616",
        '"\\u0000"',
        '"\\ud800"',
        '{"\\ud800":1}',
        "{'a':1}",
        "{} {}",
        "",
        b"\xff\xfe",
        "\ud800",
    ],
)
def test_what_cannot_be_carried_is_refused(text: str | bytes) -> None:
    """SEC-76: a typed error for each, never a crash."""
    with pytest.raises(InvalidJson):
        parse_json(text, max_bytes=10**7)


def test_size_is_bounded() -> None:
    """SEC-76: before anything is parsed."""
    with pytest.raises(InvalidJson):
        parse_json("[" + "1," * 1000 + "1]", max_bytes=100)


def test_deep_but_allowed() -> None:
    """SEC-76: the limit is a limit, not a guess."""
    parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH, max_bytes=10**4)


@pytest.mark.parametrize("text", ["[]", "1", '"x"', "null", "{", '{"a":NaN}'])
def test_arguments_are_an_object(text: str) -> None:
    """Broken JSON of a model gets a clear message."""
    with pytest.raises(InvalidArguments):
        parse_arguments(text)


def test_no_arguments_are_an_empty_object() -> None:
    """Models leave them out."""
    assert parse_arguments("") == parse_arguments("  ") == parse_arguments("{}") == {}


def test_foreign_text_is_made_storable() -> None:
    """SEC-76: replaced where it is only shown."""
    assert clean_text("a\0b\ud800c") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"


@pytest.mark.parametrize("value", [{1: "x"}, {"a": {1, 2}}, {"a": object()}, {"a": b"x"}])
def test_what_is_no_json_is_refused(value: object) -> None:
    """Only JSON types have a form."""
    with pytest.raises(InvalidJson):
        canonical_json(value)
