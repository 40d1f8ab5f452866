"""A provider fails, and the one behind it answers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from chat.engine import silence
from chat.models import ModelProvider
from chat.providers import standing_in
from chat.providers.openai_compatible import MOST_ATTEMPTS
from chat.services.providers import ProviderDraft, add_provider, change_provider
from chat.services.turns import stop_turn
from chat.values import TurnStatus
from tests.chat.conftest import Chat
from tests.factories import CANARY, Tenant, TwoTenants
from tests.fakes.scripted_model import DONE, Answer, ScriptedModel, chunk
from workspaces.errors import InvalidInput


@pytest.fixture
def other() -> Iterator[ScriptedModel]:
    """The model behind."""
    scripted = ScriptedModel()
    yield scripted
    scripted.stop()


@pytest.fixture
def behind(chat: Chat, other: ScriptedModel) -> ModelProvider:
    """A provider that answers where the bud's own fails."""
    assert chat.bud.provider is not None
    second = ModelProvider.objects.create(
        workspace=chat.tenant.workspace,
        name="Second",
        base_url=other.base_url,
        default_model="second-model",
    )
    ModelProvider.objects.for_workspace(chat.tenant.workspace).filter(
        pk=chat.bud.provider.pk
    ).update(fallback=second)
    return second


@pytest.fixture
def short_patience(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent provider is given up after a second."""
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"fallback_seconds": 1})
    monkeypatch.setattr(silence, "QUIET_SECONDS", 0.2)


@pytest.fixture
def mute() -> Iterator[str]:
    """Where connections are taken, and nothing is ever sent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("status", "why"), [(503, ""), (429, "too many requests"), (402, "credit")]
)
def test_another_provider_answers_and_the_chat_says_so(
    chat: Chat, behind: ModelProvider, other: ScriptedModel, status: int, why: str
) -> None:
    """REL-643: which model answered, and why; the failed one is asked once and not waited for."""
    chat.model.fail(status)
    other.say("Hello from the second")
    turn = chat.ask("Hello?")
    assert turn.status == TurnStatus.COMPLETED
    assert chat.answer() == "Hello from the second"
    assert other.requests[0]["model"] == "second-model"
    assert other.requests[0]["messages"] == chat.model.requests[0]["messages"]
    assert len(chat.model.requests) == 1
    assert turn.model == "second-model"
    assert "second-model of “Second”" in turn.notice
    assert why in turn.notice


def test_the_whole_turn_and_the_next_one_stay_with_it_for_a_while(
    chat: Chat, behind: ModelProvider, other: ScriptedModel
) -> None:
    """REL-643: nobody waits again for what has just failed; later it is asked again."""
    chat.model.fail(503)
    other.call(("counting__echo", {"text": "hi"}))
    other.say("It said hi")
    chat.ask()
    assert chat.server.calls == [("echo", {"text": "hi"})]
    other.say("Still me")
    turn = chat.ask("And now?")
    assert chat.answer() == "Still me"
    assert "Second" in turn.notice
    assert len(chat.model.requests) == 1
    standing_in._failures.clear()
    chat.model.say("I am back")
    turn = chat.ask("And now?")
    assert chat.answer() == "I am back"
    assert turn.notice == ""


def test_the_person_is_told_before_the_answer_comes(
    chat: Chat, behind: ModelProvider, other: ScriptedModel
) -> None:
    """REL-643: while they wait for the other one's first word."""
    hold = threading.Event()
    chat.model.fail(503)
    other.say("Later", hold=hold)
    sent = chat.send("Hello?")
    chat.watching.until(
        lambda event: (
            event["type"] == "turn.changed" and "Second" in (event["turn"]["notice"] or "")
        )
    )
    hold.set()
    chat.watching.turn(TurnStatus.COMPLETED)
    assert chat.reload(sent.turn).notice.count("Second") == 1


def test_nothing_changes_hands_in_the_middle_of_an_answer(
    chat: Chat, behind: ModelProvider, other: ScriptedModel
) -> None:
    """REL-643: what the person has begun to read is never replaced by another model's words."""
    chat.model.give(Answer([chunk({"content": "Once upon"})], breaks=True))
    turn = chat.ask()
    assert turn.status == TurnStatus.FAILED
    assert other.requests == []


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_fault_of_the_settings_is_told_and_not_hidden(
    chat: Chat, behind: ModelProvider, other: ScriptedModel, status: int
) -> None:
    """REL-643: a refused key or an unknown model is for somebody to correct."""
    chat.model.fail(status)
    assert chat.ask().status == TurnStatus.FAILED
    assert other.requests == []


def test_all_of_them_may_fail(chat: Chat, behind: ModelProvider, other: ScriptedModel) -> None:
    """REL-643: then the person is told; only the last one is asked again, and one that is off is passed over."""
    chat.model.fail(503)
    other.fail(503)
    other.fail(503)
    turn = chat.ask()
    assert turn.status == TurnStatus.FAILED
    assert (len(chat.model.requests), len(other.requests)) == (1, 2)
    standing_in._failures.clear()
    behind.is_active = False
    behind.save()
    chat.model.fail(503)
    assert chat.ask().status == TurnStatus.FAILED
    assert len(other.requests) == 2


def test_two_that_name_each_other_are_not_asked_in_turns(
    chat: Chat, behind: ModelProvider, other: ScriptedModel
) -> None:
    """REL-643: two administrators can save such a circle at the same moment; also where "at once" is the wait.

    The last one is asked as patiently as one that stands alone, and that is the end of it.
    """
    rows = ModelProvider.objects.for_workspace(chat.tenant.workspace)
    rows.filter(pk=behind.pk).update(fallback=chat.bud.provider)
    for model in (chat.model, other):
        for _n in range(8):
            model.fail(429, b"{}", **{"retry-after": "0"})
    turn = chat.ask()
    assert (turn.status, turn.error_code) == (TurnStatus.FAILED, "provider_rate_limited")
    assert (len(chat.model.requests), len(other.requests)) == (1, 1 + MOST_ATTEMPTS)


def test_without_anybody_to_stand_in_it_is_asked_again(
    chat: Chat, behind: ModelProvider, other: ScriptedModel
) -> None:
    """REL-643: where the one behind is off, a short failure ends no turn, as with a provider that stands alone."""
    behind.is_active = False
    behind.save()
    chat.model.fail(503)
    chat.model.say("Here I am")
    turn = chat.ask()
    assert turn.status == TurnStatus.COMPLETED
    assert chat.answer() == "Here I am"
    assert turn.notice == ""
    assert other.requests == []


def test_a_provider_cannot_stand_in_for_itself(tenant: Tenant) -> None:
    """REL-643: a chain ends; and only providers of the same workspace can be named."""

    def draft(name: str, behind: ModelProvider | None) -> ProviderDraft:
        return ProviderDraft(
            name=name,
            base_url="https://models.example.org/v1",
            default_model="m",
            fallback_id=behind.pk if behind else None,
        )

    actor = tenant.actor()
    first = add_provider(workspace=tenant.workspace, draft=draft("a", None), actor=actor)
    second = add_provider(workspace=tenant.workspace, draft=draft("b", first), actor=actor)
    for behind in (first, second):
        with pytest.raises(InvalidInput) as refused:
            change_provider(provider=first, draft=draft("a", behind), actor=actor)
        assert "fallback" in refused.value.fields


def test_no_provider_of_another_workspace_can_be_named(two_workspaces: TwoTenants) -> None:
    """SEC-03: neither in a service nor over REST."""
    a, b = two_workspaces.a, two_workspaces.b
    foreign = ModelProvider.objects.create(
        workspace=b.workspace, name=CANARY, base_url="https://x.example.org/v1", default_model="m"
    )
    body = {
        "name": "mine",
        "base_url": "https://models.example.org/v1",
        "default_model": "m",
        "fallback": str(foreign.pk),
    }
    answer = a.client("admin").post(
        "/api/providers/",
        body,
        content_type="application/json",
        headers={"X-Workspace": a.workspace.slug},
    )
    assert answer.status_code == 422
    assert CANARY not in answer.content.decode()
    assert not ModelProvider.objects.for_workspace(a.workspace).exists()


@pytest.mark.parametrize("sends_head", [True, False])
def test_nobody_waits_two_minutes_for_a_provider_that_hangs(
    chat: Chat,
    behind: ModelProvider,
    other: ScriptedModel,
    mute: str,
    short_patience: None,
    *,
    sends_head: bool,
) -> None:
    """REL-1501: it takes the connection and sends nothing, or its head alone. The person reads what they wait for."""
    if sends_head:
        chat.model.give(Answer([], hangs=True))
    else:
        rows = ModelProvider.objects.for_workspace(chat.tenant.workspace)
        rows.exclude(pk=behind.pk).update(base_url=mute)
    other.say("Hello from the second")
    started = time.monotonic()
    sent = chat.send("Hello?")
    chat.watching.until(
        lambda event: (
            event["type"] == "turn.changed"
            and "has not begun to answer. If it stays silent, another"
            in (event["turn"]["notice"] or "")
        )
    )
    chat.watching.turn(TurnStatus.COMPLETED)
    assert time.monotonic() - started < 15
    assert chat.answer() == "Hello from the second"
    turn = chat.reload(sent.turn)
    assert "did not answer in time. second-model of “Second” answers instead" in turn.notice
    assert "has not begun" not in turn.notice


def test_a_provider_that_shows_life_is_waited_for(
    chat: Chat, behind: ModelProvider, other: ScriptedModel, short_patience: None
) -> None:
    """REL-1501: comments while a model thinks are no answer, but nobody calls them silence."""
    hold = threading.Event()
    chat.model.give(Answer([b": thinking\n\n", hold, *_answer("Well thought")]))
    threading.Timer(2.5, hold.set).start()
    turn = chat.ask("Hello?")
    assert (turn.status, chat.answer()) == (TurnStatus.COMPLETED, "Well thought")
    assert other.requests == []
    assert turn.notice == ""


def test_where_nobody_can_stand_in_a_silent_provider_is_waited_for(
    chat: Chat, behind: ModelProvider, other: ScriptedModel, short_patience: None
) -> None:
    """REL-1501: the one behind it is off, so it is asked again as one that stands alone."""
    behind.is_active = False
    behind.save()
    hold = threading.Event()
    chat.model.give(Answer([], hangs=True))
    chat.model.give(Answer([hold, *_answer("At last")]))
    threading.Timer(3.5, hold.set).start()
    turn = chat.ask("Hello?")
    assert (turn.status, chat.answer()) == (TurnStatus.COMPLETED, "At last")
    assert turn.notice == ""


def test_a_stopped_turn_does_not_say_for_ever_that_it_waits(
    chat: Chat, short_patience: None
) -> None:
    """REL-1501: the sentence goes when somebody stops the turn, too."""
    chat.model.give(Answer([], hangs=True))
    sent = chat.send("Hello?")
    chat.watching.until(
        lambda event: (
            event["type"] == "turn.changed"
            and "You can keep waiting, or stop." in (event["turn"]["notice"] or "")
        )
    )
    stop_turn(turn=sent.turn, actor=chat.actor)
    chat.watching.turn(TurnStatus.CANCELLED)
    assert chat.reload(sent.turn).notice == ""


_PAGE = b"<!doctype html><title>Sign in to the Wi-Fi</title>"
_HTML = {"content-type": "text/html; charset=utf-8"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer([_PAGE], headers=_HTML), "A web page came instead"),
        (Answer([_PAGE], status=403, headers=_HTML), "A web page came instead"),
        (Answer([], status=302, headers={"location": "http://login.example/"}), "elsewhere"),
        (Answer([]), "is not an answer"),
        (Answer([b"data: <html>\n\n"]), "is not an answer"),
    ],
    ids=["page", "wall", "redirect", "empty", "broken"],
)
def test_another_provider_answers_where_a_web_page_came(
    chat: Chat, behind: ModelProvider, other: ScriptedModel, answer: Answer, why: str
) -> None:
    """REL-1502: a captive portal or a gateway has answered, and no provider has refused anything."""
    chat.model.give(answer)
    other.say("Hello from the second")
    turn = chat.ask("Hello?")
    assert turn.status == TurnStatus.COMPLETED
    assert chat.answer() == "Hello from the second"
    assert why in turn.notice
    assert "Second" in turn.notice


def test_a_web_page_without_anybody_to_stand_in(chat: Chat) -> None:
    """REL-1502: the person reads what to do; the page itself is not shown."""
    chat.model.give(Answer([_PAGE], headers=_HTML))
    turn = chat.ask("Hello?")
    assert (turn.status, turn.error_code) == (TurnStatus.FAILED, "provider_bad_answer")
    assert "a proxy or sign-in page stands before it" in turn.error_message
    assert "Wi-Fi" not in turn.error_message


def _answer(text: str) -> list[bytes]:
    return [chunk({"content": text}), chunk({}, "stop"), DONE]
