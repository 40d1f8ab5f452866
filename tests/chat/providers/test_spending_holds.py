"""What is under way counts against the limits of a month, until it has ended."""

from __future__ import annotations

import asyncio
import threading
from contextlib import nullcontext
from datetime import timedelta
from decimal import Decimal

import pytest

from chat.engine.titles import title_conversation
from chat.models import (
    Conversation,
    Message,
    SpendingHold,
    Turn,
)
from chat.providers.base import MonthLimit, TokenCount
from chat.providers.errors import ProviderError, SpendingLimitReached
from chat.providers.known_models import Prices
from chat.providers.months import current_month
from chat.providers.spending import (
    LimitOwner,
    allowance_for,
)
from chat.providers.spending_holds import RequestingTurn, hold_for
from chat.providers.spending_refusals import RULES
from chat.providers.spending_words import refusal_in_words
from chat.sampling import ask_model
from chat.services.conversations import create_conversation
from chat.services.turns import retry_turn, send_message, stop_turn
from chat.values import MessageRole, MessageStatus, TurnStatus
from mcp_servers.client.connections import runtime
from mcp_servers.registry.sampling import SamplingTask
from tests.chat.conftest import Chat, Watching
from tests.chat.providers.spending import (
    ask,
    limit,
    payer_of,
    refusals,
    sampling,
    spec_of_bud,
    spent,
)
from tests.fakes.scripted_model import Answer, chunk
from tests.patience import PATIENCE, wait_until
from tests.threads import Threads
from workspaces.database import database_now


def other_chats(chat: Chat, count: int) -> list[tuple[Conversation, Watching]]:
    made = [
        create_conversation(bud=chat.bud, owner=chat.tenant.member, actor=chat.actor)
        for _ in range(count)
    ]
    return [(one, Watching(one.pk)) for one in made]


def begin_answer(chat: Chat, one: Conversation, watch: Watching, hold: threading.Event) -> None:
    """Ask, and wait until the model has begun to answer."""
    chat.model.say("one two", hold=hold)
    send_message(conversation=one, client_id="c", text="go", actor=chat.actor)
    watch.until(lambda event: event["type"] == "text.delta")


def test_what_is_under_way_stands_in_the_way_of_more(priced: Chat, hold: threading.Event) -> None:
    """REL-1383: an answer that is being written is finished. Whoever asks beside it reads why not now, and may later."""
    limit(priced.tenant, member=MonthLimit(tokens=1_000))
    [(one, watch)] = other_chats(priced, 1)
    begin_answer(priced, one, watch, hold)
    row = Turn.objects.for_workspace(priced.tenant.workspace).get()
    assert row.held_tokens is not None
    assert 1_000 < row.held_tokens < 3_000
    assert row.held_cost == Decimal(row.held_tokens) / 1_000_000
    refused = priced.ask()
    assert refused.error_code == "spending_limit_reached"
    assert refused.can_retry
    assert refused.error_message == (
        "Answers that are being written now may use what is left of your monthly spending limit. So far, 0 of 1,000"
        " tokens is used. Try again when they have ended."
    )
    [entry] = refusals(priced.tenant)
    assert entry.rule == "spending.member.held"
    assert entry.rule in RULES
    refused.refresh_from_db()
    assert refused.held_tokens is None
    hold.set()
    watch.turn("completed")
    watch.close()
    assert (
        not Turn.objects.for_workspace(priced.tenant.workspace).exclude(held_tokens=None).exists()
    )
    priced.model.say("now")
    priced.watching.forget()
    retry_turn(turn=refused, actor=priced.actor)
    assert priced.watching.turn("completed")
    assert spent(priced.tenant, priced.tenant.member).tokens < 1_000


@pytest.mark.both_engines
@pytest.mark.parametrize("kind", ["in a turn", "outside of one", "title", "failed", "cancelled"])
def test_what_is_asked_beside_steps_stands_in_the_way_of_more(
    priced: Chat, hold: threading.Event, kind: str
) -> None:
    """REL-1650, REL-1741: two at one moment do not pass the limit, in a turn or not; what one held is free afterwards."""
    tenant = priced.tenant
    turn = ask(priced)
    limit(tenant, member=MonthLimit(tokens=1_000))
    rows = SpendingHold.objects.for_workspace(tenant.workspace)
    task = sampling(priced, turn_id=turn.pk if kind == "in a turn" else None)
    priced.model.clear()
    if kind == "failed":
        priced.model.give(Answer([chunk({"content": "one"}), hold], breaks=True))
    elif kind == "cancelled":
        priced.model.give(Answer([chunk({"content": "one"})], hangs=True))
    else:
        priced.model.say("one two", hold=hold)

    def begin() -> object:
        if kind == "title":
            return title_conversation(tenant.workspace.pk, priced.conversation.pk)
        if kind == "cancelled":
            return runtime.run_sync(leave_sampling(task, hold), timeout_seconds=PATIENCE)
        return sample(task)

    with Threads(1) as threads:
        first = threads.submit(begin)
        wait_until(lambda: priced.model.requests, what="the request")
        held = rows.get()
        assert held.tokens > 1_000
        assert held.cost == Decimal(held.tokens) / 1_000_000
        with pytest.raises(SpendingLimitReached, match="may use what is left"):
            sample(sampling(priced))
        assert rows.get() == held
        hold.set()
        with pytest.raises(ProviderError) if kind == "failed" else nullcontext():
            first.result(PATIENCE)
    assert not rows.exists()
    priced.model.say("now")
    assert sample(task) == "now"
    assert refusals(tenant)[-1].details["wanted"] == "sampling for counting"


def sample(task: SamplingTask) -> str:
    return runtime.run_sync(ask_model(task), timeout_seconds=PATIENCE).text


async def leave_sampling(task: SamplingTask, leave: threading.Event) -> None:
    asked = asyncio.ensure_future(ask_model(task))
    await asyncio.to_thread(leave.wait, PATIENCE)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked


def test_what_a_dead_process_asked_beside_steps_is_free_with_its_lease(priced: Chat) -> None:
    """REL-1741: nobody has to give it back. The next request that holds something deletes it."""
    limit(priced.tenant, member=MonthLimit(tokens=1_000))
    rows = SpendingHold.objects.for_workspace(priced.tenant.workspace)
    left = SpendingHold.objects.create(
        workspace=priced.tenant.workspace,
        person=priced.tenant.member.pk,
        tokens=1_000,
        cost=0,
        shared_cost=0,
        alive_until=database_now() + timedelta(minutes=1),
    )
    with pytest.raises(SpendingLimitReached, match="may use what is left"):
        sample(sampling(priced))
    rows.update(alive_until=database_now() - timedelta(seconds=1))
    priced.model.say("now")
    assert sample(sampling(priced)) == "now"
    assert not rows.filter(pk=left.pk).exists()


def test_what_is_under_way_for_others_stands_in_nobodys_own_way(
    priced: Chat, hold: threading.Event
) -> None:
    """REL-1383: a member's limit is theirs. The workspace's is everybody's, and says so."""
    limit(priced.tenant, member=MonthLimit(tokens=1_000))
    [(one, watch)] = other_chats(priced, 1)
    begin_answer(priced, one, watch, hold)
    payer = payer_of(priced.tenant, priced.tenant.owner)
    spec = spec_of_bud(priced)
    assert allowance_for(payer, spec).reached is None
    limit(priced.tenant, workspace=MonthLimit(cost=Decimal("0.001")))
    found = allowance_for(payer, spec).reached
    assert found is not None
    assert (found.whose, found.is_reached) == (LimitOwner.WORKSPACE, False)
    assert "this workspace's monthly spending limit" in refusal_in_words(
        found, current_month(""), "p"
    )
    hold.set()
    watch.turn("completed")
    watch.close()
    assert allowance_for(payer, spec).reached is None


def test_what_a_dead_process_held_is_free_with_its_lease(
    priced: Chat, hold: threading.Event
) -> None:
    """REL-1384: nobody has to give it back."""
    limit(priced.tenant, member=MonthLimit(tokens=1_000))
    [(one, watch)] = other_chats(priced, 1)
    begin_answer(priced, one, watch, hold)
    payer, spec = payer_of(priced.tenant, priced.tenant.member), spec_of_bud(priced)
    assert allowance_for(payer, spec).reached is not None
    rows = Turn.objects.for_workspace(priced.tenant.workspace)
    until = rows.get().lease_until
    rows.update(lease_until=database_now() - timedelta(seconds=1))
    assert allowance_for(payer, spec).reached is None
    rows.update(lease_until=until)
    hold.set()
    watch.turn("completed")
    watch.close()


@pytest.mark.parametrize("end", ["stopped", "failed"])
def test_an_answer_that_breaks_off_holds_nothing(
    priced: Chat, hold: threading.Event, end: str
) -> None:
    """REL-1384: whether or not it has cost something."""
    limit(priced.tenant, member=MonthLimit(tokens=1_000))
    if end == "failed":
        priced.model.fail(500)
        turn = priced.ask()
    else:
        priced.model.say("one two", hold=hold)
        turn = priced.send().turn
        priced.watching.until(lambda event: event["type"] == "text.delta")
        stop_turn(turn=turn, actor=priced.actor)
        priced.watching.turn("cancelled")
        hold.set()
    turn.refresh_from_db()
    assert turn.held_tokens is None


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_requests_that_begin_at_one_moment_come_one_after_the_other(priced: Chat) -> None:
    """REL-1383: whichever process lets them through, no more begin than there is room for."""
    expected = TokenCount(prompt=40, completion=60)
    limit(priced.tenant, workspace=MonthLimit(tokens=250))
    payer, spec = payer_of(priced.tenant, priced.tenant.member), spec_of_bud(priced)
    chats = other_chats(priced, 8)
    for _one, watch in chats:
        watch.close()
    turns = [_running_turn(priced, one) for one, _watch in chats]

    def begin(turn: Turn) -> bool:
        asking = RequestingTurn(turn_id=turn.pk, lease_token=turn.lease_token, expected=expected)
        return hold_for(payer, spec, "", Prices(), asking).allowance.reached is None

    with Threads(8) as threads:
        begun = [one.result() for one in [threads.submit(begin, turn) for turn in turns]]
    assert sum(begun) == 3  # a third one begins while there is something left
    for turn, has_begun in zip(turns, begun, strict=True):
        turn.refresh_from_db()
        assert turn.held_tokens == (100 if has_begun else None)
    asked_again = turns[begun.index(True)]
    assert begin(asked_again), "what it holds itself does not stand in its way"


def _running_turn(chat: Chat, conversation: Conversation) -> Turn:
    question = Message.objects.create(
        workspace=chat.tenant.workspace,
        conversation=conversation,
        role=MessageRole.USER.value,
        status=MessageStatus.COMPLETE.value,
        text="go",
        order_key=1,
    )
    return Turn.objects.create(
        workspace=chat.tenant.workspace,
        conversation=conversation,
        user_message=question,
        asked_by=chat.tenant.member,
        source="web",
        status=TurnStatus.RUNNING.value,
        lease_token=1,
        lease_until=database_now() + timedelta(minutes=5),
    )
