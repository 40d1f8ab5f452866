"""What a process does now and then for all its turns and pages, it does for all at once."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from uuid import UUID

import pytest
from django.db import transaction

from audit.sealing import sealing_thread
from chat.engine import leases, runner, steps
from chat.engine.leases import Lease
from chat.models import Conversation, Message, Turn
from chat.services.conversations import create_conversation
from chat.services.turns import send_message
from chat.sockets import rounds
from chat.sockets.socket_access import SocketAccess
from chat.values import MessageStatus
from mcp_servers.gate.caller import Standing
from tests.chat.conftest import Chat
from tests.chat.sockets.pages import opened
from tests.locks import until_somebody_waits
from tests.patience import PATIENCE
from tests.price import Price, counted
from tests.threads import Threads
from workspaces.database import database_now

Begun = list[tuple[Lease, Message]]


@pytest.fixture
def begun(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> Begun:
    """Five turns in as many conversations, taken with their messages, that nobody works on."""
    taken: Begun = []
    monkeypatch.setattr(runner, "start", lambda lease, answer: taken.append((lease, answer)))
    for number in range(5):
        conversation = create_conversation(bud=chat.bud, owner=chat.tenant.member, actor=chat.actor)
        send_message(conversation=conversation, client_id=f"c{number}", text="go", actor=chat.actor)
    return taken


def test_leases_are_renewed_together(chat: Chat, begun: Begun) -> None:
    """REL-311: two statements for all; each still learns for itself that it is lost, or has to stop."""
    held = [lease for lease, _ in begun]
    mine = Turn.objects.for_workspace(chat.tenant.workspace)
    mine.update(lease_until=database_now())
    with counted() as price:
        renewed = leases.renew_all(held)
    assert (len(price.statements), price.commits) == (2, 1), price.in_words()
    assert (renewed.lost, renewed.stopping) == ([], [])
    assert mine.filter(lease_until__gt=database_now()).count() == 5

    lost, stopping = held[1], held[2]
    mine.filter(pk=lost.turn_id).update(lease_token=7, lease_owner="another")
    mine.filter(pk=stopping.turn_id).update(stop_requested_at=database_now())
    until = mine.get(pk=lost.turn_id).lease_until
    renewed = leases.renew_all(held)
    assert renewed.lost == [lost]
    assert renewed.stopping == [stopping]
    assert mine.get(pk=lost.turn_id).lease_until == until
    assert lost.standing() is Standing.LOST
    assert held[0].standing() is Standing.OURS


def test_partial_texts_are_saved_together(chat: Chat, begun: Begun) -> None:
    """REL-311: one statement for all; a holder that has lost its turn writes nothing, and keeps no other from writing."""
    listed = [
        steps.Partial(lease, answer.pk, f"text {number}", f"thought {number}")
        for number, (lease, answer) in enumerate(begun)
    ]
    with counted() as price:
        kept = steps.save_partials(listed)
    assert (len(price.statements), price.commits) == (1, 1), price.in_words()
    assert kept == {answer.pk for _, answer in begun}
    assert texts(chat, begun) == [(f"text {n}", f"thought {n}") for n in range(5)]

    Turn.objects.for_workspace(chat.tenant.workspace).filter(pk=begun[3][0].turn_id).update(
        lease_token=7
    )
    more = [one._replace(text=f"{one.text}, and more") for one in listed]
    assert steps.save_partials(more) == kept - {begun[3][1].pk}
    assert texts(chat, begun)[2:4] == [("text 2, and more", "thought 2"), ("text 3", "thought 3")]


@pytest.mark.postgresql
def test_a_late_partial_text_never_replaces_the_whole_answer(chat: Chat, begun: Begun) -> None:
    """REL-311: it waits for the answer's own commit, and then writes nothing."""
    lease, answer = begun[0]
    mine = Message.objects.for_workspace(chat.tenant.workspace).filter(pk=answer.pk)
    with Threads(1) as threads:
        with transaction.atomic():
            mine.update(text="all of it", status=MessageStatus.COMPLETE.value)
            late = steps.Partial(lease, answer.pk, "all", "")
            saving = threads.submit(steps.save_partials, [late])
            until_somebody_waits()
        assert saving.result(PATIENCE) == set()
    assert mine.get().text == "all of it"


def texts(chat: Chat, begun: Begun) -> list[tuple[str, str]]:
    rows = Message.objects.for_workspace(chat.tenant.workspace)
    found = {row.pk: (row.text, row.reasoning) for row in rows}
    return [found[answer.pk] for _, answer in begun]


PAGES = 10


async def _price_of(statements: int) -> tuple[Price, float]:
    """The price of the time, in seconds, in which at least so many come."""
    began = time.monotonic()
    with counted() as price:
        while len(price.statements) < statements:
            await asyncio.sleep(0.01)
    return price, time.monotonic() - began


async def test_ten_pages_at_rest_ask_for_at_most_a_statement_a_second(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-311: one look for all of them: two statements each round, and a third every third round."""
    monkeypatch.setattr(rounds, "ROUND_SECONDS", 0.25)
    async with contextlib.AsyncExitStack() as stack:
        pages = [await stack.enter_async_context(opened(chat.tenant)) for _ in range(PAGES)]
        for page in pages:
            await page.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
            if all(event["type"] != "snapshot" for event in page.events):
                await page.until(lambda event: event["type"] == "snapshot")
        async with asyncio.timeout(PATIENCE):
            price, seconds = await _price_of(20)
            while any("mcp_servers_" in one for one in price.statements):
                price, seconds = await _price_of(20)  # a page had not wholly begun
    # With one that began before, and one that has not ended.
    most = int(seconds / rounds.ROUND_SECONDS) + 2
    # Of each three one looks at sessions.
    assert len(price.statements) <= 2 * most + math.ceil(most / 3), price.in_words()
    assert price.commits == 0


def test_a_process_at_rest_asks_for_at_most_a_statement_a_second(chat: Chat) -> None:
    """REL-311: its pages, the log's round and the look for turns that nobody works on, by how often each comes."""
    access = SocketAccess(
        chat.tenant.member, chat.tenant.workspace.slug, ip_address=None, session_key="k"
    )
    asked: list[tuple[SocketAccess, list[UUID]]] = [(access, [chat.conversation.pk])] * PAGES
    rounds.look(asked, rounds.RightsCheck.ALL)

    def price_of(work: Callable[[], object]) -> int:
        with counted() as price:
            work()
        return len(price.statements)

    with_sessions = price_of(lambda: rounds.look(asked, rounds.RightsCheck.ALL))
    usual = price_of(lambda: rounds.look(asked, rounds.RightsCheck.MEMBERSHIPS))
    assert (with_sessions, usual) == (3, 2)
    others = rounds.SESSIONS_EVERY - 1
    per_second = (
        (with_sessions + others * usual) / (rounds.SESSIONS_EVERY * rounds.ROUND_SECONDS)
        + price_of(sealing_thread.something_waits) / sealing_thread.REST_SECONDS
        + price_of(runner._find_orphans) / runner.WATCH_SECONDS
    )
    assert per_second <= 1.0


def test_a_look_at_events_alone_costs_a_statement(chat: Chat) -> None:
    """REL-311: and tells nobody of another's conversation."""
    access = SocketAccess(
        chat.tenant.member, chat.tenant.workspace.slug, ip_address=None, session_key="k"
    )
    asked: list[tuple[SocketAccess, list[UUID]]] = [(access, [chat.conversation.pk])] * PAGES
    with counted() as price:
        seen = rounds.look(asked, rounds.RightsCheck.NONE)
    assert len(price.statements) == 1
    assert [one.newest for one in seen] == [{chat.conversation.pk: 0}] * PAGES
    foreign = Conversation.objects.across_workspaces().filter(pk=chat.conversation.pk)
    foreign.update(owner=chat.tenant.owner)
    assert rounds.look(asked, rounds.RightsCheck.NONE)[0].newest == {}
