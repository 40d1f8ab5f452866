"""Built-in tools at the gate: who may, with which arguments, once, and on record in this order."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError
from django.utils import translation
from django.utils.translation import gettext, override, trans_real
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from audit.actions import Outcome
from audit.errors import AuditUnavailable
from audit.models import AuditEntry
from mcp_servers.client.errors import CallRefused, InvalidArguments, OutcomeNotRecorded
from mcp_servers.client.values import TextPart, ToolCallOutcome
from mcp_servers.gate import BuiltinRequest, abandon_builtin, call_builtin, refuse_builtin
from tests.factories import Tenant, make_tenant
from tests.patience import PATIENCE
from workspaces.errors import Conflict, PermissionDenied
from workspaces.models import Membership

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
DONE = ToolCallOutcome(outcome=Outcome.OK, content=(TextPart(text="done"),), details={"n": 1})


@pytest.fixture
def tenant(transactional_db: None) -> Tenant:
    return make_tenant("acme")


def request_of(tenant: Tenant, **changes: Any) -> BuiltinRequest:
    request = BuiltinRequest(
        call_id=uuid7(),
        workspace_id=tenant.workspace.pk,
        name="create_artifact",
        arguments={"name": "a.md"},
        input_schema=SCHEMA,
        actor=tenant.actor("member"),
    )
    return replace(request, **changes)


def recorded(tenant: Tenant) -> list[tuple[str, str | None]]:
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(action__startswith="tool_call")
    return [(row.action.removeprefix("tool_call."), row.outcome) for row in rows.order_by("id")]


def test_requested_is_committed_before_and_finished_after(tenant: Tenant) -> None:
    """SEC-102: what cannot be recorded does not happen, and nobody sees a result before its entry."""
    seen: list[Any] = []

    def run() -> ToolCallOutcome:
        seen.append(recorded(tenant))
        return DONE

    outcome = async_to_sync(call_builtin)(request_of(tenant), run)
    assert outcome.as_model_text() == "done"
    assert [[action for action, _ in entry] for entry in seen] == [["requested"]]
    assert [action for action, _ in recorded(tenant)] == ["requested", "finished"]
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(action="tool_call.finished")
    assert (entry.tool_name, entry.outcome, entry.details) == ("create_artifact", "ok", {"n": 1})


@pytest.mark.parametrize(
    ("changes", "error", "layer"),
    [
        ({"is_enabled": False}, CallRefused, "disabled"),
        ({"arguments": {}}, InvalidArguments, "arguments"),
        ({"arguments": {"name": 1}}, InvalidArguments, "arguments"),
        ({"arguments": {"name": "a", "more": 1}}, InvalidArguments, "arguments"),
        ({"arguments": {"name": "\ud800"}}, InvalidArguments, "arguments"),
    ],
)
def test_what_is_refused_does_not_run_and_is_on_record(
    tenant: Tenant, changes: dict[str, Any], error: type[Exception], layer: str
) -> None:
    """Ours: each refusal is an entry of its own, with the layer that said no."""
    ran: list[None] = []
    with pytest.raises(error):
        async_to_sync(call_builtin)(request_of(tenant, **changes), lambda: ran.append(None))  # type: ignore[arg-type, return-value]
    assert not ran
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(action="tool_call.refused")
    assert entry.refused_by == layer


def test_a_former_member_makes_nothing(tenant: Tenant) -> None:
    """Ours: the right is asked for at each call, not remembered."""
    request = request_of(tenant)
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.member).delete()
    with pytest.raises(PermissionDenied):
        async_to_sync(call_builtin)(request, lambda: DONE)
    assert [action for action, _ in recorded(tenant)] == ["refused"]
    with pytest.raises(InvalidArguments, match="no such file"):
        refuse_builtin(request_of(tenant), "no such file")
    assert [action for action, _ in recorded(tenant)] == ["refused", "refused"]


def test_a_log_that_takes_nothing_stops_the_call_or_its_result(tenant: Tenant) -> None:
    """SEC-101: without *requested* nothing runs; without *finished* the result is given to nobody."""
    ran: list[None] = []
    with (
        patch("audit.models.AuditEntry.save", side_effect=DatabaseError),
        pytest.raises(AuditUnavailable),
    ):
        async_to_sync(call_builtin)(request_of(tenant), lambda: ran.append(None))  # type: ignore[arg-type, return-value]
    assert not ran

    def run() -> ToolCallOutcome:
        broken.start()
        return DONE

    broken = patch("audit.models.AuditEntry.save", side_effect=DatabaseError)
    with (
        patch("mcp_servers.gate.recording._ENTRY_PAUSE_SECONDS", 0.001),
        pytest.raises(OutcomeNotRecorded),
    ):
        async_to_sync(call_builtin)(request_of(tenant), run)
    broken.stop()


def test_failures_are_outcomes_in_plain_words(tenant: Tenant) -> None:
    """Ours: what a tool raises is an answer; what nobody foresaw says nothing of our insides."""

    def conflict() -> ToolCallOutcome:
        raise Conflict("There is a file of that name.")

    def unforeseen() -> ToolCallOutcome:
        raise RuntimeError("password=hunter2")

    one = async_to_sync(call_builtin)(request_of(tenant), conflict)
    other = async_to_sync(call_builtin)(request_of(tenant), unforeseen)
    assert (one.outcome, one.message) == (Outcome.TOOL_ERROR, "There is a file of that name.")
    assert other.is_error
    assert "hunter2" not in other.as_model_text()
    assert [action for action, _ in recorded(tenant)] == ["requested", "finished"] * 2


def test_a_call_that_is_made_again_has_one_pair_of_entries(tenant: Tenant) -> None:
    """REL-04: after a crash the same call runs again, before or after its end was recorded: one pair is enough."""
    request = request_of(tenant)
    async_to_sync(call_builtin)(request, lambda: DONE)
    async_to_sync(call_builtin)(request, lambda: DONE)
    abandon_builtin(request, outcome=Outcome.CANCELLED, reason="nobody runs it")
    assert [(action, outcome or "") for action, outcome in recorded(tenant)] == [
        ("requested", ""),
        ("finished", "ok"),
    ]


@pytest.mark.asyncio
async def test_a_stopped_call_has_its_end_on_record(tenant: Tenant) -> None:
    """REL-09: Stop reaches a call while it works: what it did is recorded before it ends."""
    begun, may_end = threading.Event(), threading.Event()

    def run() -> ToolCallOutcome:
        begun.set()
        may_end.wait(PATIENCE)
        return DONE

    request = await asyncio.to_thread(request_of, tenant)
    task = asyncio.create_task(call_builtin(request, run))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    found = await asyncio.to_thread(recorded, tenant)
    assert [action for action, _ in found] == ["requested", "finished"]


def test_the_log_is_written_in_the_platforms_language(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """REL-680: what an entry says does not depend on the language of whoever asked."""
    settings.USE_I18N = True  # as with a second language
    monkeypatch.setattr(translation, "_trans", type(translation._trans)())  # type: ignore[attr-defined]
    reason = "This token does not hold the scope '%(needed)s'."
    catalogue = trans_real.translation("de")._catalog  # type: ignore[attr-defined]
    monkeypatch.setitem(catalogue._catalogs[0], reason, "Das dürfen Sie nicht.")
    stranger = replace(tenant.actor("member"), scopes=frozenset())
    with override("de"):
        assert gettext(reason) == "Das dürfen Sie nicht."
        with pytest.raises(PermissionDenied):
            async_to_sync(call_builtin)(request_of(tenant, actor=stranger), lambda: DONE)
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(action="tool_call.refused")
    assert entry.details["reason"] == reason % {"needed": "chat"}
