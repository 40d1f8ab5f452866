"""What a process does now and then for all its turns and pages, it does for all at once."""

from __future__ import annotations

import asyncio
import contextlib
from uuid import UUID

import pytest

from chat.engine import leases, runner, steps
from chat.engine.leases import Lease
from chat.models import Conversation, Message, Turn
from chat.services.conversations import create_conversation
from chat.services.turns import send_message
from chat.sockets import rounds
from chat.sockets.door import Door
from mcp_servers.gate.caller import Standing
from tests.chat.conftest import Chat
from tests.chat.test_consumers import opened
from tests.price import counted
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
    assert (len(price.statements), price.commits) == (2, 1), price.told()
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
    said = [
        steps.Partial(lease, answer.pk, f"text {number}", f"thought {number}")
        for number, (lease, answer) in enumerate(begun)
    ]
    with counted() as price:
        kept = steps.save_partials(said)
    assert (len(price.statements), price.commits) == (1, 1), price.told()
    assert kept == {answer.pk for _, answer in begun}
    assert texts(chat, begun) == [(f"text {n}", f"thought {n}") for n in range(5)]

    Turn.objects.for_workspace(chat.tenant.workspace).filter(pk=begun[3][0].turn_id).update(
        lease_token=7
    )
    more = [one._replace(text=f"{one.text}, and more") for one in said]
    assert steps.save_partials(more) == kept - {begun[3][1].pk}
    assert texts(chat, begun)[2:4] == [("text 2, and more", "thought 2"), ("text 3", "thought 3")]


def texts(chat: Chat, begun: Begun) -> list[tuple[str, str]]:
    rows = Message.objects.for_workspace(chat.tenant.workspace)
    found = {row.pk: (row.text, row.reasoning) for row in rows}
    return [found[answer.pk] for _, answer in begun]


PAGES = 10


async def test_ten_pages_at_rest_ask_for_at_most_a_statement_a_second(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-311: one look for all of them: a statement each round, two more every other round."""
    monkeypatch.setattr(rounds, "ROUND_SECONDS", 0.25)
    async with contextlib.AsyncExitStack() as stack:
        pages = [await stack.enter_async_context(opened(chat.tenant)) for _ in range(PAGES)]
        for page in pages:
            await page.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
        await asyncio.sleep(0.5)
        with counted() as price:
            await asyncio.sleep(8 * rounds.ROUND_SECONDS)
    # Eight rounds, and one that began before; of each two one looks at rights.
    assert 8 <= len(price.statements) <= 9 + 2 * 5, price.told()
    assert price.commits == 0


def test_a_round_costs_a_statement_and_one_with_rights_three(chat: Chat) -> None:
    """REL-311: at two seconds a round that is one statement a second."""
    door = Door(chat.tenant.member, chat.tenant.workspace.slug, ip_address=None, session_key="k")
    asked: list[tuple[Door, list[UUID]]] = [(door, [chat.conversation.pk])] * PAGES
    prices = []
    for has_rights in (True, False):
        with counted() as price:
            seen = rounds.look(asked, rights=has_rights)
        prices.append(len(price.statements))
    assert prices == [3, 1]
    assert sum(prices) <= rounds.RIGHTS_EVERY * rounds.ROUND_SECONDS
    assert [one.newest for one in seen] == [{chat.conversation.pk: 0}] * PAGES
    foreign = Conversation.objects.across_workspaces().filter(pk=chat.conversation.pk)
    foreign.update(owner=chat.tenant.owner)
    assert rounds.look(asked, rights=False)[0].newest == {}
