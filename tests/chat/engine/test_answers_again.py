"""Answers that are written again, gone on from, and rated."""

from __future__ import annotations

import pytest
from django.urls import reverse

from chat.models import Message, ModelProvider, ProviderModel, Turn
from chat.services.branches import regenerate
from chat.services.turns import continue_turn, rate_turn
from chat.values import Rating, Wish
from tests.chat.conftest import Chat
from tests.chat.services.branching import ask, asked_of_the_model, texts_of
from tests.factories import Tenant, TwoTenants
from tests.fakes.scripted_model import DONE, Answer, chunk, usage
from workspaces.errors import Conflict, InvalidInput, PermissionDenied


def cut(chat: Chat, text: str) -> None:
    """The model's next answer reaches its greatest length."""
    chat.model.give(Answer([chunk({"content": text}), chunk({}, "length"), usage(), DONE]))


@pytest.mark.both_engines
def test_an_answer_is_written_again_in_another_way(chat: Chat) -> None:
    """REL-423: the model reads the earlier answer with the wish; later questions read the new answer alone."""
    turn = ask(chat, "one", "first")
    chat.model.say("brief")
    chat.watching.forget()
    again = regenerate(turn=turn, client_id="s", actor=chat.actor, wish=Wish.SHORTER)
    chat.watching.turn("completed")
    question, before, wish = asked_of_the_model(chat)
    assert (question, before) == ("one", "first")
    assert "much shorter" in wish
    assert texts_of(chat) == ["one", "brief"]
    assert regenerate(turn=turn, client_id="s", actor=chat.actor, wish=Wish.SHORTER).pk == again.pk
    with pytest.raises(Conflict):
        regenerate(turn=turn, client_id="s", actor=chat.actor, wish=Wish.LONGER)
    ask(chat, "two", "second")
    assert asked_of_the_model(chat) == ["one", "brief", "two"]


def test_another_model_writes_one_answer(chat: Chat) -> None:
    """REL-423: this once; the conversation stays with its own."""
    turn = ask(chat, "one", "first")
    provider = ModelProvider.objects.for_workspace(chat.tenant.workspace).get()
    ProviderModel.objects.create(
        workspace=chat.tenant.workspace, provider=provider, model="other-model"
    )
    chat.model.say("again")
    chat.watching.forget()
    regenerate(turn=turn, client_id="m", actor=chat.actor, model=(provider.pk, "other-model"))
    chat.watching.turn("completed")
    assert chat.model.requests[-1]["model"] == "other-model"
    ask(chat, "two", "second")
    assert chat.model.requests[-1]["model"] != "other-model"


def test_models_of_others_and_for_fixed_buds_answer_nothing(
    chat: Chat, two_workspaces: TwoTenants
) -> None:
    """SEC-323: neither a foreign provider's model, nor an unknown one, nor another one of a bud whose model is fixed."""
    turn = ask(chat, "one", "first")
    foreign = ModelProvider.objects.create(
        workspace=two_workspaces.b.workspace,
        name="x",
        base_url="https://x.example/v1",
        default_model="theirs",
    )
    provider = ModelProvider.objects.for_workspace(chat.tenant.workspace).get()
    for model in ((foreign.pk, "theirs"), (provider.pk, "unknown")):
        with pytest.raises(InvalidInput):
            regenerate(turn=turn, client_id="x", actor=chat.actor, model=model)
    assert Turn.objects.for_workspace(chat.tenant.workspace).count() == 1


@pytest.mark.both_engines
def test_an_answer_that_was_cut_off_goes_on_where_it_ends(chat: Chat) -> None:
    """REL-424: within its turn, as often as it is cut; the model reads one answer, and later questions too."""
    cut(chat, "Once upon a ti")
    turn = chat.ask("Tell")
    cut(chat, "me there was ")
    chat.watching.forget()
    continue_turn(turn=turn, actor=chat.actor)
    chat.watching.turn("completed")
    question, start, go_on = asked_of_the_model(chat)
    assert (question, start) == ("Tell", "Once upon a ti")
    assert "Continue exactly where it ends" in go_on
    chat.model.say("an end")
    chat.watching.forget()
    continue_turn(turn=turn, actor=chat.actor)
    chat.watching.turn("completed")
    assert asked_of_the_model(chat)[1] == "Once upon a time there was "
    rows = Message.objects.for_workspace(chat.tenant.workspace).filter(turn=turn, role="assistant")
    assert [(row.step, bool(row.json_meta.get("is_cut"))) for row in rows] == [
        (0, True),
        (1, True),
        (2, False),
    ]
    ask(chat, "And then?", "nothing")
    assert asked_of_the_model(chat) == ["Tell", "Once upon a time there was an end", "And then?"]
    with pytest.raises(Conflict):
        continue_turn(turn=turn, actor=chat.actor)


def test_a_whole_answer_has_nothing_to_go_on_with(chat: Chat) -> None:
    """REL-424: it is refused in words, over REST as well."""
    turn = ask(chat, "one", "first")
    with pytest.raises(Conflict, match="was not cut off"):
        continue_turn(turn=turn, actor=chat.actor)
    client = chat.tenant.client("member")
    header = {"X-Workspace": chat.tenant.workspace.slug}
    answer = client.post(f"/api/turns/{turn.pk}/continue/", headers=header)
    assert answer.status_code == 409
    for body in (
        {"client_id": "a", "wish": "rude"},
        {"client_id": "a", "model": {"name": "x"}},
        {"client_id": "a", "model": {"provider_id": None, "name": "unknown"}},
    ):
        answer = client.post(
            f"/api/turns/{turn.pk}/regenerate/",
            body,
            content_type="application/json",
            headers=header,
        )
        assert answer.status_code in (400, 422), body


def test_an_answer_is_rated_and_the_rating_taken_back(chat: Chat) -> None:
    """REL-425: with a reason, told to all pages; only by the person who asked."""
    turn = ask(chat, "one", "first")
    chat.watching.forget()
    rate_turn(turn=turn, rating=Rating.BAD, reason="  wrong city ", actor=chat.actor)
    changed = chat.watching.until(lambda event: event["type"] == "turn.changed")["turn"]
    assert (changed["rating"], changed["rating_reason"]) == ("bad", "wrong city")
    client = chat.tenant.client("member")
    header = {"X-Workspace": chat.tenant.workspace.slug}

    def rate(body: object) -> int:
        address = f"/api/turns/{turn.pk}/rate/"
        return client.post(
            address, body, content_type="application/json", headers=header
        ).status_code

    assert rate({"rating": "good"}) == 200
    assert chat.reload(turn).rating == "good"
    assert rate({"rating": None}) == 200
    turn = chat.reload(turn)
    assert (turn.rating, turn.rating_reason, turn.rated_at) == ("", "", None)
    assert rate({"rating": "great"}) == 400
    assert rate({"rating": "bad", "reason": "x" * 1001}) == 400
    with pytest.raises(InvalidInput):
        rate_turn(turn=turn, rating=Rating.BAD, reason="\x00", actor=chat.actor)
    with pytest.raises(PermissionDenied):
        rate_turn(turn=turn, rating=Rating.BAD, actor=chat.tenant.actor("admin"))


def test_administrators_see_ratings_without_what_was_said(chat: Chat, tenant: Tenant) -> None:
    """REL-425: verdict, reason, bud and model, to be filtered; neither question nor answer."""
    good, bad = ask(chat, "SECRET QUESTION", "SECRET ANSWER"), ask(chat, "two", "second")
    rate_turn(turn=good, rating=Rating.GOOD, actor=chat.actor)
    rate_turn(turn=bad, rating=Rating.BAD, reason="too vague", actor=chat.actor)
    client = tenant.client("admin")
    page = client.get(reverse("admin:chat_turn_changelist")).content.decode()
    assert "too vague" in page
    assert "SECRET" not in page
    only = client.get(reverse("admin:chat_turn_changelist"), {"rating__exact": "good"})
    assert "too vague" not in only.content.decode()
    detail = client.get(reverse("admin:chat_turn_change", args=[bad.pk])).content.decode()
    assert "SECRET" not in detail
