"""How large files are, in words."""

from __future__ import annotations

import pytest

from chat.artifacts.sizes import size_in_words


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (800, "800 bytes"),
        (1536, "1.5 KB"),
        (1020 * 1024, "1020 KB"),
        (10 * 1024**2, "10 MB"),
        (2048 * 1024**2, "2048 MB"),
    ],
)
def test_a_size_is_written_as_people_read_it(size: int, words: str) -> None:
    """Not as "2.05e+03 MB", which is what some refusals said of large limits."""
    assert size_in_words(size) == words
