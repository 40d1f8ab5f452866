"""A bud with a scripted model and a real MCP server, and somebody who watches."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from audit.actions import Action
from audit.services import EntryDraft, record
from chat.engine import runner
from chat.live.hub import hub
from chat.models import Bud, Conversation, ModelProvider, ToolCall, Turn
from chat.services.buds import create_bud
from chat.services.conversations import create_conversation
from chat.services.turns import SentTurn, send_message
from chat.snapshots import read_snapshot
from mcp_servers.client.connections import runtime
from mcp_servers.client.values import Protocol
from mcp_servers.models import InputRequest, McpServer
from tests.factories import Tenant, make_tenant
from tests.fakes.asking_server import AskingServer
from tests.fakes.mcp_server import CountingServer
from tests.fakes.scripted_model import ScriptedModel
from tests.mcp_servers.factories import http_server, looked_at, seen
from tests.patience import PATIENCE
from workspaces.actors import Actor, Source

ENDED = {"completed", "failed", "cancelled", "interrupted"}
Event = dict[str, Any]


class Watching:
    """Follows a conversation as a socket does, and lets a test wait for what it wants to see."""

    def __init__(self, conversation_id: UUID) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()
        self._conversation_id = conversation_id
        hub.watch(conversation_id, self, runtime.current().loop)

    def offer(self, conversation_id: UUID, frame: str, seq: int | None) -> None:
        """From the hub."""
        with self._changed:
            self.events.append(json.loads(frame))
            self._changed.notify_all()

    def until(self, wanted: Callable[[Event], bool], seconds: float = PATIENCE) -> Event:
        """The first event that fits, waiting for it if need be."""

        def find() -> Event | None:
            return next((event for event in self.events if wanted(event)), None)

        with self._changed:
            assert self._changed.wait_for(lambda: find() is not None, seconds), self.events[-3:]
        found = find()
        assert found is not None
        return found

    def turn(self, *statuses: str) -> Event:
        """Wait until the turn has one of these states."""
        event = self.until(
            lambda event: event["type"] == "turn.changed" and event["turn"]["status"] in statuses
        )
        return dict(event["turn"])

    def question(self, status: str = "pending") -> Event:
        """Wait until a server's question is in this state."""
        event = self.until(
            lambda event: (
                event["type"] == "input_request.changed"
                and event["input_request"]["status"] == status
            )
        )
        return dict(event["input_request"])

    def text(self) -> str:
        """All deltas so far, joined."""
        return "".join(event["text"] for event in self.events if event["type"] == "text.delta")

    def forget(self) -> None:
        """Look only at what comes from now on."""
        with self._changed:
            self.events.clear()

    def close(self) -> None:
        hub.unwatch(self._conversation_id, self)


@dataclass
class Chat:
    """One person's conversation with a bud."""

    tenant: Tenant
    bud: Bud
    conversation: Conversation
    actor: Actor
    model: ScriptedModel
    server: Any
    row: McpServer
    watching: Watching = field(init=False)

    def __post_init__(self) -> None:
        self.watching = Watching(self.conversation.pk)

    def send(self, text: str = "go", client_id: str | None = None) -> SentTurn:
        """Say something."""
        return send_message(
            conversation=self.conversation,
            client_id=client_id or str(uuid7()),
            text=text,
            actor=self.actor,
        )

    def ask(self, text: str = "go") -> Turn:
        """Say something and wait for the end of the turn."""
        sent = self.send(text)
        self.watching.until(
            lambda event: (
                event["type"] == "turn.changed"
                and event["turn"]["id"] == str(sent.turn.pk)
                and event["turn"]["status"] in ENDED
            )
        )
        return self.reload(sent.turn)

    def results(self) -> list[str]:
        """What the model read as results, oldest first."""
        messages = self.model.requests[-1]["messages"]
        return [str(one["content"]) for one in messages if one["role"] == "tool"]

    def reload(self, turn: Turn) -> Turn:
        """The turn as its row says now."""
        return Turn.objects.for_workspace(self.tenant.workspace).fetch(turn.pk)

    def reload_conversation(self) -> Conversation:
        """The conversation as its row says now."""
        rows = Conversation.objects.for_workspace(self.tenant.workspace)
        return rows.select_related("bud").fetch(self.conversation.pk)

    def calls(self) -> list[ToolCall]:
        """All tool calls, in order."""
        rows = ToolCall.objects.for_workspace(self.tenant.workspace)
        mine = rows.filter(turn__conversation=self.conversation).select_related("turn")
        return list(mine.order_by("message__order_key", "position"))

    def note_requested(self, call: ToolCall) -> None:
        """Leave the log as the gate does just before it sends."""
        draft = EntryDraft(
            action=Action.TOOL_CALL_REQUESTED,
            actor=self.actor,
            workspace_id=call.workspace_id,
            call_id=call.pk,
        )
        record(draft)

    def lose_holder_of_call(self) -> ToolCall:
        """Have a destructive call that a process left between *requested* and *finished* when it died."""
        self.model.call(("counting__plain", {"text": "boom"}))
        sent = self.send()
        self.watching.turn("waiting_for_approval")
        call = self.calls()[0]
        turns = Turn.objects.for_workspace(self.tenant.workspace).filter(pk=sent.turn.pk)
        turns.update(status="running", lease_until=None, lease_token=41)
        call.status = "running"
        call.save()
        self.note_requested(call)
        self.watching.forget()
        return call

    def lose_call(self) -> ToolCall:
        """Have a destructive call of unknown outcome, as whoever took its turn over left it."""
        call = self.lose_holder_of_call()
        runner.wake(call.turn_id, self.tenant.workspace.pk)
        self.watching.turn("waiting_for_input")
        self.watching.forget()
        return self.calls()[0]

    def asked(self) -> list[InputRequest]:
        """Everything that servers asked, in order."""
        rows = InputRequest.objects.for_workspace(self.tenant.workspace)
        return list(rows.filter(conversation_id=self.conversation.pk).order_by("pk"))

    def snapshot(self) -> dict[str, Any]:
        """What a new tab is given."""
        return read_snapshot(self.conversation).as_json()

    def answer(self) -> str:
        """The last thing that the bud said."""
        listed = [m["text"] for m in self.snapshot()["messages"] if m["role"] == "assistant"]
        return str(listed[-1])


@pytest.fixture(autouse=True)
def closed_connections() -> Iterator[None]:
    """No test leaves a turn, a connection or a child to the next."""
    yield
    runtime.shutdown(3.0)


@pytest.fixture
def tenant(transactional_db: None) -> Tenant:
    """A workspace with a person in each role, whom other threads see.

    A test whose own thread does everything takes `tests.factories.tenant`, which rolls back.
    """
    return make_tenant("acme")


@pytest.fixture
def conversation(tenant: Tenant) -> Conversation:
    """A member's conversation with a bud that has nothing."""
    bud = Bud.objects.create(workspace=tenant.workspace, slug="bud", name="Bud")
    return create_conversation(bud=bud, owner=tenant.member, actor=tenant.actor("member"))


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """A model that says what it is told."""
    scripted = ScriptedModel()
    yield scripted
    scripted.stop()


@pytest.fixture
def counting() -> Iterator[CountingServer]:
    """A server that counts what it does."""
    server = CountingServer()
    yield server
    server.stop()


def make_chat(tenant: Tenant, model: ScriptedModel, server: Any, row: McpServer) -> Chat:
    """A member's conversation with a bud that has this server's tools."""
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="scripted",
        base_url=model.base_url,
        default_model="m",
        api_key="sk-scripted-canary-0123456789",
    )
    bud = create_bud(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor(),
        values={"slug": "bud", "name": "Bud", "mcp_config": {"servers": [str(row.pk)]}},
        provider_id=provider.pk,
    )
    actor = tenant.actor("member", source=Source.CHAT)
    conversation = create_conversation(bud=bud, owner=tenant.member, actor=actor)
    return Chat(tenant, bud, conversation, actor, model, server, row)


@pytest.fixture
def chat(tenant: Tenant, model: ScriptedModel, counting: CountingServer) -> Iterator[Chat]:
    """A member's conversation with a bud that has the counting server's tools."""
    row = http_server(tenant, counting.url, name="counting", trusts_annotations=True)
    chatting = make_chat(tenant, model, counting, seen(tenant, row, offers=counting.offers()))
    yield chatting
    chatting.watching.close()


@pytest.fixture
def unknown(chat: Chat) -> ToolCall:
    """A call whose process died before its end was recorded anywhere."""
    return chat.lose_call()


@pytest.fixture
def asking() -> Iterator[AskingServer]:
    """A server that asks back while it works."""
    server = AskingServer()
    yield server
    server.stop()


OLD, NEW = "legacy", "2026-07-28"


def chat_in_era(
    era: str, tenant: Tenant, model: ScriptedModel, asking: AskingServer, **fields: Any
) -> Chat:
    """A conversation with the asking server, in one era of the protocol."""
    draft = {"name": "asking", "protocol": Protocol(era), "trusts_annotations": True, **fields}
    return make_chat(
        tenant, model, asking, looked_at(tenant, http_server(tenant, asking.url, **draft))
    )


@pytest.fixture(params=[OLD, NEW])
def asked(
    request: pytest.FixtureRequest, tenant: Tenant, model: ScriptedModel, asking: AskingServer
) -> Iterator[Chat]:
    """A conversation with a server that asks back, in each era of the protocol."""
    chatting = chat_in_era(request.param, tenant, model, asking)
    yield chatting
    chatting.watching.close()


@pytest.fixture
def parked(tenant: Tenant, model: ScriptedModel, asking: AskingServer) -> Iterator[Chat]:
    """The same in the newest revision, where a question ends the request."""
    chatting = chat_in_era(NEW, tenant, model, asking)
    yield chatting
    chatting.watching.close()


@pytest.fixture
def in_place(tenant: Tenant, model: ScriptedModel, asking: AskingServer) -> Iterator[Chat]:
    """The same in an older revision, where the request stays open."""
    chatting = chat_in_era(OLD, tenant, model, asking)
    yield chatting
    chatting.watching.close()


@pytest.fixture
def hold() -> Iterator[threading.Event]:
    """Keeps an answer under way until it is set."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns are taken by the test, and by nobody else."""
    monkeypatch.setattr(runner, "can_take", lambda: False)
    monkeypatch.setattr(runner, "wake", lambda *_: None)
