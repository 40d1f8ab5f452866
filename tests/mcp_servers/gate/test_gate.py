"""The gate: its order, its refusals, and what it leaves behind."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from math import inf, nan
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, models
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.actions import Action, Outcome, RefusedBy
from audit.errors import AuditUnavailable
from audit.models import AuditEntry
from mcp_servers.client.canonical import canonical_json
from mcp_servers.client.errors import (
    ApprovalMissing,
    CallRefused,
    InvalidArguments,
    OutcomeNotRecorded,
    ToolNotFound,
)
from mcp_servers.client.values import Progress, TextPart
from mcp_servers.gate import call_tool
from mcp_servers.gate.caller import CallerOnItsLoop
from mcp_servers.models import Approval, ApprovalOverride, McpServer, McpTool
from mcp_servers.registry import services
from mcp_servers.registry.consent import approvals
from tests.factories import Tenant, make_tenant
from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.factories import (
    ListeningCaller,
    a_request,
    actor_of,
    stored_tool,
    tool_of,
)
from tests.patience import PATIENCE
from workspaces.errors import PermissionDenied
from workspaces.models import Membership


def entries(tenant: Tenant, action: Action | None = None) -> list[AuditEntry]:
    rows = (
        AuditEntry.objects.for_workspace(tenant.workspace)
        .filter(action__startswith="tool_call")
        .order_by("pk")
    )
    return [row for row in rows if action is None or row.action == action.value]


async def the_entries(tenant: Tenant, action: Action | None = None) -> list[AuditEntry]:
    return await sync_to_async(entries)(tenant, action)


async def approvals_asked(tenant: Tenant) -> int:
    asked = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="approval.requested")
    return await asked.acount()


async def tool_named(server: McpServer, name: str) -> McpTool:
    return await sync_to_async(tool_of)(server, name)


async def grant(tenant: Tenant, tool: McpTool, request: Any, **changes: Any) -> Approval:
    values = {
        "call_id": request.call_id,
        "tool": tool,
        "arguments": request.arguments,
        "requester": request.actor,
        "approver": request.actor,
        "expires_at": timezone.now() + timedelta(hours=1),
        **changes,
    }
    return await sync_to_async(approvals.grant_approval)(**values)


def with_approval(request: Any, approval: Approval) -> Any:
    from dataclasses import replace

    return replace(request, approval_id=approval.pk)


@pytest.mark.both_engines
async def test_a_call_leaves_requested_and_finished(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-102, SEC-104: both entries, with the true actor, source and definition."""
    tool = await tool_named(trusted, "echo")
    request = a_request(tenant, tool, {"text": "hello"})
    outcome = await call_tool(request)
    assert outcome.outcome == Outcome.OK
    assert outcome.content == (TextPart(text="hello"),)
    assert counting.names() == ["echo"]
    requested, finished = await the_entries(tenant)
    assert (requested.action, finished.action) == ("tool_call.requested", "tool_call.finished")
    for entry in (requested, finished):
        assert entry.call_id == request.call_id
        assert entry.actor_id == tenant.member.pk
        assert entry.source == "chat"
        assert entry.tool_name == "echo"
        assert entry.definition_hash == tool.definition_hash
    assert finished.outcome == "ok"
    assert finished.duration_ms is not None


async def test_what_is_audited_is_byte_for_byte_what_is_sent(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-76: one byte string for the hash, the entry and the wire."""
    tool = await tool_named(trusted, "echo")
    arguments = {"text": "größer\u2028 <b> \U0001f331 1e5"}
    await call_tool(a_request(tenant, tool, arguments))
    sent = [body for body in counting.bodies if b"tools/call" in body][-1]
    assert canonical_json(arguments) in sent


async def test_progress_reaches_the_caller_on_its_own_loop(
    tenant: Tenant, trusted: McpServer
) -> None:
    """Ours: a callback runs where the caller runs."""
    tool = await tool_named(trusted, "slow")
    seen: list[Progress] = []
    loops: set[asyncio.AbstractEventLoop] = set()

    def note(progress: Progress) -> None:
        seen.append(progress)
        loops.add(asyncio.get_running_loop())

    caller = ListeningCaller(on_progress=note)
    await call_tool(a_request(tenant, tool, {"seconds": 0.2}), caller=caller)
    assert [item.progress for item in seen] == [0, 1, 2, 3]
    assert seen[0].total == 4
    assert loops == {asyncio.get_running_loop()}


async def test_progress_that_json_does_not_have_reaches_nobody() -> None:
    """REL-2934: a page and a client would lose the whole message that it stands in."""
    seen: list[Progress] = []
    caller = CallerOnItsLoop(ListeningCaller(on_progress=seen.append))
    for progress, total in ((nan, 4.0), (inf, None), (1.0, inf), (2.0, 4.0)):
        caller.progressed(Progress(progress=progress, total=total))
    await asyncio.sleep(0)
    assert seen == [Progress(progress=1.0), Progress(progress=2.0, total=4.0)]


async def test_a_tools_own_error_is_an_outcome(tenant: Tenant, trusted: McpServer) -> None:
    """MCP specification, Error Handling: the model reads it."""
    outcome = await call_tool(
        a_request(tenant, await tool_named(trusted, "fail"), {"text": "no beans"})
    )
    assert outcome.outcome == Outcome.TOOL_ERROR
    assert "no beans" in outcome.as_model_text()


@pytest.mark.both_engines
async def test_another_workspaces_tool_answers_like_a_missing_one(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-03: a foreign id and a missing one are the same refusal, and nothing is sent."""
    other = await sync_to_async(make_tenant)("other")
    tool = await tool_named(trusted, "echo")
    messages = set()
    for tool_id in (tool.pk, uuid7()):
        request = a_request(other, tool, {"text": "x"}, tool_id=tool_id)
        with pytest.raises(ToolNotFound) as caught:
            await call_tool(request)
        messages.add(caught.value.message)
    assert len(messages) == 1
    assert counting.calls == []
    refused = await the_entries(other, Action.TOOL_CALL_REFUSED)
    assert [entry.refused_by for entry in refused] == [RefusedBy.NOT_FOUND.value] * 2


async def test_without_a_workspace_nothing_leaves(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-11: no workspace, or another one than the actor's, ends in an exception and no egress."""
    tool = await tool_named(trusted, "echo")
    other = await sync_to_async(make_tenant)("other")
    for workspace_id in (None, tenant.workspace.pk):
        request = a_request(other, tool, {"text": "x"}, workspace_id=workspace_id)
        with pytest.raises(PermissionDenied):
            await call_tool(request)
    assert counting.calls == []


@pytest.mark.both_engines
async def test_a_removed_member_calls_nothing_more(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-09: an actor made before the removal is refused after it."""
    tool = await tool_named(trusted, "echo")
    request = a_request(tenant, tool, {"text": "x"})
    await sync_to_async(
        lambda: (
            Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.member).delete()
        )
    )()
    with pytest.raises(PermissionDenied):
        await call_tool(request)
    assert counting.calls == []


@pytest.mark.parametrize(
    "case",
    [
        ({"is_enabled": False}, "tool.disabled", RefusedBy.DISABLED),
        ({"definition_hash": "0" * 64}, "tool.quarantined", RefusedBy.QUARANTINE),
        ({"problem": "its schema is odd."}, "tool.unsound", RefusedBy.QUARANTINE),
        ({"removed_at": timezone.now()}, "tool.removed", RefusedBy.DISABLED),
        ({"approval_override": ApprovalOverride.DENY}, "tool.deny", RefusedBy.POLICY),
    ],
)
async def test_policy_refuses_before_anything_is_sent(
    tenant: Tenant,
    trusted: McpServer,
    counting: CountingServer,
    case: tuple[dict[str, Any], str, RefusedBy],
) -> None:
    """SEC-57, SEC-66: switched off, quarantined, unsound, removed, denied: refused with its own entry."""
    change, rule, layer = case
    tool = await tool_named(trusted, "echo")
    await sync_to_async(McpTool.objects.for_workspace(tenant.workspace).filter(pk=tool.pk).update)(
        **change
    )
    with pytest.raises(CallRefused) as caught:
        await call_tool(a_request(tenant, tool, {"text": "x"}))
    assert caught.value.rule == rule
    (entry,) = await the_entries(tenant)
    assert (entry.action, entry.refused_by, entry.rule) == ("tool_call.refused", layer.value, rule)
    assert counting.calls == []


async def test_a_tool_that_changed_after_it_was_offered_is_not_called(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-66: only what was offered in that very request."""
    tool = await tool_named(trusted, "echo")
    with pytest.raises(CallRefused) as caught:
        await call_tool(a_request(tenant, tool, {"text": "x"}, offered_definition_hash="1" * 64))
    assert caught.value.rule == "tool.changed_since_offer"
    assert counting.calls == []


async def test_a_destructive_tool_waits_for_a_person(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-63: with a person to ask, the question is recorded; nothing is sent."""
    tool = await tool_named(trusted, "destroy")
    with pytest.raises(ApprovalMissing) as caught:
        await call_tool(a_request(tenant, tool, {"what": "all"}, can_ask=True))
    assert caught.value.decision.rule == "hints.destructive"
    assert await approvals_asked(tenant) == 1
    assert await the_entries(tenant) == []
    assert counting.calls == []


async def test_nobody_is_asked_about_arguments_that_cannot_be_sent(
    tenant: Tenant, trusted: McpServer
) -> None:
    """SEC-292: what does not fit the schema is refused before anybody is asked."""
    tool = await tool_named(trusted, "destroy")
    with pytest.raises(InvalidArguments):
        await call_tool(a_request(tenant, tool, {"wrong": 1}, can_ask=True))
    assert [entry.refused_by for entry in await the_entries(tenant)] == ["arguments"]
    assert await approvals_asked(tenant) == 0


@pytest.mark.both_engines
async def test_nobody_is_asked_about_a_call_beyond_the_days_quota(
    tenant: Tenant, trusted: McpServer
) -> None:
    """SEC-292: the call could not run after a yes, so it is refused at once."""
    await sync_to_async(services.update_server)(
        server=trusted,
        draft=services.ServerDraft(connection_config={"calls_per_day": 1}),
        actor=actor_of(tenant, "admin"),
    )
    echo = await tool_named(trusted, "echo")
    assert (await call_tool(a_request(tenant, echo, {"text": "x"}))).outcome == Outcome.OK
    tool = await tool_named(trusted, "destroy")
    with pytest.raises(CallRefused) as caught:
        await call_tool(a_request(tenant, tool, {"what": "all"}, can_ask=True))
    assert caught.value.rule == "server.calls_per_day"
    assert await approvals_asked(tenant) == 0


async def test_without_a_person_a_destructive_tool_is_refused(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-63: nobody to ask means no."""
    tool = await tool_named(trusted, "destroy")
    with pytest.raises(ApprovalMissing):
        await call_tool(a_request(tenant, tool, {"what": "all"}))
    (entry,) = await the_entries(tenant)
    assert (entry.action, entry.refused_by) == ("tool_call.refused", "approval")
    assert counting.calls == []


async def test_an_untrusted_servers_read_only_hint_does_not_relax(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-59: hints of a server that nobody trusts only tighten."""
    tool = await tool_named(trusted, "echo")
    await sync_to_async(
        McpServer.objects.for_workspace(tenant.workspace).filter(pk=trusted.pk).update
    )(trusts_annotations=False)
    with pytest.raises(ApprovalMissing) as caught:
        await call_tool(a_request(tenant, tool, {"text": "x"}))
    assert caught.value.decision.rule == "hints.untrusted"
    assert counting.calls == []


@pytest.mark.both_engines
async def test_an_approved_call_runs_once(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-60: an approval is used once; the second use is refused."""
    tool = await tool_named(trusted, "destroy")
    request = a_request(tenant, tool, {"what": "old"})
    approval = await grant(tenant, tool, request)
    outcome = await call_tool(with_approval(request, approval))
    assert outcome.outcome == Outcome.OK
    with pytest.raises(CallRefused) as caught:
        await call_tool(with_approval(request, approval))
    assert caught.value.rule == "approval.used"
    assert counting.names() == ["destroy"]


@pytest.mark.both_engines
async def test_two_uses_of_one_approval_at_once_make_one_call(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-60: the race is decided where *requested* is written."""
    tool = await tool_named(trusted, "destroy")
    request = a_request(tenant, tool, {"what": "old"})
    approval = await grant(tenant, tool, request)
    results = await asyncio.gather(
        *(call_tool(with_approval(request, approval)) for _ in range(5)), return_exceptions=True
    )
    assert sum(not isinstance(result, BaseException) for result in results) == 1
    assert all(
        isinstance(result, CallRefused) for result in results if isinstance(result, BaseException)
    )
    assert counting.names() == ["destroy"]


@pytest.mark.both_engines
async def test_an_approval_does_not_fit_another_call(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-60: other call, other arguments, other tool, other person, other definition, run out: refused."""
    tool = await tool_named(trusted, "destroy")
    plain = await tool_named(trusted, "plain")
    request = a_request(tenant, tool, {"what": "old"})
    from dataclasses import replace

    approval = await grant(tenant, tool, request)
    late = a_request(tenant, tool, {"what": "late"})
    expired = await grant(tenant, tool, late, expires_at=timezone.now() - timedelta(seconds=1))
    cases = {
        "approval.other_call": replace(request, call_id=uuid7(), approval_id=approval.pk),
        "approval.arguments_changed": replace(
            request, arguments={"what": "new"}, approval_id=approval.pk
        ),
        "approval.other_person": replace(
            request, actor=actor_of(tenant, "admin"), approval_id=approval.pk
        ),
        "approval.unknown": replace(request, approval_id=uuid7()),
        "approval.used_or_expired": replace(late, approval_id=expired.pk),
    }
    for rule, case in cases.items():
        with pytest.raises(CallRefused) as caught:
            await call_tool(case)
        assert caught.value.rule == rule
    with pytest.raises(CallRefused) as caught:
        await call_tool(replace(request, tool_id=plain.pk, arguments={}, approval_id=approval.pk))
    assert caught.value.rule == "approval.other_call"
    await sync_to_async(McpTool.objects.for_workspace(tenant.workspace).filter(pk=tool.pk).update)(
        definition_hash="2" * 64, approved_hash="2" * 64
    )
    with pytest.raises(CallRefused) as caught:
        await call_tool(replace(request, approval_id=approval.pk))
    assert caught.value.rule == "approval.definition_changed"
    assert counting.calls == []


async def test_arguments_must_fit_the_schema(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-76: unfit, unsendable or oversized arguments are refused with a readable reason."""
    tool = await tool_named(trusted, "echo")
    cases: list[dict[str, Any]] = [
        {},
        {"text": 1},
        {"text": "a\x00b"},
        {"text": "\ud800"},
        {"text": float("nan")},
        {"text": "x" * (2**20 + 1)},
    ]
    deep: Any = "x"
    for _ in range(70):
        deep = [deep]
    cases.append({"text": deep})
    for arguments in cases:
        with pytest.raises(InvalidArguments):
            await call_tool(a_request(tenant, tool, arguments))
    assert counting.calls == []
    refused = await the_entries(tenant, Action.TOOL_CALL_REFUSED)
    assert [entry.refused_by for entry in refused] == ["arguments"] * len(cases)


@pytest.fixture
def broken_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log takes no entry."""

    def fail(self: models.Model, *args: Any, **kwargs: Any) -> None:
        from django.db import OperationalError

        raise OperationalError("disk full")

    monkeypatch.setattr(AuditEntry, "save", fail)


@pytest.mark.both_engines
async def test_nothing_is_sent_when_the_entry_cannot_be_written(
    tenant: Tenant, trusted: McpServer, counting: CountingServer, broken_ledger: None
) -> None:
    """SEC-101: no entry, no call."""
    tool = await tool_named(trusted, "echo")
    with pytest.raises(AuditUnavailable):
        await call_tool(a_request(tenant, tool, {"text": "x"}))
    assert counting.calls == []


@pytest.mark.both_engines
async def test_an_approval_is_not_used_up_when_the_entry_cannot_be_written(
    tenant: Tenant, trusted: McpServer, counting: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-101, REL-06: approval and *requested* are one transaction."""
    tool = await tool_named(trusted, "destroy")
    request = a_request(tenant, tool, {"what": "old"})
    approval = await grant(tenant, tool, request)
    with monkeypatch.context() as patch:
        from django.db import OperationalError

        def fail(self: models.Model, *args: Any, **kwargs: Any) -> None:
            raise OperationalError("disk full")

        patch.setattr(AuditEntry, "save", fail)
        with pytest.raises(AuditUnavailable):
            await call_tool(with_approval(request, approval))
    assert counting.calls == []
    await approval.arefresh_from_db()
    assert approval.consumed_at is None
    assert (await call_tool(with_approval(request, approval))).outcome == Outcome.OK


@pytest.mark.both_engines
async def test_a_result_is_given_to_nobody_when_finished_cannot_be_written(
    tenant: Tenant, trusted: McpServer, counting: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-102: without *finished* the call stays open in the log, and its result stays unseen."""
    tool = await tool_named(trusted, "echo")
    save = AuditEntry.save

    def fail(self: AuditEntry, *args: Any, **kwargs: Any) -> None:
        if self.action == "tool_call.finished":
            from django.db import OperationalError

            raise OperationalError("disk full")
        save(self, *args, **kwargs)

    monkeypatch.setattr(AuditEntry, "save", fail)
    monkeypatch.setattr("mcp_servers.gate.recording._ENTRY_PAUSE_SECONDS", 0.01)
    with pytest.raises(OutcomeNotRecorded):
        await call_tool(a_request(tenant, tool, {"text": "x"}))
    assert [entry.action for entry in await the_entries(tenant)] == ["tool_call.requested"]


@pytest.mark.both_engines
async def test_a_stopped_call_is_recorded_and_reaches_the_server(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """REL-35: the cancellation goes to the server, and *finished* says cancelled."""
    tool = await tool_named(trusted, "slow")
    task = asyncio.create_task(call_tool(a_request(tenant, tool, {"seconds": 20})))
    async with asyncio.timeout(PATIENCE):
        while "slow" not in counting.names():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not counting.cancelled:
            await asyncio.sleep(0.02)
    (finished,) = await the_entries(tenant, Action.TOOL_CALL_FINISHED)
    assert finished.outcome == "cancelled"


async def test_a_call_that_takes_too_long_is_a_timeout(tenant: Tenant, trusted: McpServer) -> None:
    """Ours: the deadline is for the call alone, and is an outcome."""
    tool = await tool_named(trusted, "slow")
    outcome = await call_tool(a_request(tenant, tool, {"seconds": 20}, timeout_seconds=0.5))
    assert outcome.outcome == Outcome.TIMEOUT
    assert "0.5 s" in outcome.message


@pytest.mark.both_engines
async def test_a_long_result_is_cut_and_says_so(tenant: Tenant, trusted: McpServer) -> None:
    """SEC-33: what is kept of a result is bounded."""
    tool = await tool_named(trusted, "big")
    outcome = await call_tool(a_request(tenant, tool, {"size": 3 * 2**20}))
    assert outcome.outcome == Outcome.OK
    assert outcome.truncated
    assert len(outcome.as_model_text()) < 2**20 + 100


@pytest.mark.both_engines
async def test_calls_side_by_side_are_independent(tenant: Tenant, trusted: McpServer) -> None:
    """REL-07: one fails, one runs out of time, the others finish; the order is kept."""
    echo, slow, fail = [await tool_named(trusted, name) for name in ("echo", "slow", "fail")]
    outcomes = await asyncio.gather(
        call_tool(a_request(tenant, slow, {"seconds": 20}, timeout_seconds=0.5)),
        call_tool(a_request(tenant, fail, {"text": "no"})),
        *(call_tool(a_request(tenant, echo, {"text": str(number)})) for number in range(4)),
    )
    assert [outcome.outcome.value for outcome in outcomes] == [
        "timeout",
        "tool_error",
        "ok",
        "ok",
        "ok",
        "ok",
    ]
    assert [outcome.as_model_text() for outcome in outcomes[2:]] == ["0", "1", "2", "3"]


async def test_a_busy_server_refuses_after_the_wait(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """REL-37: waiting for a slot is bounded, typed, and an entry."""
    from mcp_servers.client.errors import Busy

    await sync_to_async(services.update_server)(
        server=trusted,
        draft=services.ServerDraft(
            connection_config={"max_concurrent_calls": 1, "queue_seconds": 0.3}
        ),
        actor=actor_of(tenant, "admin"),
    )
    slow, echo = await tool_named(trusted, "slow"), await tool_named(trusted, "echo")
    task = asyncio.create_task(call_tool(a_request(tenant, slow, {"seconds": 2})))
    async with asyncio.timeout(PATIENCE):
        while "slow" not in counting.names():
            await asyncio.sleep(0.02)
    with pytest.raises(Busy):
        await call_tool(a_request(tenant, echo, {"text": "x"}))
    assert (await task).outcome == Outcome.OK
    assert (await call_tool(a_request(tenant, echo, {"text": "x"}))).outcome == Outcome.OK
    refused = await the_entries(tenant, Action.TOOL_CALL_REFUSED)
    assert [entry.refused_by for entry in refused] == ["busy"]
    assert counting.names() == ["slow", "echo"]


@pytest.mark.both_engines
async def test_calls_beyond_the_days_quota_are_refused(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-79: however many come at once, the limit is sent, and each further one is an entry."""
    await sync_to_async(services.update_server)(
        server=trusted,
        draft=services.ServerDraft(connection_config={"calls_per_day": 3}),
        actor=actor_of(tenant, "admin"),
    )
    echo = await tool_named(trusted, "echo")
    calls = [call_tool(a_request(tenant, echo, {"text": str(number)})) for number in range(12)]
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(one, CallRefused) for one in ended) == 9
    assert len(counting.calls) == 3
    refused = await the_entries(tenant, Action.TOOL_CALL_REFUSED)
    assert {(entry.refused_by, entry.rule) for entry in refused} == {
        ("quota", "server.calls_per_day")
    }


async def test_a_server_that_is_gone_is_an_outcome_then_a_breaker(
    tenant: Tenant, transactional_db: None
) -> None:
    """REL-34: the first call tells that nothing was reached; the next one is refused until the pause is over."""
    from tests.mcp_servers.factories import http_server

    def make() -> McpTool:
        server = http_server(
            tenant, "http://127.0.0.1:9/mcp".replace(":9/", ":9999/"), trusts_annotations=True
        )
        return stored_tool(server)

    tool = await sync_to_async(make)()
    outcome = await call_tool(a_request(tenant, tool, {"text": "x"}))
    assert outcome.outcome == Outcome.TRANSPORT_ERROR
    assert "could not reach the server" in outcome.message
    with pytest.raises(CallRefused) as caught:
        await call_tool(a_request(tenant, tool, {"text": "x"}))
    assert caught.value.refused_by == RefusedBy.BREAKER


def test_a_second_permit_is_needed_for_a_second_call() -> None:
    """SEC-56: a connection takes each permit once, and only for its own server."""
    from mcp_servers.client.connections.permits import CallPermit, PermitRefused

    server_id = uuid7()
    permit = CallPermit(call_id=uuid7(), server_id=server_id, tool_name="echo", arguments=b"{}")
    with pytest.raises(PermitRefused):
        permit.spend(server_id=uuid7())
    permit.spend(server_id=server_id)
    with pytest.raises(PermitRefused):
        permit.spend(server_id=server_id)


def test_results_are_json(tenant: Tenant) -> None:
    """The web app gets plain JSON of each part."""
    assert json.loads(json.dumps(TextPart(text="x").as_json())) == {"type": "text", "text": "x"}
    assert connection.vendor in {"sqlite", "postgresql"}
