"""Two programs that change parts of one row over REST at one moment."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from chat.services.provider_removal import remove_provider
from mcp_servers.models import CallRule
from tests.audit.log_settings import a_rule, a_schedule, a_stream
from tests.chat.services.edited_rows import a_bud, a_provider, seen_before
from tests.factories import Tenant
from tests.locks import beside

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def a_call_rule(tenant: Tenant) -> CallRule:
    row: CallRule = CallRule.objects.create(
        workspace=tenant.workspace, name="Mails", servers=["*"], tools=["*"], effect="confirm"
    )
    return row


@pytest.mark.parametrize(
    ("make", "path", "role", "change"),
    [
        (a_stream, "audit-streams", "owner", {"is_paused": True}),
        (a_stream, "audit-streams", "owner", {"target": "https://new.example.org/"}),
        (a_rule, "alert-rules", "owner", {"threshold": 9}),
        (a_schedule, "audit-schedules", "auditor", {"hour": 3}),
        (a_provider, "providers", "admin", {"default_model": "large"}),
        (a_call_rule, "call-rules", "admin", {"is_enabled": False}),
    ],
)
def test_what_is_left_out_stays_as_another_one_has_just_set_it(
    tenant: Tenant,
    make: Callable[[Tenant], Any],
    path: str,
    role: str,
    change: dict[str, Any],
) -> None:
    """REL-1549: a change of one field does not bring back what the others were a moment before."""
    row = make(tenant)
    client = tenant.client(role)
    answers = []

    def patch() -> None:
        answer = client.patch(
            f"/api/{path}/{row.pk}/",
            json.dumps(change),
            content_type="application/json",
            headers={"X-Workspace": tenant.workspace.slug},
        )
        answers.append((answer.status_code, answer.content))

    rows = type(row).unscoped.filter(pk=row.pk)
    outcomes = beside(lambda: rows.update(name="theirs"), patch)
    assert (outcomes, answers[0][0]) == (None, 200), answers
    stored = seen_before(row)
    assert stored.name == "theirs"
    [(name, value)] = change.items()
    assert getattr(stored, name) == value


def test_a_provider_that_is_being_removed_is_not_given_to_a_bud(tenant: Tenant) -> None:
    """REL-1552: whoever chooses it reads that it has gone meanwhile, and not that the server failed."""
    provider, bud = a_provider(tenant), a_bud(tenant)
    client = tenant.client("admin")
    client.raise_request_exception = False
    answers = []

    def choose() -> None:
        answer = client.patch(
            f"/api/buds/{bud.pk}/",
            json.dumps({"provider_id": str(provider.pk)}),
            content_type="application/json",
            headers={"X-Workspace": tenant.workspace.slug},
        )
        answers.append((answer.status_code, answer.content.decode()))

    late = seen_before(provider)
    outcomes = beside(lambda: remove_provider(provider=late, actor=tenant.actor()), choose)
    assert outcomes is None
    [(status, text)] = answers
    assert status in {409, 422}, text
    assert seen_before(bud).provider_id is None
