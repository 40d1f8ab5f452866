"""What hides in a text, and what only looks like another name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_servers.client.hidden_text import (
    find_hidden,
    mixes_scripts,
    show_hidden,
    skeleton,
    strip_hidden,
)

TRICKS = {
    "text direction marks": "safe\u202eevil\u202c",
    "zero-width characters": "de\u200blete",
    "invisible tag characters": "read" + "".join(chr(0xE0000 + ord(c)) for c in "send mail"),
    "control characters": "a\x08b",
    "terminal escape codes": "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07x\x1b]8;;\x07",
    "variation selectors": "a\ufe01\ufe02",
}


@pytest.mark.parametrize(("kind", "text"), TRICKS.items())
def test_each_kind_of_hiding_is_named_removed_and_shown(kind: str, text: str) -> None:
    """SEC-67: bidi, zero-width, tag characters, ANSI and control are removed for the model and made visible to people."""
    assert kind in find_hidden(text)
    assert find_hidden(strip_hidden(text)) == ()
    assert "‹U+" in show_hidden(text)
    assert find_hidden(show_hidden(text)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "zwei\nZeilen\tund mehr",
        "Grüße, 你好",
        "می\u200cخواهم",
        "👩\u200d👩\u200d👧",
        "❤️ 1️⃣",
        "नमस्ते क्\u200dष",
    ],
)
def test_honest_texts_stay_as_they_are(text: str) -> None:
    """Joiners that shape letters and emoji hide nothing."""
    assert find_hidden(text) == ()
    assert strip_hidden(text) == show_hidden(text) == text


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_nothing_hidden_is_left_after_stripping(text: str) -> None:
    """SEC-67: whatever comes, what the model reads hides nothing."""
    assert find_hidden(strip_hidden(text)) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("read_file", "rеad_file"),
        ("read_file", "read-file"),
        ("list", "1ist"),
        ("modem", "modern"),
        ("notes", "nοtes"),
        ("send", "se\u200bnd"),
        ("Ａdd", "add"),
    ],
)
def test_names_that_look_alike_share_a_skeleton(one: str, other: str) -> None:
    """SEC-65: a look-alike is recognised as one."""
    assert skeleton(one) == skeleton(other)


def test_different_names_have_different_skeletons() -> None:
    """Ordinary tools are not taken for one another."""
    names = ["add_note", "delete_note", "read", "write", "get_sum", "get_env", "echo"]
    assert len({skeleton(name) for name in names}) == len(names)


def test_mixed_scripts_are_noticed() -> None:
    """SEC-69: one Cyrillic letter among Latin ones is no accident."""
    assert mixes_scripts("pаypal.com")
    assert not mixes_scripts("paypal.com")
    assert not mixes_scripts("пример.example".partition(".")[0])
