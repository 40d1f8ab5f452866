"""Titles in the model's words: once, in the background, and never over a person's own."""

from __future__ import annotations

import threading
from unittest.mock import patch

import pytest

from chat.engine import steps, titles
from chat.engine.beginning import title_from
from chat.engine.titles import clean_title
from chat.models import Bud, Conversation
from chat.providers import openai_compatible
from chat.providers.base import MonthLimit
from chat.services.conversations import update_conversation
from chat.tasks import title_conversation
from config.celery import app
from tests.chat.conftest import Chat
from tests.chat.engine.titling import titled
from tests.chat.providers.spending import ask, limit
from tests.fakes.scripted_model import Answer, chunk
from tests.patience import PATIENCE, wait_until
from tests.threads import Threads


def row(chat: Chat) -> Conversation:
    return Conversation.objects.for_workspace(chat.tenant.workspace).fetch(chat.conversation.pk)


def test_the_first_answer_is_named_by_the_model(chat: Chat) -> None:
    """Ours: wished once, asked without tools, stored, counted, and told to whoever watches."""
    with patch.object(steps, "ask_for_title") as wished:
        chat.model.call(("counting__echo", {"text": "x"}))
        chat.model.say("The sky is blue")
        chat.ask("What colour has the sky?\nPlease tell.")
        wait_until(lambda: wished.call_count == 1, what="the wish")
        assert row(chat).title_source == "message"
        assert row(chat).title == "What colour has the sky?"
        chat.model.say("Still blue")
        chat.watching.forget()
        chat.ask("And now?")
        assert wished.call_count == 1
    before = row(chat).prompt_tokens
    chat.model.say('Title: "The **colour** of the sky."\nMore words')
    chat.watching.forget()
    assert titled(chat)
    assert (row(chat).title, row(chat).title_source) == ("The colour of the sky", "model")
    asked = chat.model.requests[-1]
    assert "tools" not in asked
    assert "What colour has the sky?" in asked["messages"][-1]["content"]
    assert row(chat).prompt_tokens == before + 7
    event = chat.watching.until(lambda e: e["type"] == "conversation.changed")
    assert event["conversation"]["title"] == "The colour of the sky"
    assert not titled(chat)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("```python\nprint(1)\n```", "print(1)"),
        ("~~~\n\n  SELECT   1", "SELECT 1"),
        ("---\nDear all,", "Dear all,"),
        ("👍\n", "👍"),
        ("```\n```", "``` ```"),
        ("  \n ", ""),
        ("word " * 20, "word word word word word word word word word word word word…"),
    ],
)
def test_a_title_says_what_a_message_is_about(text: str, title: str) -> None:
    """REL-2156: until a model names the chat, or where none does."""
    assert title_from(text) == title


def test_a_persons_own_title_stays(chat: Chat) -> None:
    """Ours: also when they name it while the model is still thinking."""
    chat.model.say("Blue")
    chat.ask("What colour?")
    hold = threading.Event()
    chat.model.say("Another title", hold=hold)
    with Threads(1) as pool:
        made = pool.submit(titled, chat)
        while len(chat.model.requests) < 2:
            chat.watching.until(lambda e: e["type"] == "turn.changed")
        update_conversation(conversation=row(chat), actor=chat.actor, title="Mine")
        hold.set()
        assert not made.result(PATIENCE)
    assert (row(chat).title, row(chat).title_source) == ("Mine", "person")
    asked = len(chat.model.requests)
    assert not titled(chat)
    assert len(chat.model.requests) == asked


def test_where_no_real_model_answers_the_first_words_stay(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a failure, an empty answer, the demo model, a conversation that is gone: no title, no harm."""
    monkeypatch.setattr(openai_compatible, "PAUSE_SECONDS", 0.01)
    chat.model.say("Blue")
    chat.ask("What colour?")
    chat.model.fail(401)
    assert not titled(chat)
    chat.model.give(Answer([chunk({"content": " **\n"}, "stop")]))
    assert not titled(chat)
    monkeypatch.setattr(titles, "TITLE_SECONDS", 0.2)
    chat.model.give(Answer([], hangs=True))
    assert not titled(chat)
    asked = len(chat.model.requests)
    Bud.objects.for_workspace(chat.tenant.workspace).update(provider=None)
    assert not titled(chat)
    assert len(chat.model.requests) == asked
    assert (row(chat).title, row(chat).title_source) == ("What colour?", "message")
    row(chat).delete()
    assert not titled(chat)


def test_a_title_that_a_limit_refused_comes_with_a_later_answer(chat: Chat) -> None:
    """REL-1801: and what was said first stays until then. Nobody's own title is touched."""
    limit(chat.tenant, member=MonthLimit(tokens=1_000_000))
    with patch.object(steps, "ask_for_title") as wished:
        ask(chat)
        wait_until(lambda: wished.call_count == 1, what="the wish")
        limit(chat.tenant, member=MonthLimit(tokens=1))
        assert not titled(chat)
        assert row(chat).title == "go"
        limit(chat.tenant, member=MonthLimit(tokens=1_000_000))
        chat.watching.forget()
        ask(chat)
        wait_until(lambda: wished.call_count == 2, what="the second wish")
        chat.model.say("Greetings")
        assert titled(chat)
        chat.watching.forget()
        ask(chat)
        assert wished.call_count == 2
    assert (row(chat).title, row(chat).title_source) == ("Greetings", "model")


def test_without_a_broker_the_answer_is_there_all_the_same(chat: Chat) -> None:
    """Ours: a title is worth no failed turn."""
    was_sent = threading.Event()
    sent: list[str] = []

    def send(name: str, *args: object, **more: object) -> None:
        sent.append(name)
        was_sent.set()
        raise OSError

    with patch.object(app, "send_task", send):
        chat.model.say("Blue")
        assert chat.ask().status == "completed"
        assert was_sent.wait(PATIENCE)
    assert sent == [title_conversation.name]


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Blue sky", "Blue sky"),
        ('"Blue sky."', "Blue sky"),
        ("\n\n# Title: Blue   sky\nand more", "Blue sky"),
        ("Titel – Blauer Himmel", "Blauer Himmel"),
        ("「空の色」", "「空の色」"),
        ("word " * 40, "word word word word word word word word word word word word…"),
        ("x" * 90, "x" * 60 + "…"),
        ("hid\u200bden", "hidden"),
        ("", ""),
        ("** . **", ""),
        ("I am the **demo model**", "I am the demo model"),
        ("**Title:** *Very* __blue__ ***sky***", "Very blue sky"),
        ("## [Blue `sky`](https://example.com/a_b) ##", "Blue sky"),
        ("**Why _this_ ~~sky~~**", "Why this sky"),
        ("天空是**蓝色**的", "天空是蓝色的"),
        ("What `__init__` and `a*b*` do", "What __init__ and a*b* do"),
        ("a*b, 2 * 3 * 4 and snake_case_names", "a*b, 2 * 3 * 4 and snake_case_names"),
        (r"A snake\_case name and \*args", "A snake_case name and *args"),
        ("Learning C#", "Learning C#"),
        (".NET and *args.", ".NET and *args"),
    ],
)
def test_an_answer_becomes_a_title(answer: str, title: str) -> None:
    """REL-3251: one line of plain text, cut at a word. Markdown's marks go; such as mean themselves stay."""
    assert clean_title(answer) == title
