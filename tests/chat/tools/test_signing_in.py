"""A call that needs an account at its server waits for the sign-in, and the same call goes on after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.core.management import call_command

from audit.models import AuditEntry
from chat.engine import runner, turns
from chat.engine.attaching import ResourceRef
from chat.models import ToolCall, Turn
from chat.services.approvals import decide
from chat.services.conversations import create_conversation
from chat.services.inputs import answer_input, expire_inputs
from chat.services.turns import send_message, stop_turn
from chat.values import Decision
from mcp_servers.client.connections import runtime
from mcp_servers.client.inputs import InputAction
from mcp_servers.models import AccountUse, InputRequest, McpTool, OAuthGrant
from mcp_servers.oauth import services
from mcp_servers.registry.elicitation import complete_sign_ins
from mcp_servers.registry.services import ServerDraft, update_server
from mcp_servers.registry.services.sign_ins import finish_sign_in
from tests.chat.conftest import Chat, make_chat
from tests.factories import Tenant
from tests.fakes.protected_server import ProtectedServer
from tests.fakes.scripted_model import ScriptedModel
from tests.fakes.signing_in import granted
from tests.mcp_servers.factories import http_server, looked_at
from workspaces.database import database_now
from workspaces.errors import Conflict

WHOAMI: tuple[str, dict[str, object]] = ("mail__whoami", {})


def mail_chat(
    tenant: Tenant, model: ScriptedModel, protected: ProtectedServer, account_use: str = "user"
) -> Chat:
    """A member's conversation with a server that an administrator has connected and looked at."""
    protected.add_tool("write", scope="mail.write")
    row = http_server(
        tenant,
        protected.url,
        name="mail",
        auth_type="oauth",
        account_use=account_use,
        trusts_annotations=True,
    )
    first_user = tenant.admin if account_use == "user" else None
    first = granted(row, protected, first_user, "admin@example.com")
    looked_at(tenant, row)
    if first_user is None:
        first.delete()
    return make_chat(tenant, model, protected, row)


@pytest.fixture
def mail(tenant: Tenant, model: ScriptedModel, protected: ProtectedServer) -> Iterator[Chat]:
    """Each person signs in for themselves, and the member has not."""
    chatting = mail_chat(tenant, model, protected)
    yield chatting
    chatting.watching.close()


def wait_for_card(chat: Chat, *calls: tuple[str, dict[str, object]]) -> InputRequest:
    """Send a message whose answer makes these calls; the first card, once the turn waits."""
    chat.model.call(*(calls or (WHOAMI,)))
    chat.model.say("done")
    chat.send()
    chat.watching.turn("waiting_for_input")
    shown = chat.watching.question()
    return InputRequest.objects.for_workspace(chat.tenant.workspace).fetch(UUID(shown["id"]))


def sign_in(chat: Chat, account: str = "mia@example.com", *scopes: str) -> OAuthGrant:
    """What a finished sign-in of the member leaves behind."""
    member = chat.tenant.member
    OAuthGrant.objects.for_workspace(chat.tenant.workspace).filter(user=member).delete()
    grant = granted(chat.row, chat.server, member, account, scopes or ("mail.read",))
    complete_sign_ins(chat.row.pk, member.pk)
    return grant


def sign_in_at_the_issuer(chat: Chat) -> None:
    """The whole way, as the member's browser goes it; on whatever device."""
    about: Any = {"server": chat.row, "actor": chat.actor, "session_key": "another-device"}
    origin = settings.TRELLIS.public_origins[0]
    started = services.start_sign_in(**about, origin=origin)
    params = chat.server.issuer.consent(started.url, "mia@example.com")
    finish_sign_in(**about, params=params)


def turn_of(chat: Chat) -> Turn:
    return Turn.objects.for_workspace(chat.tenant.workspace).get(conversation=chat.conversation)


def log_of(chat: Chat, prefix: str = "tool_call") -> list[str]:
    """How the audit log tells of the first call."""
    entries = AuditEntry.objects.for_workspace(chat.tenant.workspace).filter(
        call_id=chat.calls()[0].pk, action__startswith=prefix
    )
    return [
        f"{action} {outcome}".strip()
        for action, outcome in entries.order_by("id").values_list("action", "outcome")
    ]


def test_the_call_waits_for_the_sign_in_and_goes_on(mail: Chat) -> None:
    """SEC-53: nothing is sent before, with nobody else's account; the same call goes on with the person's own."""
    card = wait_for_card(mail)
    shown = mail.snapshot()["input_requests"][0]
    assert (shown["kind"], shown["status"]) == ("sign_in", "pending")
    assert shown["params"]["host"] == "127.0.0.1"
    assert shown["params"]["account"] == "user"
    assert (shown["params"]["reason"], shown["params"]["scopes"]) == ("missing", ["mail.read"])
    assert shown["sign_in"]["may_connect"]
    assert shown["sign_in"]["path"].endswith(f"/servers/{mail.row.pk}/sign-in/")
    assert mail.server.calls == []
    sign_in_at_the_issuer(mail)
    mail.watching.turn("completed")
    assert mail.server.called_by("whoami") == ["mia@example.com"]
    assert "mia@example.com" in mail.results()[-1]
    [call] = mail.calls()
    assert call.status == "succeeded"
    card.refresh_from_db()
    assert card.status == "accepted"
    assert log_of(mail) == [
        "tool_call.requested",
        "tool_call.resumed",
        "tool_call.finished ok",
    ]


def test_nobody_is_asked_to_approve_what_cannot_run(mail: Chat) -> None:
    """SEC-292: the sign-in comes first, then the approval, and then the call runs once."""
    McpTool.objects.for_workspace(mail.tenant.workspace).update(approval_override="confirm")
    wait_for_card(mail)
    assert mail.calls()[0].status == "waiting_for_input"
    assert log_of(mail) == []
    assert log_of(mail, "approval") == []
    sign_in(mail)
    mail.watching.turn("waiting_for_approval")
    assert mail.server.calls == []
    [call] = mail.calls()
    decide(call=call, decision=Decision.APPROVED, actor=mail.actor)
    mail.watching.turn("completed")
    assert mail.server.called_by("whoami") == ["mia@example.com"]
    assert log_of(mail) == ["tool_call.requested", "tool_call.finished ok"]


def test_whoever_declines_to_sign_in_is_not_asked_to_approve(mail: Chat) -> None:
    """SEC-292: the model reads why, and the log has the refusal."""
    McpTool.objects.for_workspace(mail.tenant.workspace).update(approval_override="confirm")
    card = wait_for_card(mail)
    answer_input(request=card, action=InputAction.DECLINE, actor=mail.actor)
    mail.watching.turn("completed")
    assert "chose not to sign in" in mail.results()[-1]
    assert log_of(mail, "approval") == []
    assert log_of(mail) == ["tool_call.refused"]
    assert mail.server.calls == []


def test_a_stop_while_it_waits_for_the_first_sign_in_leaves_nothing_open(mail: Chat) -> None:
    """SEC-292: the card is withdrawn, and nothing was requested."""
    McpTool.objects.for_workspace(mail.tenant.workspace).update(approval_override="confirm")
    card = wait_for_card(mail)
    stop_turn(turn=turn_of(mail), actor=mail.actor)
    mail.watching.turn("cancelled")
    card.refresh_from_db()
    assert card.status == "cancelled"
    assert log_of(mail) == []


def test_the_log_says_what_was_asked_for(mail: Chat) -> None:
    """SEC-56: with host, account and reason, when it is put and when it is settled; and no token."""
    wait_for_card(mail)
    sign_in(mail)
    mail.watching.turn("completed")
    entries = AuditEntry.objects.for_workspace(mail.tenant.workspace)
    asked, answered = entries.filter(action__startswith="input.").order_by("id")
    assert (asked.action, answered.action) == ("input.requested", "input.answered")
    for entry in (asked, answered):
        assert entry.details["host"] == "127.0.0.1"
        assert (entry.details["account"], entry.details["reason"]) == ("user", "missing")
    assert answered.details["status"] == "accepted"


def test_whoever_declines_has_the_call_fail_unsent(mail: Chat) -> None:
    """Ours: the model reads why, and the turn goes on; accepting by hand is no sign-in."""
    card = wait_for_card(mail)
    with pytest.raises(Conflict):
        answer_input(request=card, action=InputAction.ACCEPT, actor=mail.actor)
    answer_input(request=card, action=InputAction.DECLINE, actor=mail.actor)
    mail.watching.turn("completed")
    assert "chose not to sign in" in mail.results()[-1]
    assert mail.server.calls == []
    assert mail.calls()[0].status == "failed"
    assert log_of(mail)[-1] == "tool_call.finished transport_error"


def test_a_sign_in_that_nobody_makes_runs_out(mail: Chat) -> None:
    """Ours: the call fails in plain words, and the turn ends by itself."""
    card = wait_for_card(mail)
    rows = InputRequest.objects.for_workspace(mail.tenant.workspace)
    rows.filter(pk=card.pk).update(expires_at=database_now() - timedelta(seconds=1))
    assert expire_inputs() == 1
    mail.watching.turn("completed")
    assert "in time" in mail.results()[-1]
    assert mail.server.calls == []


def test_stop_takes_the_card_back_and_says_that_nothing_was_done(mail: Chat) -> None:
    """REL-09: a call that waits for a sign-in was never sent, so its end is certain."""
    card = wait_for_card(mail)
    rows = ToolCall.objects.for_workspace(mail.tenant.workspace)
    rows.update(annotations={})  # not harmless by its server's word
    stop_turn(turn=turn_of(mail), actor=mail.actor)
    mail.watching.turn("cancelled")
    card.refresh_from_db()
    assert card.status == "cancelled"
    assert "unknown" not in mail.calls()[0].model_text
    assert log_of(mail) == ["tool_call.requested", "tool_call.finished cancelled"]


def test_one_sign_in_serves_all_calls_of_a_step(mail: Chat) -> None:
    """Ours: each call has its card, and the one grant settles them all."""
    wait_for_card(mail, WHOAMI, ("mail__whoami", {"text": "again"}))
    assert [row.status for row in mail.asked()] == ["pending", "pending"]
    sign_in(mail)
    mail.watching.turn("completed")
    assert [row.status for row in mail.asked()] == ["accepted", "accepted"]
    assert mail.server.called_by("whoami") == ["mia@example.com"] * 2


def test_two_conversations_wait_for_one_sign_in(mail: Chat) -> None:
    """Ours: wherever a call of this person waits, it goes on."""
    other = replace(
        mail,
        conversation=create_conversation(bud=mail.bud, owner=mail.tenant.member, actor=mail.actor),
    )
    for chatting in (mail, other):
        mail.model.call(WHOAMI)
        chatting.send()
        chatting.watching.turn("waiting_for_input")
    mail.model.say("done")
    mail.model.say("done")
    sign_in(mail)
    mail.watching.turn("completed")
    other.watching.turn("completed")
    other.watching.close()
    assert mail.server.called_by("whoami") == ["mia@example.com"] * 2


def test_another_persons_sign_in_settles_nothing(mail: Chat) -> None:
    """SEC-53: an administrator's account is no help to the member's call, and is never used for it."""
    card = wait_for_card(mail)
    assert complete_sign_ins(mail.row.pk, mail.tenant.admin.pk) == []
    assert complete_sign_ins(mail.row.pk, None) == []
    card.refresh_from_db()
    assert card.status == "pending"
    assert mail.server.calls == []


def test_it_outlives_the_process(mail: Chat) -> None:
    """REL-02: nothing runs while it waits; a new process goes on from the checkpoint."""
    wait_for_card(mail)
    assert turn_of(mail).lease_until is None
    runtime.shutdown(3.0)
    mail.watching.close()
    mail.watching = type(mail.watching)(mail.conversation.pk)
    sign_in(mail)
    mail.watching.turn("completed")
    assert mail.server.called_by("whoami") == ["mia@example.com"]
    assert len(mail.asked()) == 1


def test_a_process_that_dies_while_it_waits_loses_nothing(mail: Chat) -> None:
    """REL-02: whoever takes the turn over parks it again, with the same card."""
    card = wait_for_card(mail)
    workspace = mail.tenant.workspace
    ToolCall.objects.for_workspace(workspace).update(status="running")
    Turn.objects.for_workspace(workspace).filter(pk=turn_of(mail).pk).update(
        status="running", lease_until=database_now() - timedelta(seconds=1)
    )
    mail.watching.forget()
    runner.wake(turn_of(mail).pk, workspace.pk)
    mail.watching.turn("waiting_for_input")
    assert [row.pk for row in mail.asked()] == [card.pk]
    sign_in(mail)
    mail.watching.turn("completed")
    assert mail.server.called_by("whoami") == ["mia@example.com"]


def test_a_process_that_dies_before_the_approval_asks_for_the_sign_in_once(mail: Chat) -> None:
    """SEC-292: whoever takes the turn over shows the same card, and the approval follows the sign-in."""
    workspace = mail.tenant.workspace
    McpTool.objects.for_workspace(workspace).update(approval_override="confirm")
    card = wait_for_card(mail)
    ToolCall.objects.for_workspace(workspace).update(status="running")
    Turn.objects.for_workspace(workspace).filter(pk=turn_of(mail).pk).update(
        status="running", lease_until=database_now() - timedelta(seconds=1)
    )
    mail.watching.forget()
    runner.wake(turn_of(mail).pk, workspace.pk)
    mail.watching.turn("waiting_for_input")
    assert [row.pk for row in mail.asked()] == [card.pk]
    sign_in(mail)
    mail.watching.turn("waiting_for_approval")
    assert mail.server.calls == []
    decide(call=mail.calls()[0], decision=Decision.APPROVED, actor=mail.actor)
    mail.watching.turn("completed")
    assert mail.server.called_by("whoami") == ["mia@example.com"]


def test_a_process_that_dies_before_it_asks_leaves_a_call_that_begins_again(mail: Chat) -> None:
    """REL-08: the checkpoint is kept before the card is put, so the call is never of unknown outcome."""
    wait_for_card(mail)
    workspace = mail.tenant.workspace
    mail.asked()[0].delete()
    ToolCall.objects.for_workspace(workspace).update(status="running", annotations={})
    turn = turn_of(mail)
    Turn.objects.for_workspace(workspace).filter(pk=turn.pk).update(
        status="running", lease_until=database_now() - timedelta(seconds=1)
    )
    taken = turns.take(turn.pk, workspace.pk)
    assert taken is not None
    assert isinstance(taken[1], turns.CallTools)


def test_a_process_that_dies_after_the_sign_in_holds_nothing_up(mail: Chat) -> None:
    """REL-02: the grant is there and nobody was told of it; the next sweep sees that."""
    card = wait_for_card(mail)
    rows = InputRequest.objects.for_workspace(mail.tenant.workspace).filter(pk=card.pk)
    assert expire_inputs() == 0
    rows.update(created_at=database_now() - timedelta(minutes=2))
    expire_inputs()
    assert rows.get().status == "pending"
    granted(mail.row, mail.server, mail.tenant.member, "mia@example.com")
    expire_inputs()
    mail.watching.turn("completed")
    assert mail.server.called_by("whoami") == ["mia@example.com"]


def test_a_tool_that_wants_more_leads_to_a_second_sign_in(mail: Chat) -> None:
    """MCP specification, "Scope Challenge Handling": 403 insufficient_scope asks for exactly what is missing."""
    sign_in(mail)
    wait_for_card(mail, ("mail__write", {"text": "hello"}))
    [card] = mail.snapshot()["input_requests"]
    assert (card["params"]["reason"], card["params"]["scopes"]) == ("scope", ["mail.write"])
    sign_in_at_the_issuer(mail)
    mail.watching.turn("completed")
    asked_for = mail.server.issuer.at("authorize")[-1].query["scope"].split()
    assert {"mail.read", "mail.write"} <= set(asked_for)
    assert mail.server.called_by("write") == ["mia@example.com"]


def test_a_plain_403_is_no_matter_of_signing_in(mail: Chat) -> None:
    """Ours: no card, and the call fails with what the server said."""
    sign_in(mail)
    mail.server.forbids = {"whoami"}
    mail.model.call(WHOAMI)
    mail.model.say("done")
    mail.ask()
    assert mail.asked() == []
    assert mail.calls()[0].status == "failed"


def test_a_server_that_refuses_every_sign_in_is_given_up(mail: Chat) -> None:
    """Ours: three times, and then the call fails; never an endless round."""
    sign_in(mail)
    wait_for_card(mail, ("mail__write", {"text": "hello"}))
    for number in (1, 2, 3):
        mail.watching.forget()
        sign_in(mail)
        mail.watching.turn("waiting_for_input" if number < 3 else "completed")
    assert [row.status for row in mail.asked()] == ["accepted"] * 3
    assert "still refuses access" in mail.results()[-1]
    assert mail.server.called_by("write") == []


def test_a_member_waits_for_the_administrator_where_one_account_serves_all(
    tenant: Tenant, model: ScriptedModel, protected: ProtectedServer
) -> None:
    """SEC-53: the member may not connect the workspace's account; the call goes on once somebody has."""
    chatting = mail_chat(tenant, model, protected, "workspace")
    wait_for_card(chatting)
    [shown] = chatting.snapshot()["input_requests"]
    assert shown["params"]["account"] == "workspace"
    assert shown["sign_in"]["may_connect"] is False
    granted(chatting.row, protected, None, "team@example.com")
    assert complete_sign_ins(chatting.row.pk, tenant.member.pk) == []
    complete_sign_ins(chatting.row.pk, None)
    chatting.watching.turn("completed")
    assert protected.called_by("whoami") == ["team@example.com"]
    chatting.watching.close()


def test_a_server_that_goes_ends_what_waits_for_it(mail: Chat) -> None:
    """Ours: also where people sign in otherwise by now, nobody is left with a card that leads nowhere."""
    card = wait_for_card(mail)
    update_server(
        server=mail.row,
        draft=ServerDraft(account_use=AccountUse.WORKSPACE),
        actor=mail.tenant.actor(),
    )
    mail.watching.turn("completed")
    card.refresh_from_db()
    assert card.status == "cancelled"
    assert "withdrawn" in mail.results()[-1]
    assert log_of(mail)[-1] == "tool_call.finished transport_error"


def test_an_attachment_waits_too(mail: Chat) -> None:
    """Ours: what is read before the first answer waits in place, with a card that belongs to no call."""
    mail.model.say("done")
    send_message(
        conversation=mail.conversation,
        client_id="one",
        text="Sum up",
        attachments=[ResourceRef(server_id=mail.row.pk, uri="mail://inbox")],
        actor=mail.actor,
    )
    mail.watching.turn("waiting_for_input")
    assert mail.watching.question()["kind"] == "sign_in"
    sign_in(mail)
    mail.watching.turn("completed")
    assert "inbox of mia@example.com" in str(mail.model.requests[0]["messages"])


def test_programs_see_it_and_cannot_accept_it(mail: Chat) -> None:
    """Ours: over REST it is listed with where to sign in; accepting is refused in words, declining works."""
    card = wait_for_card(mail)
    browser = mail.tenant.client("member", headers={"X-Workspace": mail.tenant.workspace.slug})
    base = "/api/input-requests/"
    [row] = browser.get(base, {"status": "pending"}).json()["results"]
    assert (row["kind"], row["sign_in"]["may_connect"]) == ("sign_in", True)
    answer = f"{base}{card.pk}/answer/"
    refused = browser.post(answer, {"action": "accept"}, content_type="application/json")
    assert refused.status_code == 409
    assert "Sign in at the server" in refused.content.decode()
    declined = browser.post(answer, {"action": "decline"}, content_type="application/json")
    assert declined.status_code == 200
    mail.watching.turn("completed")


def test_the_terminal_says_where_to_sign_in(
    mail: Chat, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours: manage.py ask cannot open a browser, so it names the page, and ends as failed."""
    # The command ends the connections of its process; the test's own end does.
    monkeypatch.setattr("chat.management.commands.ask.runtime.shutdown", lambda seconds: None)
    mail.model.call(WHOAMI)
    mail.model.say("done")
    person = ["--workspace", mail.tenant.workspace.slug, "--user", mail.tenant.member.email]
    with pytest.raises(SystemExit) as ended:
        call_command("ask", "hello", "--bud", "bud", *person)
    assert ended.value.code == 1
    output = capsys.readouterr().out
    assert '"code": "sign_in_missing"' in output
    assert f"/servers/{mail.row.pk}/sign-in/" in output
    assert mail.server.calls == []


def test_the_card_of_an_approval_says_whose_account_is_used(mail: Chat) -> None:
    """Ours: before anybody says yes."""
    mail.model.call(("mail__send", {"text": "hello"}))
    mail.send()
    mail.watching.turn("waiting_for_input")
    sign_in(mail)
    mail.watching.turn("waiting_for_approval")
    [card] = mail.snapshot()["tool_calls"]
    assert card["approval"]["credential"] == "personal"
