"""A workspace's limits for a provider: requests wait their turn, in every process, and nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from uuid_utils.compat import uuid7

from chat.engine.side_requests import ask_aside
from chat.models import Bud, ModelProvider, ModelRequest
from chat.providers import limits, model_requests
from chat.providers.base import ProviderLimits
from chat.providers.choosing import platform_model, platform_provider, provider_for
from chat.providers.errors import ProviderBusy, ProviderSwitchedOff
from chat.providers.specs import spec_of
from chat.services.conversations import create_conversation
from chat.services.turns import stop_turn
from chat.values import TurnStatus
from tests.chat.conftest import Chat, Watching
from tests.factories import Tenant, TwoTenants
from tests.fakes.scripted_model import ScriptedModel
from tests.patience import PATIENCE, wait_until
from tests.threads import Threads
from workspaces.database import database_now


@pytest.fixture
def provider(chat: Chat) -> ModelProvider:
    """The chat's provider."""
    assert chat.bud.provider is not None
    return chat.bud.provider


def limit(provider: ModelProvider, **values: int) -> ProviderLimits:
    ModelProvider.objects.for_workspace(provider.workspace_id).filter(pk=provider.pk).update(
        **values
    )
    provider.refresh_from_db()
    found = spec_of(provider).limits
    assert found is not None
    return found


def another(chat: Chat) -> Chat:
    """A second conversation of the same person with the same bud."""
    conversation = create_conversation(bud=chat.bud, owner=chat.tenant.member, actor=chat.actor)
    return replace(chat, conversation=conversation)


def waits(watching: Watching, words: str) -> None:
    watching.until(
        lambda event: event["type"] == "turn.changed" and words in (event["turn"]["notice"] or "")
    )


@pytest.mark.both_engines
def test_a_request_waits_for_its_place_and_the_person_reads_why(
    chat: Chat, provider: ModelProvider, hold: threading.Event
) -> None:
    """REL-646: the provider gets no more at once; the sentence goes when the wait is over."""
    limit(provider, most_at_once=1)
    chat.model.say("the first", hold=hold)
    chat.send("one")
    chat.watching.until(lambda event: event["type"] == "text.delta")
    second = another(chat)
    sent = second.send("two")
    waits(
        second.watching, "Your question waits its turn. “scripted” takes at most 1 request at once."
    )
    assert len(chat.model.requests) == 1
    chat.model.say("second")
    hold.set()
    second.watching.turn(TurnStatus.COMPLETED)
    assert second.answer() == "second"
    assert second.reload(sent.turn).notice == ""
    second.watching.close()


def test_places_are_given_in_the_order_of_coming(provider: ModelProvider) -> None:
    """REL-646: who came later does not pass who asks less often."""
    bounds = limit(provider, most_at_once=1)
    first, second, third = uuid7(), uuid7(), uuid7()
    assert limits.ask_for_place(bounds, first).has_started
    assert limits.ask_for_place(bounds, second).ahead == 0
    assert limits.ask_for_place(bounds, third).ahead == 1
    limits.give_back(bounds, first)
    assert not limits.ask_for_place(bounds, third).has_started
    assert limits.ask_for_place(bounds, second).has_started


def test_what_was_sent_counts_for_a_minute(provider: ModelProvider) -> None:
    """REL-646: also when its answer came at once; then it is forgotten."""
    bounds = limit(provider, most_a_minute=2)
    for _ in range(2):
        place = uuid7()
        assert limits.ask_for_place(bounds, place).has_started
        limits.give_back(bounds, place)
    late = uuid7()
    place_of_late = limits.ask_for_place(bounds, late)
    assert not place_of_late.has_started
    assert "takes at most 2 requests a minute" in place_of_late.reason
    rows = ModelRequest.objects.for_workspace(provider.workspace_id)
    rows.update(started_at=F("started_at") - timedelta(seconds=61))
    assert limits.ask_for_place(bounds, late).has_started
    rows.update(ended_at=database_now(), started_at=database_now() - timedelta(seconds=61))
    assert limits.forget_requests() == 3


def test_a_dead_process_gives_its_places_back(provider: ModelProvider) -> None:
    """REL-646: those that ran and those that waited, when their leases run out."""
    bounds = limit(provider, most_at_once=1)
    running, waiting, alive = uuid7(), uuid7(), uuid7()
    for place in (running, waiting, alive):
        limits.ask_for_place(bounds, place)
    rows = ModelRequest.objects.for_workspace(provider.workspace_id)
    rows.filter(pk__in=[running, waiting]).update(alive_until=database_now() - timedelta(seconds=1))
    assert limits.ask_for_place(bounds, alive).has_started


@pytest.mark.both_engines
def test_many_at_one_moment_get_exactly_as_many_places(provider: ModelProvider) -> None:
    """REL-646: whichever process or thread asks."""
    bounds = limit(provider, most_at_once=3)
    start = threading.Barrier(12)

    def ask() -> bool:
        start.wait(PATIENCE)
        return limits.ask_for_place(bounds, uuid7()).has_started

    with Threads(12) as pool:
        asked = [pool.submit(ask) for _ in range(12)]
        assert sum(one.result(PATIENCE) for one in asked) == 3


def test_nobody_waits_for_ever(
    chat: Chat, provider: ModelProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-646: then the person reads why, and can try again; the place is not kept."""
    monkeypatch.setattr(model_requests, "LONGEST_WAIT_SECONDS", 0.1)
    bounds = limit(provider, most_at_once=1)
    limits.ask_for_place(bounds, uuid7())
    turn = chat.ask()
    assert turn.status == TurnStatus.FAILED
    assert turn.error_code == "provider_busy"
    assert "takes at most 1 request at once" in turn.error_message
    assert limits.load_of(provider) == limits.ProviderLoad(running=1, waiting=0, in_last_minute=1)


def test_a_provider_that_is_deleted_meanwhile_is_told(provider: ModelProvider) -> None:
    """REL-646: as one that is switched off."""
    bounds = limit(provider, most_at_once=1)
    gone = replace(bounds, provider_id=uuid7())
    with pytest.raises(ProviderSwitchedOff):
        limits.ask_for_place(gone, uuid7())


def test_the_line_has_an_end(provider: ModelProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-646: whoever comes when so many wait is told at once."""
    monkeypatch.setattr(limits, "MOST_WAITING", 1)
    bounds = limit(provider, most_at_once=1)
    for _ in range(2):
        limits.ask_for_place(bounds, uuid7())
    with pytest.raises(ProviderBusy):
        limits.ask_for_place(bounds, uuid7())


def test_a_person_who_stops_waiting_leaves_the_line(chat: Chat, provider: ModelProvider) -> None:
    """REL-646: nobody stands behind somebody who has gone."""
    bounds = limit(provider, most_at_once=1)
    limits.ask_for_place(bounds, uuid7())
    sent = chat.send()
    waits(chat.watching, "at once.")
    stop_turn(turn=chat.reload(sent.turn), actor=chat.actor)
    chat.watching.turn(TurnStatus.CANCELLED)
    wait_until(lambda: limits.load_of(provider).waiting == 0)


def test_another_provider_answers_where_one_is_busy(
    chat: Chat, provider: ModelProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-646: after a short wait; nobody says that the busy one had failed."""
    monkeypatch.setattr(model_requests, "SHORT_WAIT_SECONDS", 0.1)
    other = ScriptedModel()
    behind = ModelProvider.objects.create(
        workspace=chat.tenant.workspace, name="Second", base_url=other.base_url, default_model="s"
    )
    ModelProvider.objects.for_workspace(chat.tenant.workspace).filter(pk=provider.pk).update(
        fallback=behind
    )
    bounds = limit(provider, most_at_once=1)
    limits.ask_for_place(bounds, uuid7())
    other.say("I have time")
    try:
        turn = chat.ask()
    finally:
        other.stop()
    assert chat.answer() == "I have time"
    assert "s of “Second” answers instead" in turn.notice
    assert "failed" not in turn.notice


def test_titles_and_summaries_wait_too(
    chat: Chat, provider: ModelProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-646: whatever is asked of the provider, and not answers of chats alone."""
    monkeypatch.setattr(model_requests, "LONGEST_WAIT_SECONDS", 0.1)
    bounds = limit(provider, most_at_once=1)
    limits.ask_for_place(bounds, uuid7())
    with pytest.raises(ProviderBusy):
        ask_aside(
            spec_of(provider), prompt="p", question="q", seconds=PATIENCE, most=100, bill=None
        )
    assert chat.model.requests == []


def test_limits_are_set_over_rest_and_shown_on_the_page(tenant: Tenant) -> None:
    """REL-646: with what goes on now."""
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="p",
        base_url="https://models.example.org/v1",
        default_model="m",
    )
    client = tenant.client("admin")

    def change(**values: object) -> tuple[int, dict[str, object]]:
        answer = client.patch(
            f"/api/providers/{provider.pk}/",
            values,
            content_type="application/json",
            headers={"X-Workspace": tenant.workspace.slug},
        )
        return answer.status_code, answer.json()

    status, body = change(most_at_once=4, most_a_minute=60)
    assert (status, body["most_at_once"], body["most_a_minute"]) == (200, 4, 60)
    assert change(most_at_once=0)[0] == 400
    assert change(name="q")[1]["most_at_once"] == 4
    provider.refresh_from_db()
    found = spec_of(provider).limits
    assert found is not None
    limits.ask_for_place(found, uuid7())
    page = client.get(f"/w/{tenant.workspace.slug}/providers/{provider.pk}/").content.decode()
    assert "At most 4 at once." in page
    assert "At most 60 a minute." in page
    assert "Now: 1 running, 0 waiting, 1 in the last minute." in page
    assert change(most_at_once=None, most_a_minute=None)[1]["most_at_once"] is None


@pytest.fixture
def platform(settings: Any) -> Iterator[None]:
    """The platform's own provider, which takes one request at once and two a minute."""
    update = {
        "openai_base_url": "https://models.example.org/v1",
        "openai_most_at_once": 1,
        "openai_most_a_minute": 2,
    }
    settings.TRELLIS = settings.TRELLIS.model_copy(update=update)
    platform_provider.cache_clear()
    yield
    platform_provider.cache_clear()


@pytest.mark.django_db
@pytest.mark.both_engines
def test_the_platforms_provider_is_shared_by_all_workspaces(
    platform: None, two_workspaces: TwoTenants
) -> None:
    """REL-595: one workspace's request waits for another's, whichever model of it they ask."""
    of_a = platform_model(two_workspaces.a.workspace.pk).limits
    of_b = platform_model(two_workspaces.b.workspace.pk, "large").limits
    assert of_a is not None
    assert of_b is not None
    first, second, third = uuid7(), uuid7(), uuid7()
    assert limits.ask_for_place(of_a, first).has_started
    place = limits.ask_for_place(of_b, second)
    assert not place.has_started
    assert place.reason == "“Platform” takes at most 1 request at once."
    limits.give_back(of_a, first)
    assert limits.ask_for_place(of_b, second).has_started
    limits.give_back(of_b, second)
    assert "2 requests a minute" in limits.ask_for_place(of_a, third).reason
    owners = {row.pk: row.workspace_id for row in ModelRequest.objects.across_workspaces()}
    assert owners[first] == two_workspaces.a.workspace.pk
    assert owners[second] == two_workspaces.b.workspace.pk


def test_the_platforms_limits_hold_for_its_models_and_for_no_other_provider(
    platform: None, chat: Chat
) -> None:
    """REL-595: a bud without a provider of its own asks the platform's; with its own model, too."""
    assert provider_for(chat.bud).limits is None
    for model in ("", "large"):
        bud = Bud(workspace_id=chat.bud.workspace_id, model=model)
        found = provider_for(bud).limits
        assert found is not None
        assert (found.workspace_id, found.provider_id) == (bud.workspace_id, None)
