"""Secrets that were revealed are masked in whatever is written, however many there have been."""

from __future__ import annotations

import base64
import secrets
from urllib.parse import quote

import pytest

from workspaces import redaction
from workspaces.redaction import MASK, redact_known, remember_secret


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory of the test's own."""
    monkeypatch.setattr(redaction, "_remembered", redaction._Remembered())


def test_each_form_of_a_secret_is_masked_and_nothing_else() -> None:
    """SEC-95: plain, in a URL, in base64; what stands around it stays."""
    secret = 'tök/en "7+8"'
    remember_secret(secret)
    for form in (
        secret,
        quote(secret, safe=""),
        secret.encode().hex(),
        base64.b64encode(secret.encode()).decode().rstrip("="),
    ):
        assert redact_known(f"<{form}>") == f"<{MASK}>"
    assert redact_known("tök/en of another kind") == "tök/en of another kind"


def test_of_two_that_begin_alike_the_longer_is_masked() -> None:
    """A secret that holds another leaves no tail of itself."""
    remember_secret("abcdefgh")
    remember_secret("abcdefgh-and-more")
    assert redact_known("abcdefgh-and-more, abcdefgh.") == f"{MASK}, {MASK}."


def test_neighbours_are_masked_one_by_one() -> None:
    """Where one ends another may begin."""
    remember_secret("first-secret")
    remember_secret("second-secret")
    assert redact_known("first-secretsecond-secret") == MASK * 2


def test_the_oldest_are_forgotten_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered is bounded, and nothing of a forgotten one stays behind."""
    monkeypatch.setattr(redaction, "_MOST_REMEMBERED", 3)
    values = [secrets.token_urlsafe(24) for _ in range(5)]
    for value in values:
        remember_secret(value)
    remember_secret(values[2])  # used again, so the newest now
    remember_secret("one-more-secret")
    shown = [redact_known(value) == value for value in values]
    assert shown == [True, True, False, True, False]
    for value in values:
        remember_secret(value)
    assert len(redaction._remembered._by_head) < 3 * 20
