"""When a socket ends: with the session, the membership or the account, and with the page itself."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any
from uuid import UUID, uuid4

import pytest
from channels.db import database_sync_to_async as sync_to_async
from channels.testing import WebsocketCommunicator
from daphne.ws_protocol import WebSocketProtocol
from django.conf import settings

from chat.live.hub import hub
from chat.sockets import send_queue
from chat.sockets.following import Following
from chat.sockets.rounds import RightsCheck, look
from chat.sockets.send_queue import MOST_UNHEARD
from chat.sockets.socket_access import SocketAccess
from chat.wire.events import CloseCode
from config.asgi import application
from tests.chat.conftest import Chat
from tests.chat.sockets.pages import (
    ORIGIN,
    Socket,
    cookie_of,
    opened,
)
from tests.factories import Tenant, make_tenant
from tests.patience import PATIENCE
from workspaces.models import Membership
from workspaces.people.services import change_membership, remove_member


@pytest.mark.django_db(transaction=True)
async def test_a_removed_member_is_out_within_five_seconds() -> None:
    """SEC-14, SEC-21: removal and sign-out close open sockets."""
    tenant = await sync_to_async(make_tenant)("acme")

    def membership() -> Membership:
        return Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)

    async with opened(tenant) as socket:
        await socket.answer(type="ping")
        row = await sync_to_async(membership)()
        await sync_to_async(remove_member)(
            membership=row, actor=await sync_to_async(tenant.actor)("owner")
        )
        assert await socket.close_code(PATIENCE) == CloseCode.NOT_A_MEMBER


@pytest.mark.django_db(transaction=True)
async def test_signing_out_closes_the_socket() -> None:
    """SEC-21: the session's end is the socket's end."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        await socket.answer(type="ping")
        from django.contrib.sessions.models import Session

        await sync_to_async(Session.objects.all().delete)()
        assert await socket.close_code(PATIENCE) == CloseCode.SIGN_IN_AGAIN


@pytest.mark.django_db(transaction=True)
async def test_signing_out_everywhere_else_keeps_the_sockets_of_this_browser() -> None:
    """SEC-461: its open pages go on, also in the round after; those of the others are closed."""
    tenant = await sync_to_async(make_tenant)("acme")
    here = await sync_to_async(tenant.client)("member")
    async with opened(tenant) as other, opened(tenant, client=here) as own:
        await sync_to_async(here.post)("/account/sessions/")
        assert await other.close_code(PATIENCE) == CloseCode.SIGN_IN_AGAIN
        await own.answer(type="ping")


def test_a_round_reads_a_session_again_before_it_closes_its_page(tenant: Tenant) -> None:
    """SEC-461: the nudge may come late, or not at all."""
    browsers = [tenant.client("member") for _ in range(2)]
    doors = [
        SocketAccess(
            tenant.member,
            tenant.workspace.slug,
            ip_address=None,
            session_key=one.cookies[settings.SESSION_COOKIE_NAME].value,
        )
        for one in browsers
    ]
    asked: list[tuple[SocketAccess, list[UUID]]] = [(door, []) for door in doors]
    assert [seen.reason_to_close for seen in look(asked, RightsCheck.MEMBERSHIPS)] == [None, None]
    browsers[0].post("/account/sessions/")
    listed = [seen.reason_to_close for seen in look(asked, RightsCheck.MEMBERSHIPS)]
    assert listed == [None, CloseCode.SIGN_IN_AGAIN]


@pytest.mark.django_db(transaction=True)
async def test_a_changed_password_closes_the_socket() -> None:
    """SEC-21: whoever else was signed in is out."""
    tenant = await sync_to_async(make_tenant)("acme")

    def change() -> None:
        tenant.member.set_password("another long passphrase")
        tenant.member.save()

    async with opened(tenant) as socket:
        await socket.answer(type="ping")
        await sync_to_async(change)()
        assert await socket.close_code(PATIENCE) == CloseCode.SIGN_IN_AGAIN


@pytest.mark.django_db(transaction=True)
async def test_a_changed_role_keeps_the_socket() -> None:
    """Ours: a promotion disconnects nobody."""
    tenant = await sync_to_async(make_tenant)("acme")

    def promote() -> None:
        row = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
        from workspaces.roles import Role

        change_membership(
            membership=row, role=Role.ADMIN, is_auditor=True, actor=tenant.actor("owner")
        )

    async with opened(tenant) as socket:
        await socket.answer(type="ping")
        await sync_to_async(promote)()
        assert (await socket.answer(type="ping"))["type"] == "pong"


async def test_a_page_that_does_not_read_is_sent_no_more_than_it_can_hold(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-17: frames stop, what piles up is dropped for one snapshot, others feel nothing, and it is closed at last."""
    name = str(chat.conversation.pk)
    async with opened(chat.tenant) as slow, opened(chat.tenant) as quick:
        for socket in (slow, quick):
            await socket.answer(type="subscribe", conversation_id=name)
        frame = json.dumps(
            {"type": "tool_call.progress", "conversation_id": name, "fill": "x" * 4096}
        )
        for _ in range(25):
            hub.deliver(chat.conversation.pk, [(frame, None)] * 20)
            while (event := json.loads(await quick.raw.receive_from(10)))["type"] != "check":
                pass
            await quick.raw.send_to(
                text_data=json.dumps({"type": "ack", "number": event["number"]})
            )
        numbers, size = [], 0
        while not await slow.raw.receive_nothing(0.3):
            text = await slow.raw.receive_from(5)
            size += len(text)
            numbers += [json.loads(text)["number"]] if '"check"' in text else []
        assert MOST_UNHEARD < size < MOST_UNHEARD + 200_000 < 500 * len(frame)
        await slow.say(type="ack", number=numbers[-1])
        await slow.until(lambda event: event["type"] == "snapshot")
        monkeypatch.setattr(send_queue, "STALLED_SECONDS", 0.0)
        hub.deliver(chat.conversation.pk, [(frame, None)] * 40)
        assert await slow.close_code() == CloseCode.TRY_AGAIN_LATER


async def test_a_page_that_asks_and_does_not_read_has_one_snapshot_waiting(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2372: its other questions for one are answered once it has read, each with its `ref`."""
    monkeypatch.setattr(send_queue, "MOST_UNHEARD", 1)
    monkeypatch.setattr(send_queue, "CHECK_EVERY", 1)
    name = str(chat.conversation.pk)
    async with opened(chat.tenant) as socket:
        refs = [await socket.say(type="subscribe", conversation_id=name) for _ in range(20)]
        refused = await socket.answer(type="subscribe", conversation_id=str(uuid4()))
        assert refused["code"] == "not_found"  # now all of them were read
        answers = [event for event in socket.events if event.get("ref") in refs]
        unanswered = [event for event in socket.events if event["type"] == "check"]
        while len(answers) < len(refs):
            for check in unanswered:
                await socket.say(type="ack", number=check["number"])
            event = await socket.until(lambda _event: True)
            unanswered = [event] if event["type"] == "check" else []
            answers += [event] if event.get("ref") in refs else []
        assert [event["ref"] for event in answers] == refs
        kinds = [event["type"] for event in answers]
        assert kinds == ["snapshot", "snapshot", *["current"] * 18]


async def test_a_chat_that_is_closed_while_it_is_read_is_followed_no_more(chat: Chat) -> None:
    """REL-2372: its snapshot came all the same, and counted it among those that are open."""
    queue = send_queue.SendQueue()
    following = Following(queue)
    following.begin(chat.conversation.pk)
    reading = asyncio.create_task(following.send_snapshot(chat.conversation))
    await asyncio.sleep(0)  # it has begun
    following.end(chat.conversation.pk)
    await reading
    assert (len(following), queue.take()) == (0, None)


async def test_who_waits_for_a_snapshot_of_what_is_deleted_hears_that_it_is_gone(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2372: no question stays without an answer."""
    monkeypatch.setattr(send_queue, "MOST_UNHEARD", 1)
    monkeypatch.setattr(send_queue, "CHECK_EVERY", 1)
    name = str(chat.conversation.pk)
    async with opened(chat.tenant) as socket:
        refs = [await socket.say(type="subscribe", conversation_id=name) for _ in range(5)]
        await socket.answer(type="subscribe", conversation_id=str(uuid4()))  # all were read
        await sync_to_async(chat.conversation.delete)()
        waiting = set(refs) - {event.get("ref") for event in socket.events}
        assert waiting
        checks = [event for event in socket.events if event["type"] == "check"]
        while waiting:
            for check in checks:
                await socket.say(type="ack", number=check["number"])
            event = await socket.until(lambda _event: True)
            checks = [event] if event["type"] == "check" else []
            if event.get("ref") in waiting:
                waiting.remove(event["ref"])
                assert event["code"] == "not_found"


async def test_who_waits_for_a_snapshot_and_stops_following_hears_so(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2725: each command has one answer, also where the page asks anew at once."""
    monkeypatch.setattr(send_queue, "MOST_UNHEARD", 1)
    monkeypatch.setattr(send_queue, "CHECK_EVERY", 1)
    name = str(chat.conversation.pk)
    async with opened(chat.tenant) as socket:
        refs = [await socket.say(type="subscribe", conversation_id=name) for _ in range(5)]
        refs.append(await socket.say(type="unsubscribe", conversation_id=name))
        refs.append(await socket.say(type="subscribe", conversation_id=name))
        answers: dict[str, list[str]] = {ref: [] for ref in refs}
        while not all(answers.values()):
            event = await socket.until(lambda _event: True)
            if event["type"] == "check":
                await socket.say(type="ack", number=event["number"])
            elif event.get("ref") in answers:
                answers[event["ref"]].append(str(event.get("code", event["type"])))
        assert list(answers.values()) == [
            ["snapshot"],
            *[["conflict"]] * 4,
            ["accepted"],
            ["snapshot"],
        ]


async def test_a_running_turn_of_somebody_removed_is_stopped(chat: Chat) -> None:
    """SEC-14: within five seconds, while the model still speaks, and so before its next tool call."""
    hold = threading.Event()
    chat.model.say("thinking about it", hold=hold)
    await sync_to_async(chat.send)()
    await sync_to_async(chat.watching.until)(lambda event: event["type"] == "text.delta")

    def remove() -> None:
        rows = Membership.objects.for_workspace(chat.tenant.workspace)
        remove_member(
            membership=rows.get(user=chat.tenant.member), actor=chat.tenant.actor("owner")
        )

    await sync_to_async(remove)()
    async with asyncio.timeout(PATIENCE):
        await sync_to_async(chat.watching.turn)("cancelled")
    hold.set()


class GoingAway:
    """The product behind Daphne's own protocol, whose page can go away: Trellis hears of it later."""

    def __init__(self) -> None:
        self.refused = 0
        self._protocol = WebSocketProtocol()
        self._protocol.client_addr = None
        self._protocol.maxMessagePayloadSize = 0  # as its factory sets it
        self._protocol.state = WebSocketProtocol.STATE_OPEN

    def leave(self) -> None:
        self._protocol.state = WebSocketProtocol.STATE_CLOSING

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_by_daphne(message: Any) -> None:
            if self._protocol.state == WebSocketProtocol.STATE_OPEN:
                await send(message)
                return
            self.refused += 1
            self._protocol.serverSend(message["text"])

        await application(scope, receive, send_by_daphne)


async def test_a_page_that_goes_away_in_mid_frame_is_one_quiet_line(
    chat: Chat, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours: what is said between its leaving and the news of it goes nowhere, and nothing has failed."""
    caplog.set_level("INFO")
    client = await sync_to_async(chat.tenant.client)("member")
    headers = [(b"origin", ORIGIN), (b"host", b"testserver"), (b"cookie", cookie_of(client))]
    server = GoingAway()
    communicator = WebsocketCommunicator(
        server, f"/ws/w/{chat.tenant.workspace.slug}/", headers=headers
    )
    connected, _ = await communicator.connect(timeout=PATIENCE)
    assert connected
    socket = Socket(communicator)
    await socket.answer(type="ping")
    server.leave()
    for _ in range(3):
        await socket.say(type="ping")
    async with asyncio.timeout(PATIENCE):
        while server.refused < 3:
            await asyncio.sleep(0.01)
    await communicator.disconnect(timeout=PATIENCE)
    ours = [line for line in caplog.records if line.name.startswith("chat.sockets")]
    assert [(line.levelname, line.getMessage()) for line in ours] == [("INFO", "socket_page_gone")]
