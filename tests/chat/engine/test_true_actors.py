"""Who is on record for a call, by every path that leads to one."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.models import AuditEntry
from chat.engine.requests import actor_for_log, actor_of
from chat.models import Turn
from mcp_servers.client.values import Outcome, ToolCallOutcome
from mcp_servers.gate import BuiltinRequest, call_builtin
from tests.chat.conftest import Chat
from tests.mcp_servers.factories import tool_of
from workspaces.actors import ActorKind, Source
from workspaces.errors import PermissionDenied
from workspaces.middleware import actor_for
from workspaces.models import ApiToken

FIELDS = ("actor_kind", "actor_label", "on_behalf_of", "sign_in", "source", "token_id")


def pair(chat: Chat, tool: str = "echo") -> list[AuditEntry]:
    """The two entries of the only call so far."""
    rows = AuditEntry.objects.for_workspace(chat.tenant.workspace)
    found = list(rows.filter(tool_name=tool, action__startswith="tool_call.").order_by("pk"))
    assert [e.action for e in found] == ["tool_call.requested", "tool_call.finished"]
    assert found[0].call_id == found[1].call_id is not None
    return found


def check(
    found: list[AuditEntry],
    *,
    label: str,
    source: str,
    sign_in: str,
    token_id: UUID | None = None,
    on_behalf_of: str = "",
    address: str | None = None,
    request_id: str | None = None,
) -> None:
    for entry in found:
        values = {name: getattr(entry, name) for name in FIELDS}
        assert values == {
            "actor_kind": "user",
            "actor_label": label,
            "on_behalf_of": on_behalf_of,
            "sign_in": sign_in,
            "source": source,
            "token_id": token_id,
        }
        assert entry.ip_address == address
        assert entry.request_id
        assert request_id is None or entry.request_id == request_id
        assert entry.trace_id == ""  # tracing is off


def test_a_person_in_a_conversation(chat: Chat) -> None:
    """SEC-104: the turn works after the request is over, and still says who, from where, by which request."""
    person = chat.tenant.member
    chat.actor = actor_for(
        person,
        chat.tenant.workspace,
        source=Source.CHAT,
        ip_address="192.0.2.7",
        request_id="from-the-socket",
    )
    chat.model.call(("counting__echo", {"text": "x"}))
    chat.model.say("Done.")
    assert chat.ask().status == "completed"
    check(
        pair(chat),
        label=person.email,
        source="chat",
        sign_in="session",
        address="192.0.2.7",
        request_id="from-the-socket",
    )


def test_a_turn_begun_by_a_token(chat: Chat) -> None:
    """SEC-104: a program's turn says which token, and stops when that is revoked."""
    token = ApiToken.objects.create(
        workspace=chat.tenant.workspace,
        user=chat.tenant.member,
        name="t",
        token_hash="0" * 64,
        hint="tr_12345",
        scopes=["chat"],
        expires_at=timezone.now() + timedelta(hours=1),
    )
    chat.actor = actor_for(
        chat.tenant.member,
        chat.tenant.workspace,
        source=Source.API,
        ip_address="192.0.2.8",
        request_id="from-the-api",
        token=token,
    )
    chat.model.call(("counting__echo", {"text": "x"}))
    chat.model.say("Done.")
    turn = chat.ask()
    assert turn.status == "completed"
    check(
        pair(chat),
        label=chat.tenant.member.email,
        source="api",
        sign_in="token",
        token_id=token.pk,
        address="192.0.2.8",
        request_id="from-the-api",
    )
    token.delete()
    turn = Turn.objects.for_workspace(chat.tenant.workspace).get(pk=turn.pk)
    with pytest.raises(PermissionDenied):
        actor_of(turn)
    actor = actor_for_log(turn)
    assert (actor.kind, actor.source) == (ActorKind.SYSTEM, Source.TASK)
    assert actor.on_behalf_of == chat.tenant.member.email


def test_somebody_who_may_not_enter_any_more(chat: Chat) -> None:
    """SEC-104: their turn has no rights, and the log still says whose it was."""
    chat.model.say("Done.")
    turn = chat.ask()
    chat.tenant.member.is_active = False
    chat.tenant.member.save()
    actor = actor_of(Turn.objects.for_workspace(chat.tenant.workspace).get(pk=turn.pk))
    assert (actor.kind, actor.role) == (ActorKind.ANONYMOUS, None)
    assert actor.on_behalf_of == chat.tenant.member.email


@pytest.mark.parametrize("door", ["api", "page"])
def test_an_administrators_try(chat: Chat, door: str) -> None:
    """SEC-104: over REST and on the page, the address and the id that the answer carries."""
    client = chat.tenant.client("admin", REMOTE_ADDR="192.0.2.9")
    tool, slug = tool_of(chat.row, "echo"), chat.tenant.workspace.slug
    if door == "api":
        answer = client.post(
            f"/api/tools/{tool.pk}/test/",
            data=json.dumps({"arguments": {"text": "x"}}),
            content_type="application/json",
            headers={"X-Workspace": slug},
        )
    else:
        url = reverse("mcp_servers:tool_try", args=[slug, chat.row.pk, tool.pk])
        answer = client.post(url, {"arguments": json.dumps({"text": "x"})})
    assert answer.status_code == 200
    check(
        pair(chat),
        label=chat.tenant.admin.email,
        source="api" if door == "api" else "web",
        sign_in="session",
        address="192.0.2.9",
        request_id=answer["X-Request-ID"],
    )


def test_a_background_part_acts_for_a_person(chat: Chat) -> None:
    """SEC-104: nobody is signed in, and it says on whose behalf."""
    person = chat.tenant.member
    actor = actor_for(person, chat.tenant.workspace, source=Source.TASK, request_id="task-1")
    run(chat, actor)
    check(
        pair(chat, "make_file"),
        label=person.email,
        source="task",
        sign_in="",
        on_behalf_of=person.email,
        request_id="task-1",
    )


def test_a_built_in_tool(chat: Chat) -> None:
    """SEC-104: what the platform does itself is on record for the person who asked."""
    actor = actor_for(
        chat.tenant.member,
        chat.tenant.workspace,
        source=Source.CHAT,
        ip_address="192.0.2.10",
        request_id="r",
    )
    run(chat, actor)
    check(
        pair(chat, "make_file"),
        label=chat.tenant.member.email,
        source="chat",
        sign_in="session",
        address="192.0.2.10",
        request_id="r",
    )


def run(chat: Chat, actor: Any) -> None:
    request = BuiltinRequest(
        call_id=uuid7(),
        workspace_id=chat.tenant.workspace.pk,
        name="make_file",
        arguments={},
        input_schema={"type": "object"},
        actor=actor,
    )
    outcome = async_to_sync(call_builtin)(request, lambda: ToolCallOutcome(outcome=Outcome.OK))
    assert outcome.outcome is Outcome.OK


def test_a_command(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-104: manage.py ask runs for a member, as somebody who has the machine."""
    # The command ends the connections of its process; the test's own end does.
    monkeypatch.setattr("chat.management.commands.ask.runtime.shutdown", lambda seconds: None)
    chat.model.call(("counting__echo", {"text": "x"}))
    chat.model.say("Done.")
    member = chat.tenant.member.email
    slug = chat.tenant.workspace.slug
    call_command("ask", "hello", "--workspace", slug, "--bud", "bud", "--user", member)
    check(pair(chat), label=member, source="command", sign_in="command")
