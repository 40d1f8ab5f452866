"""Texts of strangers that are made to cost time: patterns read them in time that grows with their length alone."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from chat.artifacts.serving import _themed
from chat.files.kinds import find_type
from chat.services.check_judging import fault_of, reason_in
from mcp_servers.client import hidden_text
from mcp_servers.client.hidden_text import show_hidden, strip_hidden
from mcp_servers.gate.destinations import destinations_of, names_host
from workspaces.redaction import MASK, redact_text

LONG = 400_000


@contextmanager
def little_work(seconds: float = 3.0) -> Iterator[None]:
    """Of this process, however busy the machine is."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


@pytest.mark.parametrize("between", ["", " ", "\n \t"])
def test_a_drawing_with_many_comments_is_read_at_once(between: str) -> None:
    """SEC-768: each comment ends in one place. Thirty of them took hours, in which nobody was served."""
    comments = f"<!---->{between}" * 900
    with little_work():
        assert find_type(f"{comments}<svgx>".encode(), "x.svg") == "text/plain"
        assert find_type(f"{comments}<!-- <svg> ".encode(), "x.svg") == "text/plain"
        assert find_type(f"{comments}<svg>".encode(), "x.svg") == "image/svg+xml"


@pytest.mark.parametrize(
    ("content", "is_drawing"),
    [
        ("<svg/>", True),
        (
            '<?xml version="1.0"?>\n<!-- a > b -->\n<!DOCTYPE svg>\n<!-- c -->\n<svg xmlns="x">',
            True,
        ),
        ("<!-- a --> b --><svg>", False),
        ("<!-- <svg> --><html>", False),
        ("<p/><svg>", False),
    ],
)
def test_drawings_are_told_from_other_markup(content: str, is_drawing: bool) -> None:
    """SEC-78: by how they begin."""
    assert (find_type(content.encode(), "x.svg") == "image/svg+xml") is is_drawing


@pytest.mark.parametrize(
    "unit",
    [
        "\u200d",
        "\ufe0e",
        "\ufe0e\u200d",
        "\x01\ufe0e",
        "\u200d\u200b\ufe0f",
        "\x1b[m\ufe0e",
        "\ufe00\ufe00\ufe0e",
    ],
)
@pytest.mark.parametrize("around", [("a", ""), ("", "a"), ("न", "न"), ("", "")])
def test_many_hidden_characters_are_taken_away_at_once(unit: str, around: tuple[str, str]) -> None:
    """SEC-768, SEC-67: a small file of them took hours."""
    begin, end = around
    text = begin + unit * (LONG // len(unit)) + end
    with little_work():
        stripped = strip_hidden(text)
        show_hidden(text)
    assert stripped == begin + end


def test_runs_of_what_may_stand_alone_are_hidden() -> None:
    """SEC-769, SEC-67: two kinds of them side by side spell words that nobody sees. Emoji keep theirs."""
    for spelled in ("\ufe0e\ufe0f\ufe0e\ufe0f", "\ufe0f\u200d\ufe0f\u200d", "\u200d\u200c\u200c"):
        assert strip_hidden(f"न👍{spelled}👍") == "न👍👍"
        assert hidden_text.find_hidden(f"👍{spelled}👍")
    for whole in ("❤\ufe0f\u200d🔥", "1\ufe0f\u20e3", "क\u094d\u200dष", "می\u200cخواهم"):
        assert strip_hidden(whole) == whole
        assert not hidden_text.find_hidden(whole)


def test_nothing_hidden_is_left_and_all_else_is() -> None:
    """SEC-67: whatever stands beside what."""
    dice = random.Random(7)
    visible = "aZ1 नम👩"
    letters = f"{visible}\u200c\u200d\ufe00\ufe0e\ufe0f\u200b\x01\u202e"
    for _ in range(20_000):
        text = "".join(dice.choices(letters, k=dice.randint(1, 9)))
        stripped = strip_hidden(text)
        assert strip_hidden(stripped) == stripped, ascii(text)
        assert not hidden_text.find_hidden(stripped), ascii(text)
        assert [one for one in stripped if one in visible] == [
            one for one in text if one in visible
        ]


@pytest.mark.parametrize(
    "unit",
    [
        "-eyJ",
        "-eyJaaaaaaaa",
        "eyJaaaaaaaa.",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY----- -----END ",
    ],
)
def test_what_looks_like_the_beginning_of_many_secrets_is_read_at_once(unit: str) -> None:
    """SEC-768: a result of a tool held up the whole process while it was masked for the log."""
    with little_work():
        redact_text(unit * (LONG // len(unit)), workspace_id=None)


def test_tokens_and_keys_are_masked_as_before() -> None:
    """SEC-94: wherever they stand, and nothing else."""
    token = re.compile(r"eyJ(?<!\weyJ)[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}")
    dice = random.Random(7)
    parts = ["eyJ", "eyJhbGciOiJIUzI1", ".", "-", " ", "a", "abcdefgh_", "x.", '"']
    for _ in range(20_000):
        text = "".join(dice.choices(parts, k=dice.randint(1, 12)))
        assert redact_text(text, workspace_id=None) == token.sub(MASK, text), text
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----"
    open_key = "-----BEGIN PRIVATE KEY-----\nMIIB"
    masked = redact_text(f"a {key} b {key}{open_key}", workspace_id=None)
    assert masked == f"a {MASK} b {MASK}{open_key}"


@pytest.mark.parametrize("unit", ["a.", "a-", "a+", "//", "http:", "a:", "a@", "1."])
def test_where_a_call_carries_its_arguments_is_found_at_once(unit: str) -> None:
    """SEC-768: a model's arguments, and a person's words that they are compared with."""
    text = unit * (LONG // len(unit))
    with little_work(8):
        destinations_of(uuid4(), "a server", {"a": text})
        names_host(text, "far.example.org")


def test_an_address_with_a_long_scheme_is_a_destination() -> None:
    """SEC-271: whatever stands before it."""
    reached = destinations_of(uuid4(), "a server", {"a": f"{'x' * 60}://evil.example.org/?data"})
    assert "evil.example.org" in reached


@pytest.mark.parametrize("begin", ["<body ", "<body text", "filter ", "<link"])
def test_a_page_with_many_tags_is_shown_at_once(begin: str) -> None:
    """SEC-768: whether it chooses colours of its own is looked for once in each place."""
    content = begin.encode() * (LONG // len(begin))
    with little_work():
        _themed(content, "dark")


@pytest.mark.parametrize("unit", ["\n", ". ", "*", "> "])
def test_a_verdict_is_found_in_an_answer_of_any_length(unit: str) -> None:
    """SEC-768: a model that judges writes as much as it likes."""
    much = unit * (LONG // len(unit))
    with little_work():
        assert fault_of(f"The answer says it.{much}x", "is right")
        assert not fault_of(f"It is fine.\nverdict: yes{unit * 100}", "is right")
        reason_in(f"yes{much}")
