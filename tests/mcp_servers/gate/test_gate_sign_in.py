"""The gate and accounts: whose is used, who is asked to sign in, and what happens where nobody is there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.actions import Outcome
from audit.errors import AuditUnavailable
from audit.models import AuditEntry
from mcp_servers.client.connections.pool import pool as connections
from mcp_servers.client.errors import CallRefused, InputMissing, InvalidArguments
from mcp_servers.client.inputs import InputAction
from mcp_servers.client.values import PromptRequest, ResourceRequest, TextPart, ToolCallOutcome
from mcp_servers.gate import (
    abandon_call,
    call_tool,
    get_prompt,
    is_unsent,
    read_resource,
    signing_in,
)
from mcp_servers.models import InputRequest, InputStatus, McpPrompt, McpServer
from mcp_servers.oauth.grants import usable_grant
from mcp_servers.registry.consent.approvals import grant_approval
from mcp_servers.registry.elicitation import (
    QuestionOrigin,
    answer_input,
    complete_sign_ins,
    sign_ins,
)
from mcp_servers.registry.elicitation.rows import settle
from mcp_servers.registry.services import delete_server
from tests.factories import Tenant
from tests.fakes.protected_server import ProtectedServer
from tests.fakes.signing_in import granted
from tests.mcp_servers.factories import (
    ListeningCaller,
    a_request,
    actor_of,
    http_server,
    looked_at,
    tool_of,
)
from tests.patience import PATIENCE
from tests.threads import Threads
from workspaces.actors import Actor, Source
from workspaces.errors import Conflict


def mail_server(tenant: Tenant, protected: ProtectedServer, **fields: Any) -> McpServer:
    draft = {"name": "mail", "auth_type": "oauth", "trusts_annotations": True, **fields}
    return http_server(tenant, protected.url, **draft)


@pytest.fixture
def own(tenant: Tenant, protected: ProtectedServer) -> McpServer:
    """Each person signs in; an administrator has, and the member has not."""
    server = mail_server(tenant, protected)
    granted(server, protected, tenant.admin, "admin@example.com")
    return looked_at(tenant, server)


@pytest.fixture
def shared(tenant: Tenant, protected: ProtectedServer) -> McpServer:
    """One account for everybody, which was connected once and is no more."""
    server = mail_server(tenant, protected, account_use="workspace")
    grant = granted(server, protected, None, "team@example.com")
    server = looked_at(tenant, server)
    grant.delete()
    return server


async def call(tenant: Tenant, server: McpServer, **more: Any) -> ToolCallOutcome:
    caller = more.pop("caller", None)
    tool = await sync_to_async(tool_of)(server, more.pop("name", "whoami"))
    return await call_tool(a_request(tenant, tool, **more), caller=caller)


def signs_in(tenant: Tenant, server: McpServer, protected: ProtectedServer, *scopes: str) -> None:
    granted(server, protected, tenant.member, "mia@example.com", scopes or ("mail.read",))
    complete_sign_ins(server.pk, tenant.member.pk)


async def while_it_waits(
    work: Awaitable[Any], caller: ListeningCaller, settle: Callable[[], object]
) -> Any:
    """Begin, settle what is asked once somebody is waited for, and the end."""
    running = asyncio.ensure_future(work)
    assert await asyncio.wait_for(caller.waits.get(), PATIENCE)
    await sync_to_async(settle)()
    return await asyncio.wait_for(running, PATIENCE)


def rows_of(tenant: Tenant) -> list[InputRequest]:
    return list(InputRequest.objects.for_workspace(tenant.workspace))


async def test_a_call_in_place_goes_on_after_the_sign_in(
    tenant: Tenant, own: McpServer, protected: ProtectedServer
) -> None:
    """SEC-53: with the person's own account, and with a slot that others could use meanwhile."""
    caller = ListeningCaller()
    work = call(tenant, own, caller=caller, can_ask=True)

    def settle() -> None:
        spec_slots = [slots for key, slots in connections._slots.items() if key[1] == own.pk]
        assert [slots._taken for slots in spec_slots] == [0]
        signs_in(tenant, own, protected)

    outcome = await while_it_waits(work, caller, settle)
    assert outcome.outcome is Outcome.OK
    assert protected.called_by("whoami") == ["mia@example.com"]
    assert protected.refused == []


async def test_whoever_declines_in_place_is_told_so(
    tenant: Tenant, own: McpServer, protected: ProtectedServer
) -> None:
    """Ours: nothing was sent, and the outcome says why."""
    caller = ListeningCaller()

    def decline() -> None:
        [row] = rows_of(tenant)
        answer_input(
            input_request=row, action=InputAction.DECLINE, actor=actor_of(tenant, "member")
        )

    outcome = await while_it_waits(call(tenant, own, caller=caller, can_ask=True), caller, decline)
    assert outcome.details == {"kind": "auth_required", "sign_in": "declined"}
    assert "chose not to sign in to mail" in outcome.message
    assert protected.called_by("whoami") == []


@pytest.mark.parametrize(
    ("source", "words"),
    [(Source.TASK, "nobody is present"), (Source.API, "My connections")],
)
async def test_where_nobody_can_be_asked_it_fails_closed(
    tenant: Tenant, own: McpServer, protected: ProtectedServer, source: Source, words: str
) -> None:
    """SEC-53: scheduled work uses no person's account, and says so; a program is told where to connect."""
    await sync_to_async(signs_in)(tenant, own, protected)
    if source is Source.API:
        await sync_to_async(lambda: own.grants.filter(user=tenant.member).delete())()
    before = len(protected.requests)
    outcome = await call(
        tenant, own, actor=actor_of(tenant, "member", source), can_ask=source is Source.TASK
    )
    assert outcome.details["kind"] == "auth_required"
    assert words in outcome.message
    assert len(protected.requests) == before
    assert await sync_to_async(rows_of)(tenant) == []


async def test_a_task_uses_the_workspaces_account(
    tenant: Tenant, shared: McpServer, protected: ProtectedServer
) -> None:
    """SEC-53: the account that was connected for work without anybody present."""
    await sync_to_async(granted)(shared, protected, None, "team@example.com")
    outcome = await call(tenant, shared, actor=actor_of(tenant, "member", Source.TASK))
    assert outcome.content == (TextPart(text="team@example.com"),)


async def test_nobody_else_has_the_account_of_the_one_who_signed_in(
    tenant: Tenant, own: McpServer, protected: ProtectedServer
) -> None:
    """SEC-53: after one person's consent another's call still wants their own."""
    await sync_to_async(signs_in)(tenant, own, protected)
    with pytest.raises(InputMissing):
        await call(
            tenant,
            own,
            actor=actor_of(tenant, "auditor"),
            can_ask=True,
            can_wait_elsewhere=True,
            caller=ListeningCaller(),
        )
    [row] = await sync_to_async(rows_of)(tenant)
    assert row.asked_of_id == tenant.auditor.pk
    assert protected.called_by("whoami") == []


async def test_a_parked_call_keeps_that_it_was_not_sent(
    tenant: Tenant, own: McpServer, protected: ProtectedServer
) -> None:
    """REL-08: its checkpoint says so before anybody is asked; given up, *requested* has its *finished*."""
    caller, call_id = ListeningCaller(), uuid7()
    tool = await sync_to_async(tool_of)(own, "whoami")
    request = a_request(tenant, tool, call_id=call_id, can_ask=True, can_wait_elsewhere=True)
    with pytest.raises(InputMissing):
        await call_tool(request, caller=caller)
    [checkpoint] = caller.checkpoints
    assert is_unsent(checkpoint)
    assert not is_unsent("")
    parked = a_request(
        tenant, tool, call_id=call_id, can_ask=True, can_wait_elsewhere=True, checkpoint=checkpoint
    )
    with pytest.raises(InputMissing):
        await call_tool(parked, caller=caller)
    await sync_to_async(abandon_call)(parked)
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(call_id=call_id)
    actions = entries.order_by("id").values_list("action", flat=True)
    assert await sync_to_async(lambda: list(actions))() == [
        "tool_call.requested",
        "input.requested",
        "tool_call.finished",
    ]


async def test_a_database_whose_clock_is_ahead_keeps_nobody_from_being_asked(
    tenant: Tenant, own: McpServer, protected: ProtectedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a grant of just now is not taken for one that came after the try that was refused."""
    await sync_to_async(signs_in)(tenant, own, protected)
    ahead = timezone.now() + timedelta(hours=1)
    await own.grants.filter(user=tenant.member).aupdate(granted_at=ahead - timedelta(minutes=1))
    monkeypatch.setattr(signing_in, "database_now", lambda: ahead)
    protected.refuses = True
    with pytest.raises(InputMissing):
        await call(tenant, own, can_ask=True, can_wait_elsewhere=True, caller=ListeningCaller())
    [row] = await sync_to_async(rows_of)(tenant)
    assert row.params["reason"] == "refused"


@pytest.mark.parametrize("waits_elsewhere", [True, False])
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"server": {"trusts_annotations": False}}, "hints.untrusted"),
        ({"tool": {"definition_hash": "d2", "approved_hash": "d2"}}, "approval.outdated"),
        ({"tool": {"input_schema": {"type": "object", "required": ["x"]}}}, "arguments.schema"),
    ],
)
async def test_a_call_that_waited_unsent_is_let_through_by_todays_rules(
    tenant: Tenant,
    own: McpServer,
    protected: ProtectedServer,
    change: dict[str, dict[str, Any]],
    rule: str,
    *,
    waits_elsewhere: bool,
) -> None:
    """SEC-60: trust that was taken back, another definition than the approved one, arguments that no longer fit."""
    caller, call_id = ListeningCaller(), uuid7()
    tool = await sync_to_async(tool_of)(own, "whoami")
    more: dict[str, Any] = {"call_id": call_id, "can_ask": True}
    if rule == "approval.outdated":
        approval = await sync_to_async(grant_approval)(
            call_id=call_id,
            tool=tool,
            arguments={},
            requester=actor_of(tenant, "member"),
            approver=actor_of(tenant, "member"),
            expires_at=timezone.now() + timedelta(minutes=5),
        )
        more["approval_id"] = approval.pk

    def settle() -> None:
        for row, fields in ((own, change.get("server", {})), (tool, change.get("tool", {}))):
            for name, value in fields.items():
                setattr(row, name, value)
            row.save()
        signs_in(tenant, own, protected)

    if waits_elsewhere:
        parked = a_request(tenant, tool, {}, **more, can_wait_elsewhere=True)
        with pytest.raises(InputMissing):
            await call_tool(parked, caller=caller)
        await sync_to_async(settle)()
        again = replace(parked, checkpoint=caller.checkpoints[-1])
        with pytest.raises((CallRefused, InvalidArguments)):
            await call_tool(again, caller=caller)
    else:
        work = call_tool(a_request(tenant, tool, {}, **more), caller=caller)
        outcome = await while_it_waits(work, caller, settle)
        assert outcome.details["kind"] == "refused"
    assert protected.called_by("whoami") == []
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(call_id=call_id)
    entry = await entries.aget(action="tool_call.refused")
    assert entry.rule == rule


async def test_a_resource_waits_where_a_page_is_there_and_says_where_to_connect_where_none_is(
    tenant: Tenant, own: McpServer, protected: ProtectedServer
) -> None:
    """Ours: the same for what is read."""

    def request() -> ResourceRequest:
        return ResourceRequest(
            call_id=uuid7(),
            workspace_id=tenant.workspace.pk,
            server_id=own.pk,
            uri="mail://inbox",
            actor=actor_of(tenant, "member"),
        )

    refused = await read_resource(request())
    assert "My connections" in refused.message
    assert refused.details["kind"] == "auth_required"
    caller = ListeningCaller()
    read = await while_it_waits(
        read_resource(request(), caller=caller), caller, lambda: signs_in(tenant, own, protected)
    )
    assert "inbox of mia@example.com" in str(read.content)


async def test_a_prompt_waits_for_an_administrator(
    tenant: Tenant, shared: McpServer, protected: ProtectedServer
) -> None:
    """Ours: the same for prompts, with the account that everybody uses."""
    prompt = await sync_to_async(McpPrompt.objects.for_workspace(tenant.workspace).get)()
    request = PromptRequest(
        call_id=uuid7(),
        workspace_id=tenant.workspace.pk,
        prompt_id=prompt.pk,
        arguments={},
        actor=actor_of(tenant, "member"),
    )
    refused = await get_prompt(request)
    assert "an administrator to connect" in refused.message

    def connect() -> None:
        granted(shared, protected, None, "team@example.com")
        complete_sign_ins(shared.pk, None)

    caller = ListeningCaller()
    given = await while_it_waits(get_prompt(request, caller=caller), caller, connect)
    assert "Sum up my letters." in str(given.messages)


async def test_a_token_that_the_server_no_longer_takes_leads_to_a_new_sign_in(
    tenant: Tenant, own: McpServer, protected: ProtectedServer
) -> None:
    """Ours: refused is told from missing; other calls at that moment are asked too, and not put off."""
    await sync_to_async(signs_in)(tenant, own, protected)
    protected.refuses = True
    for _ in range(2):
        with pytest.raises(InputMissing):
            await call(tenant, own, can_ask=True, can_wait_elsewhere=True, caller=ListeningCaller())
    rows = await sync_to_async(rows_of)(tenant)
    assert len(rows) == 2
    assert {row.params["reason"] for row in rows} <= {"refused", "missing"}


def test_a_sign_in_just_before_the_card_is_not_missed(
    tenant: Tenant, own: McpServer, protected: ProtectedServer
) -> None:
    """Ours: whoever is about to ask looks once more, and one card for a call is enough."""
    origin = QuestionOrigin(
        call_id=uuid7(), server=own, tool_name="whoami", actor=actor_of(tenant, "member")
    )
    wanted = sign_ins.WantedSignIn(reason=sign_ins.SignInReason.MISSING, host="mail.example")
    refused = sign_ins.WantedSignIn(reason=sign_ins.SignInReason.REFUSED, host="mail.example")
    began = timezone.now()
    signs_in(tenant, own, protected)
    assert sign_ins.open_sign_in(wanted, origin, since=began) is None
    assert sign_ins.open_sign_in(refused, origin, since=began) is None
    row = sign_ins.open_sign_in(refused, origin, since=timezone.now() + timedelta(seconds=1))
    assert row is not None
    again = sign_ins.open_sign_in(refused, origin, since=timezone.now() + timedelta(seconds=1))
    assert again == row


def test_nobody_is_asked_for_a_server_that_is_gone(tenant: Tenant, own: McpServer) -> None:
    """Ours: what today's rows say is told instead."""
    origin = QuestionOrigin(
        call_id=uuid7(), server=own, tool_name="whoami", actor=actor_of(tenant, "member")
    )
    wanted = sign_ins.WantedSignIn(reason=sign_ins.SignInReason.MISSING, host="mail.example")
    delete_server(server=own, actor=tenant.actor())
    assert sign_ins.open_sign_in(wanted, origin, since=timezone.now()) is None
    assert rows_of(tenant) == []


def test_what_a_server_may_not_ask_does_not_bind_us(
    tenant: Tenant, own: McpServer, protected: ProtectedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the card is the platform's own, so neither the server's right to ask nor its rate counts."""
    monkeypatch.setattr("mcp_servers.registry.elicitation.services.MOST_IN_HOUR", 0)
    own.answers_elicitation = False
    own.save(update_fields=["answers_elicitation"])
    actor: Actor = actor_of(tenant, "member")
    origin = QuestionOrigin(call_id=uuid7(), server=own, tool_name="whoami", actor=actor)
    wanted = sign_ins.WantedSignIn(reason=sign_ins.SignInReason.MISSING, host="mail.example")
    row = sign_ins.open_sign_in(wanted, origin, since=timezone.now())
    assert row is not None
    assert row.status == InputStatus.PENDING
    with pytest.raises(Conflict):
        answer_input(input_request=row, action=InputAction.ACCEPT, actor=actor)


def test_a_grant_that_is_stored_while_the_card_is_opened_settles_it(
    tenant: Tenant, own: McpServer, protected: ProtectedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: whoever looked for a grant in vain and whoever stores one see each other, whichever is first."""
    looked, done = threading.Event(), threading.Event()

    def look_and_dawdle(server: McpServer, user_id: Any) -> Any:
        found = usable_grant(server, user_id)
        looked.set()
        done.wait(0.5)  # the other would be through by now, if nothing held it
        return found

    monkeypatch.setattr(sign_ins, "usable_grant", look_and_dawdle)
    origin = QuestionOrigin(
        call_id=uuid7(), server=own, tool_name="whoami", actor=actor_of(tenant, "member")
    )
    wanted = sign_ins.WantedSignIn(reason=sign_ins.SignInReason.MISSING, host="mail.example")

    def store() -> None:
        looked.wait(PATIENCE)
        signs_in(tenant, own, protected)
        done.set()

    with Threads(1) as pool:
        storing = pool.submit(store)
        row = sign_ins.open_sign_in(wanted, origin, since=timezone.now())
        storing.result(PATIENCE)
    if row is not None:
        row.refresh_from_db()
        assert row.status == InputStatus.ACCEPTED


def pending_cards(tenant: Tenant, server: McpServer, count: int) -> list[InputRequest]:
    """Cards of as many calls, put some minutes ago."""
    wanted = sign_ins.WantedSignIn(reason=sign_ins.SignInReason.MISSING, host="mail.example")
    for _ in range(count):
        origin = QuestionOrigin(
            call_id=uuid7(), server=server, tool_name="whoami", actor=actor_of(tenant, "member")
        )
        sign_ins.open_sign_in(wanted, origin, since=timezone.now())
    rows = InputRequest.objects.for_workspace(tenant.workspace)
    rows.update(created_at=timezone.now() - timedelta(minutes=5))
    return list(rows.order_by("pk"))


@pytest.mark.parametrize("by_sweep", [True, False])
def test_a_card_that_cannot_be_settled_keeps_no_other_waiting(
    tenant: Tenant,
    own: McpServer,
    protected: ProtectedServer,
    monkeypatch: pytest.MonkeyPatch,
    by_sweep: bool,
) -> None:
    """REL-02: it is taken up again by the next sweep."""
    first, second = pending_cards(tenant, own, 2)
    granted(own, protected, tenant.member, "mia@example.com")

    def fail_for_the_first(row: InputRequest, *rest: Any) -> InputRequest:
        if row.pk == first.pk:
            raise AuditUnavailable
        return settle(row, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(sign_ins, "settle", fail_for_the_first)
        if by_sweep:
            assert sign_ins.complete_forgotten_sign_ins() == 1
        else:
            assert complete_sign_ins(own.pk, tenant.member.pk) == [second]
    assert {row.pk: row.status for row in rows_of(tenant)} == {
        first.pk: InputStatus.PENDING,
        second.pk: InputStatus.ACCEPTED,
    }
    assert sign_ins.complete_forgotten_sign_ins() == 1


def test_a_sweep_asks_once_however_many_wait(
    tenant: Tenant, own: McpServer, protected: ProtectedServer
) -> None:
    """Ours: cards that wait for good reason cost nothing, whoever's account they wait for."""

    def statements() -> int:
        with CaptureQueriesContext(connection) as found:
            assert sign_ins.complete_forgotten_sign_ins() == 0
        return len(found)

    pending_cards(tenant, own, 1)
    of_one = statements()
    pending_cards(tenant, own, 3)
    pending_cards(tenant, mail_server(tenant, protected, name="team", account_use="workspace"), 3)
    assert statements() == of_one
