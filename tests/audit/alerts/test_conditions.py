"""What each condition of a rule counts."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from uuid_utils.compat import uuid7

from audit.actions import Action, Outcome, RefusedBy
from audit.models import Alert
from audit.services import Ref
from tests.audit.alerts.rules import CALL, CONDITION, look, make_rule, write_entries
from tests.factories import Tenant, TwoTenants

pytestmark = pytest.mark.django_db

SITUATIONS: list[tuple[str, int, list[tuple[Action, int, dict[str, Any]]]]] = [
    (
        CONDITION.CONNECTION,
        2,
        [(Action.SERVER_ERROR, 1, {}), (CALL, 1, {"outcome": Outcome.TRANSPORT_ERROR})],
    ),
    (CONDITION.TIMEOUT, 2, [(CALL, 2, {"outcome": Outcome.TIMEOUT})]),
    (
        CONDITION.ERROR_RATE,
        50,
        [(CALL, 5, {"outcome": Outcome.TOOL_ERROR}), (CALL, 5, {"outcome": Outcome.OK})],
    ),
    (CONDITION.REFUSAL, 2, [(Action.TOOL_CALL_REFUSED, 2, {"refused_by": RefusedBy.POLICY})]),
    (CONDITION.QUOTA, 1, [(Action.TOOL_CALL_REFUSED, 1, {"refused_by": RefusedBy.QUOTA})]),
    (CONDITION.TAMPERING, 1, [(Action.LOG_LOSS, 1, {"workspace_id": None})]),
    (CONDITION.TAMPERING, 1, [(Action.LOG_VERIFIED, 1, {"details": {"result": "altered"}})]),
]


@pytest.mark.parametrize(("condition", "threshold", "written"), SITUATIONS)
def test_each_condition_is_seen_at_its_threshold_and_not_before(
    tenant: Tenant, condition: str, threshold: int, written: Any
) -> None:
    rule = make_rule(tenant, condition, threshold)
    write_entries(tenant, CALL, outcome=Outcome.OK)
    write_entries(tenant, Action.LOG_VERIFIED, details={"result": "whole"})
    assert look(rule) is None
    first, *others = [(action, fields) for action, count, fields in written for _ in range(count)]
    if others:
        write_entries(tenant, first[0], **first[1])
        assert look(rule) is None, "one less than the threshold"
    else:
        others = [first]
    for action, fields in others:
        write_entries(tenant, action, **fields)
    if condition == CONDITION.ERROR_RATE:
        write_entries(tenant, CALL, outcome=Outcome.TOOL_ERROR)  # beside the first good one
    alert = look(rule)
    assert alert is not None
    assert alert.value >= threshold


def test_an_approval_counts_once_it_has_waited(tenant: Tenant) -> None:
    rule = make_rule(tenant, CONDITION.APPROVAL, window_minutes=10)
    call = uuid7()
    write_entries(tenant, Action.APPROVAL_REQUESTED, call_id=call)
    assert look(rule) is None
    assert look(rule, minutes=11) is not None
    write_entries(tenant, Action.APPROVAL_GRANTED, call_id=call)
    assert look(rule, minutes=12) is None
    assert Alert.objects.for_workspace(tenant.workspace).get().ended_at is not None


def test_the_sealer_that_has_stopped_is_a_finding(tenant: Tenant) -> None:
    rule = make_rule(tenant, CONDITION.TAMPERING)
    write_entries(tenant, CALL, outcome=Outcome.OK)
    assert look(rule) is None
    assert look(rule, minutes=5) is not None


def test_rules_look_at_their_server_and_tool_only(two_workspaces: TwoTenants) -> None:
    """SEC-01: and at their workspace."""
    a, b = two_workspaces.a, two_workspaces.b
    rule = make_rule(a, CONDITION.TIMEOUT, server_name="files", tool_name="read")
    write_entries(b, CALL, outcome=Outcome.TIMEOUT, tool=Ref(id=None, name="read"))
    write_entries(a, CALL, outcome=Outcome.TIMEOUT, tool=Ref(id=None, name="write"))
    write_entries(
        a,
        CALL,
        outcome=Outcome.TIMEOUT,
        server=Ref(id=None, name="x"),
        tool=Ref(id=None, name="read"),
    )
    assert look(rule) is None
    write_entries(a, CALL, outcome=Outcome.TIMEOUT, tool=Ref(id=None, name="read"))
    assert look(rule) is not None


def test_counting_is_bounded(tenant: Tenant) -> None:
    """However many entries a minute brings, a look costs no more."""
    rule = make_rule(tenant, CONDITION.TIMEOUT)
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(
        connection,
    ) as queries:
        look(rule)
    assert any("LIMIT 10000" in query["sql"] for query in queries)
