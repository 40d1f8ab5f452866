"""Every command of the socket, with ids of another workspace and of another person of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from channels.db import database_sync_to_async as sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.db import transaction

from chat.wire.commands import COMMANDS
from config.asgi import application
from tests.chat.sockets.pages import opened
from tests.factories import CANARY, MembershipFactory
from tests.isolation.state import state_of
from tests.isolation.world import Side, make_world
from tests.patience import PATIENCE
from workspaces.delivery.announcements import Announcement, announce
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)

SAMPLES: Mapping[str, Callable[[Side], dict[str, Any] | None]] = {
    "subscribe": lambda side: {"conversation_id": str(side["conversation"].pk)},
    "unsubscribe": lambda _side: (
        None
    ),  # leaves what it never joined; names nothing that is looked up
    "seen": lambda side: {
        "conversation_id": str(side["conversation"].pk),
        "until": "2030-01-01T00:00:00Z",
    },
    "send": lambda side: {
        "conversation_id": str(side["conversation"].pk),
        "client_id": "c",
        "text": "hello",
    },
    "stop": lambda side: {"turn_id": str(side["turn"].pk)},
    "retry": lambda side: {"turn_id": str(side["turn"].pk)},
    "decide": lambda side: {"tool_call_id": str(side["call"].pk), "decision": "approve"},
    "answer_input": lambda side: {
        "input_request_id": str(side["input"].pk),
        "action": "decline",
    },
    "edit_message": lambda side: {
        "message_id": str(side["message"].pk),
        "client_id": "c",
        "text": "hello",
    },
    "regenerate": lambda side: {"turn_id": str(side["turn"].pk), "client_id": "c"},
    "compare": lambda side: {
        "turn_id": str(side["turn"].pk),
        "client_id": "c",
        "model": {"provider_id": None, "name": "demo"},
    },
    "choose": lambda side: {"turn_id": str(side["turn"].pk)},
    "continue": lambda side: {"turn_id": str(side["turn"].pk)},
    "rate": lambda side: {"turn_id": str(side["turn"].pk), "rating": "good"},
    "show_branch": lambda side: {"message_id": str(side["message"].pk)},
    "edit_queued": lambda side: {"queued_id": str(side["queued"].pk), "text": "hello"},
    "remove_queued": lambda side: {"queued_id": str(side["queued"].pk)},
    "send_queued": lambda side: {"queued_id": str(side["queued"].pk)},
    "resolve": lambda side: {"tool_call_id": str(side["call"].pk), "resolution": "give_up"},
    "ping": lambda _side: None,  # names nothing
    "ack": lambda _side: None,
}
NAMES = [str(command.model_fields["type"].annotation.__args__[0]) for command in COMMANDS]  # type: ignore[union-attr]


def test_every_command_has_a_sample() -> None:
    """SEC-06: what is found and not known is red."""
    assert set(NAMES) == set(SAMPLES), "add a sample of each command to this file"


@pytest.mark.parametrize("role", ["owner", "admin", "member", "auditor"])
async def test_no_command_reaches_another_workspace(role: str) -> None:
    """SEC-01, SEC-06: each one is answered as for a row that does not exist, and joins no group."""
    world = await sync_to_async(make_world)()
    before = await sync_to_async(state_of)(world.b)
    async with opened(world.a.tenant, role) as socket:
        for name, make in SAMPLES.items():
            fields = make(world.b)
            if fields is None:
                continue
            answer = await socket.answer(type=name, **fields)
            assert (answer["type"], answer["code"]) == ("error", "not_found"), (name, answer)
        assert CANARY not in str(socket.events)
    assert await sync_to_async(state_of)(world.b) == before


@pytest.mark.parametrize("role", ["owner", "admin", "auditor"])
async def test_no_command_reaches_another_persons_conversation(role: str) -> None:
    """SEC-06, SEC-07: a conversation is its owner's, whatever one may do or see otherwise."""
    world = await sync_to_async(make_world)()
    before = await sync_to_async(state_of)(world.a)
    async with opened(world.a.tenant, role) as socket:
        for name, make in SAMPLES.items():
            fields = make(world.a)
            if fields is None:
                continue
            answer = await socket.answer(type=name, **fields)
            assert (answer["type"], answer["code"]) == ("error", "not_found"), (name, answer)
    after = await sync_to_async(state_of)(world.a)
    assert {**after, "audit.AuditEntry": None} == {**before, "audit.AuditEntry": None}


async def test_the_samples_are_real() -> None:
    """SEC-06: the owner of the rows is let through by the same commands."""
    world = await sync_to_async(make_world)()
    async with opened(world.a.tenant, "member") as socket:
        fields = SAMPLES["subscribe"](world.a)
        assert fields is not None
        answer = await socket.answer(type="subscribe", **fields)
        assert answer["type"] == "snapshot"
        fields = SAMPLES["stop"](world.a)
        assert fields is not None
        assert (await socket.answer(type="stop", **fields))["type"] == "accepted"


async def test_another_workspaces_socket_does_not_open() -> None:
    """SEC-01: closed at once, with the code for "not a member"."""
    world = await sync_to_async(make_world)()
    async with opened(world.a.tenant, "owner", slug=world.b.slug) as socket:
        assert await socket.close_code() == 4403


async def test_what_concerns_one_person_reaches_their_pages_of_that_workspace_alone() -> None:
    """SEC-10: nobody else hears of it, nor the same person's pages of another workspace."""
    world = await sync_to_async(make_world)()
    tenant, other = world.a.tenant, world.b.tenant
    member = tenant.member
    await sync_to_async(MembershipFactory.create)(workspace=other.workspace, user=member)

    def tell(workspace: Workspace, kind: str, user_id: str | None) -> None:
        with transaction.atomic():
            announce(workspace.pk, Announcement(kind=kind, id="1", user_id=user_id))

    async with (
        opened(tenant) as theirs,
        opened(tenant, "admin") as of_another_person,
        opened(tenant, slug=other.workspace.slug) as elsewhere,
    ):
        for page in (theirs, of_another_person, elsewhere):
            await page.answer(type="ping")
        await sync_to_async(tell)(tenant.workspace, "for.one", str(member.pk))
        await sync_to_async(tell)(tenant.workspace, "for.all", None)
        await sync_to_async(tell)(other.workspace, "for.one.there", str(member.pk))
        # Told in this order, so whoever has heard the second would have heard the first.
        await theirs.until(lambda event: event.get("kind") == "for.all")
        await of_another_person.until(lambda event: event.get("kind") == "for.all")
        await elsewhere.until(lambda event: event.get("kind") == "for.one.there")
    heard = [
        [event["kind"] for event in page.events if event["type"] == "workspace.changed"]
        for page in (theirs, of_another_person, elsewhere)
    ]
    assert heard == [["for.one", "for.all"], ["for.all"], ["for.one.there"]]


async def test_a_socket_without_a_session_hears_nothing() -> None:
    """SEC-06: closed with the code for "sign in again", also with a made-up cookie."""
    world = await sync_to_async(make_world)()
    for cookie in (b"", f"{settings.SESSION_COOKIE_NAME}=made-up".encode()):
        headers = [(b"origin", b"http://testserver"), (b"host", b"testserver"), (b"cookie", cookie)]
        path = f"/ws/w/{world.a.slug}/"
        communicator = WebsocketCommunicator(application, path, headers=headers)
        connected, _ = await communicator.connect(timeout=PATIENCE)
        assert connected
        assert (await communicator.receive_output(PATIENCE))["code"] == 4401
        await communicator.disconnect()
