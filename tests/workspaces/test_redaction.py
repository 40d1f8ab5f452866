"""Secrets that were revealed are masked in whatever is written of their workspace, however many there have been."""

from __future__ import annotations

import base64
import gc
import html
import json
import re
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces import secret_memory
from workspaces.redaction import (
    EVERY_WORKSPACE,
    MASK,
    is_secret_key,
    redact,
    redact_known,
    redact_text,
    remember_secret,
)
from workspaces.secret_memory import holding_secrets, is_plain, secrets_in_url

pytestmark = pytest.mark.usefixtures("no_known_secrets")
OURS, THEIRS = "ours", "theirs"


def remember(plain: str) -> None:
    remember_secret(plain, workspace_id=OURS)


def shown(text: str) -> str:
    return str(redact_known(text, workspace_id=OURS))


def test_each_form_of_a_secret_is_masked_and_nothing_else() -> None:
    """SEC-95: plain, in a URL, in base64; what stands around it stays."""
    secret = 'tök/en "7+8"'
    remember(secret)
    for form in (
        secret,
        quote(secret, safe=""),
        secret.encode().hex(),
        base64.b64encode(secret.encode()).decode().rstrip("="),
    ):
        for before in ("", "<", "<<", "<<<", "<<<<"):
            assert shown(f"{before}{form}>") == f"{before}{MASK}>"
    assert shown("tök/en of another kind") == "tök/en of another kind"


@pytest.mark.parametrize(
    ("echo", "form"),
    [
        ("a form", quote_plus),
        ("JavaScript", lambda text: quote(text, safe="!'()*~")),
        ("an address whole", lambda text: quote(text, safe=";,/?:@&=+$-_.!~*'()#")),
        (".NET", lambda text: re.sub("%..", lambda part: part[0].lower(), quote(text, safe=""))),
        ("Python's JSON", lambda text: json.dumps(text)[1:-1]),
        ("PHP's JSON", lambda text: json.dumps(text)[1:-1].replace("/", "\\/")),
        ("Go's JSON", lambda text: _as_go(json.dumps(text, ensure_ascii=False)[1:-1])),
        (".NET's JSON", lambda text: _as_net(json.dumps(text)[1:-1])),
        ("Python's page", html.escape),
        ("PHP's page", lambda text: html.escape(text).replace("&#x27;", "&#039;")),
        ("Go's page", lambda text: _as_go_page(html.escape(text))),
    ],
)
def test_a_password_is_masked_as_other_languages_write_it(
    echo: str, form: Callable[[str], str]
) -> None:
    """SEC-985: in forms, addresses, JSON and pages, whichever characters they escape."""
    password = "pä/ss &w<or>d+=\"1'!"
    remember(password)
    assert shown(f"{echo}: ({form(password)})") == f"{echo}: ({MASK})"


def _as_go(text: str) -> str:
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _as_net(text: str) -> str:
    text = re.sub(r"\\u....", lambda code: rf"\u{code[0][2:].upper()}", text.replace('\\"', '"'))
    return re.sub("""["&'+<>`]""", lambda sign: rf"\u{ord(sign[0]):04X}", text)


def _as_go_page(text: str) -> str:
    return text.replace("&#x27;", "&#39;").replace("&quot;", "&#34;")


@pytest.mark.parametrize(
    ("stored", "echoed"),
    [
        ("Bearer t0k-9f8e7d6c5b", "t0k-9f8e7d6c5b"),
        ("token ghx-99887766aa", "ghx-99887766aa"),
        (f"Basic {base64.b64encode(b'rosa:hunter2x!').decode()}", "hunter2x!"),
        ("postgres://rosa:pa55word1@db.example/notes", "pa55word1"),
        ('{"Authorization": "Bearer ntn_4a5b6c7d8e", "Notion-Version": "2"}', "ntn_4a5b6c7d8e"),
        ('{"db": [{"password": "pa$$-word"}]}', "pa$$-word"),
    ],
)
def test_what_opens_something_alone_is_masked_alone(stored: str, echoed: str) -> None:
    """SEC-986: a server reads the token out of a header, and says that this token has run out."""
    remember(stored)
    assert shown(f"({echoed}) has run out") == f"({MASK}) has run out"
    assert shown("Bearer, Basic, token, Notion-Version, rosa, notes") == (
        "Bearer, Basic, token, Notion-Version, rosa, notes"
    )


def test_of_two_that_begin_alike_the_longer_is_masked() -> None:
    """A secret that holds another leaves no tail of itself, whoever's it is."""
    remember("abcdefgh")
    remember("abcdefgh-and-more")
    remember_secret("abcdefgh-and-more-still", workspace_id=None)
    assert shown("abcdefgh-and-more, abcdefgh.") == f"{MASK}, {MASK}."
    assert shown("abcdefgh-and-more-still") == MASK


def test_neighbours_are_masked_one_by_one() -> None:
    """Where one ends another may begin."""
    remember("first-secret")
    remember("second-secret")
    assert shown("first-secretsecond-secret") == MASK * 2


def test_the_oldest_are_forgotten_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered is bounded, and nothing of a forgotten one stays behind."""
    monkeypatch.setattr(secret_memory, "_MOST_REMEMBERED", 3)
    monkeypatch.setattr(secret_memory, "_SURPLUS", 0)
    values = [secrets.token_urlsafe(24) for _ in range(5)]
    for value in values:
        remember(value)
    remember(values[2])  # used again, so the newest now
    remember("one-more-secret")
    assert [shown(value) == value for value in values] == [True, True, False, True, False]
    for value in values:
        remember(value)
    index = secret_memory._memories[OURS].index
    assert len(index) < 3 * 20
    assert len(index.grams) < 3 * 20 * 3
    assert len(secret_memory._everything) == len(index)


def test_a_workspaces_secrets_mask_nothing_of_another_and_push_nothing_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SEC-220: one memory for each workspace; the platform's secrets are masked everywhere, and in logs all of them."""
    monkeypatch.setattr(secret_memory, "_MOST_REMEMBERED", 10)
    remember("our-own-secret-1")
    remember_secret("platforms-secret-1", workspace_id=None)
    remember_secret("the report", workspace_id=THEIRS)
    for number in range(500):
        remember_secret(f"flood-{number}-{secrets.token_hex(8)}", workspace_id=THEIRS)
    remember_secret("the report", workspace_id=THEIRS)
    text = "the report: our-own-secret-1, platforms-secret-1"
    assert shown(text) == f"the report: {MASK}, {MASK}"
    assert redact({"a": [text]}, workspace_id=OURS) == {"a": [shown(text)]}
    assert redact_text(text, workspace_id=THEIRS) == f"{MASK}: our-own-secret-1, {MASK}"
    assert redact_text(text, workspace_id=None) == f"the report: our-own-secret-1, {MASK}"
    assert redact_text(text, workspace_id=EVERY_WORKSPACE) == f"{MASK}: {MASK}, {MASK}"


def test_what_is_in_use_is_never_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-222: as long as its holder lives, however many others come; afterwards it is as old as any."""
    monkeypatch.setattr(secret_memory, "_MOST_REMEMBERED", 10)

    def flood() -> None:
        for _ in range(300):
            remember(secrets.token_urlsafe(24))

    with holding_secrets() as held:
        remember("secret-of-a-connection-1")
    flood()
    assert shown("secret-of-a-connection-1") == MASK
    held.replace("renewed-token-of-it-2", workspace_id=OURS)
    flood()
    assert shown("secret-of-a-connection-1, renewed-token-of-it-2") == (
        f"secret-of-a-connection-1, {MASK}"
    )
    del held
    gc.collect()
    flood()
    assert shown("renewed-token-of-it-2") == "renewed-token-of-it-2"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://h.example/mcp?api_key=ab12cd34ef&lang=english", ["ab12cd34ef"]),
        ("https://h.example/?sig=a%2Fb12cd34&x=99887766aa", ["a%2Fb12cd34", "a/b12cd34"]),
        ("https://me:pa55word1@h.example/", ["me:pa55word1", "pa55word1"]),
        ("https://h.example/?0123456789abcdef0123", ["0123456789abcdef0123"]),
        ("https://h.example/?token=production&key=short1&debug", []),
        ("https://h.example/?q=quarterly%20report%202026&page=10000000", []),
        ("https://h.example/reports/2026?verbose", []),
    ],
)
def test_of_a_url_only_what_is_marked_as_a_secret_is_one(url: str, found: list[str]) -> None:
    """SEC-221: the password, and parameters that are named or look like a key; no word that any text may hold."""
    assert secrets_in_url(url) == found


def test_words_are_told_from_keys() -> None:
    """SEC-221."""
    for plain in ("production", "eu-west-1", "application/json", "Quarterly report 2026", "UTF-8"):
        assert is_plain(plain)
    for key in ("hunter2x", "dGhlIHNlY3JldCBrZXk", "0123456789abcdef", "sk-a1b2c3", "pa$$-word"):
        assert not is_plain(key)


def test_secrets_in_keys_are_masked_and_no_two_become_one() -> None:
    """SEC-995: an object keyed by its own token; each value keeps a key of its own, and its place in the marks."""
    remember("k3y-4711-abc")
    remember("k3y-4712-def")
    value = {
        f"{MASK} (2)": 0,
        "k3y-4711-abc": 1,
        "k3y-4712-def": [{"k3y-4711-abc": "sk-" + "a" * 20}],
    }
    shown = {f"{MASK} (2)": 0, MASK: 1, f"{MASK} (3)": [{MASK: "sk-" + "a" * 20}]}
    assert redact_known(value, workspace_id=OURS) == shown
    assert redact_known(value, workspace_id=THEIRS) == value
    marks: list[tuple[tuple[str | int, ...], str]] = []
    shown[f"{MASK} (3)"] = [{MASK: MASK}]
    assert redact(value, lambda *mark: marks.append(mark), workspace_id=OURS) == shown
    inner = (f"{MASK} (3)", 0, MASK)
    assert marks == [((MASK,), "known"), (inner[:1], "known"), (inner, "known"), (inner, "shape")]
    many = {f"sk-{number:020}": number for number in range(20_000)}
    assert list(redact(many, workspace_id=OURS).values()) == list(many.values())


def test_words_that_are_keys_stay() -> None:
    """SEC-223: even if somebody declared them a secret; the names of fields are such words."""
    remember("customer")
    remember("customers")
    value = {"customer": "a customer", "customers": [{"customer-2": 1}], "token": "x"}
    assert redact_known(value, workspace_id=OURS) == {
        **value,
        "customer": f"a {MASK}",
    }
    assert redact(value, workspace_id=OURS) == {
        "customer": f"a {MASK}",
        "customers": [{"customer-2": 1}],
        "token": MASK,
    }


_TEXTS = st.sampled_from(
    [
        *("", "a", "known-secret-1", "x known-secret-1 y", "sk-abcdefghijklmnopqrst", "Bearer"),
        *("abcdefghijkl", "https://a:b@c", "-----BEGIN PRIVATE KEY-----", "eyJ", "AKIA"),
        *("-----END PRIVATE KEY-----", "AKIAABCDEFGHIJKLMNOP", "b\nc"),
    ]
)
_VALUES = st.recursive(
    _TEXTS | st.none() | st.booleans() | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["a", "password", "api_key", "b", "x k3y-4711-abc"]), inner, max_size=4
        )
    ),
)


@given(_VALUES)
def test_a_value_is_masked_as_each_of_its_texts_would_be(value: Any) -> None:
    """SEC-94: whatever is looked at together."""
    remember("known-secret-1")
    remember("k3y-4711-abc")

    def one_by_one(part: Any) -> Any:
        if isinstance(part, dict):
            return {
                redact_text(name, workspace_id=OURS): MASK
                if is_secret_key(name) and inner not in (None, "", [], {})
                else one_by_one(inner)
                for name, inner in part.items()
            }
        if isinstance(part, list):
            return [one_by_one(inner) for inner in part]
        return redact_text(part, workspace_id=OURS) if isinstance(part, str) else part

    assert redact(value, workspace_id=OURS) == one_by_one(value)


def test_what_names_a_report_of_progress_is_no_secret() -> None:
    """Ours: in a trace it says which report belongs to which call."""
    for name in ("progressToken", "progress_token"):
        assert redact({name: 7}, workspace_id=None) == {name: 7}


def test_thousands_of_secrets_cost_a_text_no_more_than_ten() -> None:
    """SEC-220, REL-43: what others have, and how many renewals there were, is not felt."""
    text = "The quick brown fox jumps over the lazy dog, see https://example.org/a?b=c. " * 5_000

    def seconds() -> float:
        def once() -> float:
            started = time.thread_time()
            assert shown(text) == text
            return time.thread_time() - started

        return min(once() for _ in range(5))

    for _ in range(10):
        remember(secrets.token_urlsafe(32))
    few = seconds()
    for _ in range(3_000):
        remember(secrets.token_urlsafe(32))
        remember_secret(secrets.token_urlsafe(32), workspace_id=THEIRS)
    assert seconds() < few * 3
