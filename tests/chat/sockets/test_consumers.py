"""The socket: who may open it, what may be said, and that nothing is missed or told twice."""

from __future__ import annotations

import asyncio
import json
import threading
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from channels.db import database_sync_to_async as sync_to_async
from channels.layers import InMemoryChannelLayer
from channels.testing import WebsocketCommunicator
from daphne.ws_protocol import WebSocketProtocol
from django.conf import settings
from redis.exceptions import ConnectionError as RedisConnectionError
from uuid_utils.compat import uuid7

from chat.commands import parse_command
from chat.events import CloseCode
from chat.hub import hub
from chat.models import Message, ToolCall
from chat.services.conversations import delete_conversation, restore_conversation
from chat.services.turns import LONGEST_MESSAGE
from chat.sockets import open as open_sockets
from chat.sockets import send_queue
from chat.sockets.consumer import COMMAND_BURST
from chat.sockets.rounds import RightsCheck, look
from chat.sockets.send_queue import MOST_UNHEARD
from chat.sockets.socket_access import SocketAccess
from config.asgi import application
from tests.chat.conftest import Chat
from tests.chat.sockets.pages import (
    ORIGIN,
    Event,
    Socket,
    cookie_of,
    is_turn,
    opened,
)
from tests.factories import Tenant, make_tenant
from tests.patience import PATIENCE
from workspaces.errors import InvalidInput
from workspaces.models import Membership
from workspaces.people.services import change_membership, remove_member


@pytest.mark.parametrize(
    "origin",
    [
        b"http://evil.example",
        b"null",
        None,
        b"http://testserver:81",
        b"https://testserver",
        b"http://testserver.evil.example",
        b"http://eviltestserver",
    ],
)
async def test_a_foreign_origin_opens_nothing(origin: bytes | None) -> None:
    """SEC-15: scheme, host and port must be one of ours."""
    headers = [(b"host", b"testserver"), *([(b"origin", origin)] if origin else [])]
    communicator = WebsocketCommunicator(application, "/ws/w/acme/", headers=headers)
    connected, _ = await communicator.connect(timeout=PATIENCE)
    assert not connected


async def test_a_foreign_host_opens_nothing() -> None:
    """SEC-16: Host is checked for sockets too."""
    headers = [(b"host", b"evil.example"), (b"origin", ORIGIN)]
    communicator = WebsocketCommunicator(application, "/ws/w/acme/", headers=headers)
    connected, _ = await communicator.connect(timeout=PATIENCE)
    assert not connected


@pytest.mark.django_db(transaction=True)
async def test_strangers_and_non_members_are_turned_away() -> None:
    """SEC-06: 4401 without a session, 4403 in a workspace of others."""
    headers = [(b"host", b"testserver"), (b"origin", ORIGIN)]
    communicator = WebsocketCommunicator(application, "/ws/w/acme/", headers=headers)
    await communicator.connect(timeout=PATIENCE)
    assert await Socket(communicator).close_code() == CloseCode.SIGN_IN_AGAIN
    mine = await sync_to_async(make_tenant)("mine")
    other = await sync_to_async(make_tenant)("other")
    async with opened(mine, slug=other.workspace.slug) as socket:
        assert await socket.close_code() == CloseCode.NOT_A_MEMBER


async def test_a_page_of_somebody_else_sends_nothing(chat: Chat) -> None:
    """SEC-415: a page that was left open closes if another person has signed in in its browser since."""
    tenant = chat.tenant
    async with opened(tenant, query=f"?person={tenant.owner.pk}") as socket:
        assert await socket.close_code() == CloseCode.SIGN_IN_AGAIN
    async with opened(tenant, query=f"?person={tenant.member.pk}") as socket:
        snapshot = await socket.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
        assert snapshot["type"] == "snapshot"


async def test_a_deleted_chat_is_not_there(chat: Chat) -> None:
    """SEC-600: it is neither read nor gone on with, also by a page that was open before, until it is restored."""
    row, actor = chat.conversation, chat.actor
    of_chat = {"conversation_id": str(row.pk)}
    chat.model.say("Good")
    async with opened(chat.tenant) as socket:
        assert (await socket.answer(type="subscribe", **of_chat))["type"] == "snapshot"
        await sync_to_async(delete_conversation)(conversation=row, actor=actor)
        for command in (
            {"type": "subscribe", **of_chat},
            {"type": "send", **of_chat, "client_id": "c1", "text": "hi"},
            {"type": "seen", **of_chat, "until": "2026-11-21T08:00:00Z"},
        ):
            told = await socket.answer(**command)
            assert (told["type"], told["code"]) == ("error", "not_found"), command
        await sync_to_async(row.refresh_from_db)()
        await sync_to_async(restore_conversation)(conversation=row, actor=actor)
        assert (await socket.answer(type="subscribe", **of_chat))["type"] == "snapshot"
    assert await sync_to_async(Message.unscoped.count)() == 0


async def test_a_turn_over_the_socket(chat: Chat) -> None:
    """Ours: subscribe, send, watch it stream; what was told equals a fresh snapshot."""
    chat.model.say("Good morning to you")
    async with opened(chat.tenant) as socket:
        snapshot = await socket.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
        assert snapshot["type"] == "snapshot"
        accepted = await socket.answer(
            type="send", conversation_id=str(chat.conversation.pk), client_id="c1", text="hi"
        )
        again = await socket.answer(
            type="send", conversation_id=str(chat.conversation.pk), client_id="c1", text="hi"
        )
        assert (accepted["message_id"], accepted["turn_id"]) == (
            again["message_id"],
            again["turn_id"],
        )
        if not any(is_turn("completed")(event) for event in socket.events):
            await socket.until(is_turn("completed"))
        fresh = await sync_to_async(chat.snapshot)()
        await socket.caught_up(fresh["seq"])
        numbers = [e["seq"] for e in socket.events if "seq" in e and e["type"] != "snapshot"]
        assert numbers == list(range(snapshot["seq"] + 1, fresh["seq"] + 1))
        assert replay(snapshot, socket.events) == {**fresh, "ref": None}


def replay(snapshot: Event, events: list[Event]) -> Event:
    """What a page shows: the snapshot with every later event applied."""
    state = {**snapshot, "ref": None}
    lists = {"message": "messages", "turn": "turns", "tool_call": "tool_calls"}
    for event in events:
        if "seq" not in event or event["type"] in ("snapshot", "current"):
            continue
        if event["seq"] <= state["seq"]:
            continue
        assert event["seq"] == state["seq"] + 1, "a gap"
        state["seq"] = event["seq"]
        if "conversation" in event:
            state["conversation"] = event["conversation"]
        for kind, name in lists.items():
            if kind in event:
                rows = {row["id"]: row for row in state[name]}
                state[name] = list({**rows, event[kind]["id"]: event[kind]}.values())
    return state


async def test_snapshot_and_later_events_give_a_fresh_snapshot_whenever_one_joins(
    chat: Chat,
) -> None:
    """REL-13, REL-14: pages that join at any moment of a turn with approval all end up the same."""
    chat.model.call(("counting__echo", {"text": "a"}), ("counting__destroy", {"what": "b"}))
    chat.model.say("All is done now")
    async with opened(chat.tenant) as first:
        begin = await first.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
        await first.answer(
            type="send", conversation_id=str(chat.conversation.pk), client_id="c", text="go"
        )
        if not any(is_turn("waiting_for_approval")(event) for event in first.events):
            await first.until(is_turn("waiting_for_approval"))
        async with opened(chat.tenant) as second:
            middle = await second.answer(
                type="subscribe", conversation_id=str(chat.conversation.pk)
            )
            waiting = [c for c in middle["tool_calls"] if c["status"] == "waiting_for_approval"]
            assert waiting[0]["approval"]["decision"] is None
            assert waiting[0]["input_schema"] is not None
            await second.answer(
                type="decide", tool_call_id=waiting[0]["id"], decision="approve", arguments=None
            )
            if not any(is_turn("completed")(event) for event in second.events):
                await second.until(is_turn("completed"))
            await first.until(is_turn("completed"))
            fresh = {**(await sync_to_async(chat.snapshot)()), "ref": None}
            for socket in (first, second):
                await socket.caught_up(fresh["seq"])
            assert replay(begin, first.events) == fresh
            assert replay(middle, second.events) == fresh
    assert chat.server.names() == ["echo", "destroy"]


async def test_a_page_that_returns_in_mid_stream_sees_the_text_so_far(chat: Chat) -> None:
    """REL-13, REL-22: snapshot with the partial text, then deltas that join without a seam."""
    hold = threading.Event()
    chat.model.say("The quick brown fox jumps", hold=hold)
    sent = await sync_to_async(chat.send)()
    await asyncio.to_thread(
        chat.watching.until, lambda e: e["type"] == "text.delta" and "fox" in chat.watching.text()
    )
    async with opened(chat.tenant) as socket:
        snapshot = await socket.answer(
            type="subscribe", conversation_id=str(chat.conversation.pk), seq=10_000
        )
        partial = snapshot["messages"][-1]["text"]
        assert partial == "The quick brown fox"
        hold.set()
        await socket.until(is_turn("completed"))
        text = partial
        for event in socket.events:
            if event["type"] == "text.delta":
                assert event["offset"] <= len(text)
                text = text[: event["offset"]] + event["text"]
        assert text == "The quick brown fox jumps"
    assert (await sync_to_async(chat.reload)(sent.turn)).status == "completed"


async def test_a_page_that_is_up_to_date_gets_no_snapshot(chat: Chat) -> None:
    """Ours: a reconnect after which nothing has happened costs one line."""
    async with opened(chat.tenant) as socket:
        await socket.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
        again = await socket.answer(
            type="subscribe", conversation_id=str(chat.conversation.pk), seq=0
        )
        assert again["type"] == "current"


async def test_what_the_nudges_lost_is_healed(chat: Chat) -> None:
    """REL-15: with every message to the socket lost, the page is right again within five seconds."""
    async with opened(chat.tenant) as socket:
        await socket.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
        watchers = hub._watchers.pop(chat.conversation.pk)
        chat.model.say("nobody hears this")
        sent = await sync_to_async(chat.send)()
        assert watchers
        healed = await socket.until(
            lambda e: e["type"] == "snapshot" and len(e["messages"]) == 2, seconds=12
        )
        assert healed["turns"][0]["id"] == str(sent.turn.pk)


async def test_a_page_opens_and_follows_a_chat_while_the_layer_is_away(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1424, REL-23: groups cannot be joined, and Redis says so by errors of its own. Rows tell what is missed."""

    async def away(*_args: Any) -> None:
        raise RedisConnectionError("Error 111 connecting to redis:6379. Connection refused.")

    for name in ("group_add", "group_discard"):
        monkeypatch.setattr(InMemoryChannelLayer, name, away)
    place = {"conversation_id": str(chat.conversation.pk)}
    async with opened(chat.tenant) as socket:
        told = await socket.answer(type="subscribe", **place)
        assert told["type"] == "snapshot"
        told = await socket.answer(type="unsubscribe", **place)
        assert told["type"] == "accepted"


async def test_every_command_on_anothers_rows_is_not_found(chat: Chat) -> None:
    """SEC-06, SEC-02: a foreign id and a missing id answer alike, for each command."""
    chat.model.call(("counting__destroy", {"what": "x"}))
    sent = await sync_to_async(chat.send)()
    await asyncio.to_thread(chat.watching.turn, "waiting_for_approval")
    call = (await sync_to_async(chat.calls)())[0]
    stranger = await sync_to_async(make_tenant)("strangers")
    colleagues = [(chat.tenant, "admin"), (chat.tenant, "auditor"), (stranger, "owner")]
    for tenant, role in colleagues:
        async with opened(tenant, role) as socket:
            for name, found, extra in (
                ("subscribe", {"conversation_id": str(chat.conversation.pk)}, {}),
                (
                    "send",
                    {"conversation_id": str(chat.conversation.pk)},
                    {"client_id": "x", "text": "y"},
                ),
                ("stop", {"turn_id": str(sent.turn.pk)}, {}),
                ("retry", {"turn_id": str(sent.turn.pk)}, {}),
                ("decide", {"tool_call_id": str(call.pk)}, {"decision": "approve"}),
            ):
                foreign = await socket.answer(type=name, **found, **extra)
                missing = await socket.answer(
                    type=name, **{key: str(uuid7()) for key in found}, **extra
                )
                assert foreign["type"] == "error", (name, role)
                assert foreign["code"] == "not_found"
                assert {**foreign, "ref": None} == {**missing, "ref": None}
    assert chat.server.calls == []
    rows = ToolCall.objects.for_workspace(chat.tenant.workspace)
    assert await sync_to_async(rows.get)() == call


@pytest.mark.parametrize(
    "command",
    [
        {
            "type": "send",
            "conversation_id": str(uuid7()),
            "client_id": "x",
            "text": "y",
            "role": "tool",
        },
        {
            "type": "send",
            "conversation_id": str(uuid7()),
            "client_id": "x",
            "text": "y",
            "tool_calls": [],
        },
        {"type": "tool_call.changed", "tool_call": {}},
        {"type": "execute", "code": "x"},
        {"type": "decide", "tool_call_id": "nope", "decision": "approve"},
        {"type": "decide", "tool_call_id": str(uuid7()), "decision": "maybe"},
        {"type": "subscribe"},
        {},
        [],
        "text",
        7,
        None,
    ],
)
@pytest.mark.django_db(transaction=True)
async def test_nothing_but_our_commands_is_understood(command: Any) -> None:
    """SEC-61, SEC-86: clients cannot submit tool or assistant messages, or events."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        await socket.raw.send_to(text_data=json.dumps(command))
        error = await socket.until(lambda e: e["type"] == "error")
        assert error["code"] == "invalid"
        await socket.answer(type="ping")
    assert await sync_to_async(Message.unscoped.count)() == 0


@pytest.mark.parametrize(
    ("command", "field", "words"),
    [
        ({"type": "nope"}, "type", "There is no such command."),
        ({"no": "type"}, "type", "Say which command this is."),
        ({"type": "subscribe"}, "conversation_id", "This field is missing."),
        ({"type": "subscribe", "conversation_id": "x"}, "conversation_id", "This is not an id."),
        ({"type": "ping", "more": 1}, "more", "There is no such field in this command."),
        ([], "command", "A frame holds one JSON object."),
    ],
)
def test_a_command_that_is_not_understood_is_told_by_its_field(
    command: object, field: str, words: str
) -> None:
    """REL-1572: in our own words."""
    with pytest.raises(InvalidInput) as refused:
        parse_command(command)
    assert refused.value.fields == {field: [words]}
    assert refused.value.message == f"{field}: {words}"


@pytest.mark.parametrize("letter", ["x", "ü", "語", "😀", "\n"])
async def test_the_longest_message_is_taken(chat: Chat, letter: str) -> None:
    """REL-1254: and one that is longer is told so, with the connection as it was."""
    chat.model.say("Good")
    words = "x" + letter * (LONGEST_MESSAGE - 2) + "x"
    command = {"type": "send", "conversation_id": str(chat.conversation.pk)}

    async def send(ref: str, text: str) -> Event:
        content = {**command, "client_id": ref, "ref": ref, "text": text}
        # As browsers write it.
        await socket.raw.send_to(text_data=json.dumps(content, ensure_ascii=False))
        return await socket.until(lambda event: event.get("ref") == ref)

    async with opened(chat.tenant) as socket:
        await socket.answer(type="subscribe", conversation_id=command["conversation_id"])
        too_long = await send("r1", words + "x")
        assert (too_long["type"], too_long["code"]) == ("error", "invalid")
        assert (await send("r2", words))["type"] == "accepted"
        if not any(is_turn("completed")(event) for event in socket.events):
            await socket.until(is_turn("completed"))
    assert await sync_to_async(Message.unscoped.filter(text=words).count)() == 1


@pytest.mark.django_db(transaction=True)
async def test_a_message_with_one_key_twice_is_refused() -> None:
    """SEC-77: as over REST; which of two values is meant is nobody's to guess."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        await socket.raw.send_to(text_data='{"type":"ping","type":"subscribe"}')
        error = await socket.until(lambda e: e["type"] == "error")
        assert error["code"] == "invalid"
        await socket.answer(type="ping")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("text", ["{nope", "x" * 600_000, "[" * 50_000, '"' + "ü" * 300_000 + '"'])
async def test_malformed_messages_close_the_socket(text: str) -> None:
    """SEC-77: a typed error, then 1008."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        await socket.raw.send_to(text_data=text)
        error = await socket.until(lambda e: e["type"] == "error")
        assert error["code"] == "malformed"
        assert await socket.close_code() == CloseCode.PROTOCOL_ABUSE


@pytest.mark.django_db(transaction=True)
async def test_binary_messages_close_the_socket() -> None:
    """SEC-77: only text is understood."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        await socket.raw.send_to(bytes_data=b"\x00\xff")
        assert await socket.close_code() == CloseCode.PROTOCOL_ABUSE


@pytest.mark.django_db(transaction=True)
async def test_a_flood_of_messages_closes_the_socket() -> None:
    """SEC-77: a burst is allowed, a flood is not."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        sent = 0

        async def flood() -> None:
            # Without end: how many are too many depends on how quickly they are read.
            nonlocal sent
            while True:
                sent += 1
                await socket.raw.send_to(text_data='{"type":"ping"}')
                await asyncio.sleep(0)

        flooding = asyncio.create_task(flood())
        try:
            assert await socket.close_code() == CloseCode.PROTOCOL_ABUSE
        finally:
            flooding.cancel()
        assert sent > COMMAND_BURST


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
async def test_an_odd_reference_harms_nothing() -> None:
    """SEC-77: half a character in `ref` is replaced before it is sent back."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        await socket.raw.send_to(text_data='{"type":"nonsense","ref":"\\ud800"}')
        error = await socket.until(lambda e: e["type"] == "error")
        assert error["ref"] == "\ufffd"
        await socket.answer(type="ping")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("value", ['"nul \\u0000"', '"half \\ud800"', '{"\\u0000": 1}', "NaN"])
async def test_what_cannot_be_stored_is_a_typed_error(value: str) -> None:
    """SEC-77: in any field of any command, and before it reaches the database; the socket stays."""
    tenant = await sync_to_async(make_tenant)("acme")
    start = '{"type":"resolve","ref":"r","tool_call_id":"%s","resolution":"marked_done","note":'
    async with opened(tenant) as socket:
        await socket.raw.send_to(text_data=f"{start % uuid7()}{value}}}")
        error = await socket.until(lambda e: e["type"] == "error")
        assert (error["code"], error["ref"]) == ("invalid", "r")
        assert "cannot be stored" in error["message"]
        await socket.answer(type="ping")


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


def allow_sockets(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let one person have so many."""
    few = settings.TRELLIS.model_copy(update={"sockets_per_person": most})
    monkeypatch.setattr(open_sockets, "settings", SimpleNamespace(TRELLIS=few))


@pytest.mark.django_db(transaction=True)
async def test_one_person_cannot_open_sockets_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-681: pages beyond the limit hear why. Others are not concerned, and a page that closes makes room."""
    allow_sockets(monkeypatch, 2)
    tenant = await sync_to_async(make_tenant)("acme")
    client = await sync_to_async(tenant.client)("member")
    async with opened(tenant, client=client) as first:
        async with opened(tenant, client=client) as second:
            for page in (first, second):
                assert (await page.answer(type="ping"))["type"] == "pong"
            for _more in range(3):
                async with opened(tenant, client=client) as third:
                    assert await third.close_code() == CloseCode.TOO_MANY
            async with opened(tenant, "admin") as other:
                assert (await other.answer(type="ping"))["type"] == "pong"
        async with opened(tenant, client=client) as again:
            assert (await again.answer(type="ping"))["type"] == "pong"


@pytest.mark.django_db(transaction=True)
async def test_many_that_come_at_one_moment_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-681: a place is taken before the database is asked, so none slips through while it answers."""
    allow_sockets(monkeypatch, 3)
    tenant = await sync_to_async(make_tenant)("acme")
    client = await sync_to_async(tenant.client)("member")
    is_over = asyncio.Event()
    refused = 0

    async def come() -> None:
        nonlocal refused
        async with opened(tenant, client=client) as socket:
            await socket.say(type="ping")
            output = await socket.raw.receive_output(PATIENCE)
            if output["type"] == "websocket.close":
                assert output["code"] == CloseCode.TOO_MANY
                refused += 1
            await is_over.wait()

    coming = [asyncio.create_task(come()) for _n in range(10)]
    async with asyncio.timeout(PATIENCE):
        while refused < 7:
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)
    assert refused == 7
    assert sum(open_sockets._places.values()) == 3
    is_over.set()
    await asyncio.gather(*coming)
    assert not open_sockets._places
