"""Canonical JSON is that of RFC 8785."""

from __future__ import annotations

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.proof.trellis_verify import MOST_EXACT_INTEGER, canonical

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MOST_EXACT_INTEGER, MOST_EXACT_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_as_the_reference_writes_it(value: object) -> None:
    """RFC 8785, against another implementation."""
    assert canonical(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_written_as_ecmascript_writes_them(value: float) -> None:
    """RFC 8785 §3.2.2.3."""
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e21, b"1e+21"),
        (1e20, b"100000000000000000000"),
        (1e-6, b"0.000001"),
        (1e-7, b"1e-7"),
        (-0.0, b"0"),
        (4.50, b"4.5"),
        (333333333.33333329, b"333333333.3333333"),
        ({"\ufb33": 1, "\U0001f600": 2}, '{"\U0001f600":2,"\ufb33":1}'.encode()),
    ],
)
def test_examples(value: object, text: bytes) -> None:
    """RFC 8785, appendix B and §3.2.3: keys sort by UTF-16 units."""
    assert canonical(value) == text


@pytest.mark.parametrize("value", [2**53, float("nan"), float("inf"), {"x": -(2**60)}, "\ud800"])
def test_what_it_cannot_write_is_refused(value: object) -> None:
    """RFC 8785 §3.1: I-JSON only."""
    with pytest.raises(ValueError, match=r".+"):
        canonical(value)
