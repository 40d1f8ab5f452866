"""Alert rules over REST: the same services, rights and limits as their page."""

from __future__ import annotations

from typing import Any

import pytest

from audit.models import AlertRule, AuditEntry
from tests.factories import Tenant, TwoTenants

pytestmark = pytest.mark.django_db
RULES = "/api/alert-rules/"
BODY = {"name": "Errors", "condition": "error_rate", "threshold": 25, "window_minutes": 30}


def ask(tenant: Tenant, verb: str, path: str, body: Any = None, role: str = "owner") -> Any:
    call = getattr(tenant.client(role), verb)
    headers = {"X-Workspace": tenant.workspace.slug}
    return call(path, body, content_type="application/json", headers=headers)


def test_a_rule_is_made_changed_switched_and_deleted(two_workspaces: TwoTenants) -> None:
    """REL-672: each step is an entry, the webhook's secret is shown once, and another workspace finds nothing."""
    tenant, other = two_workspaces.a, two_workspaces.b
    made = ask(tenant, "post", RULES, {**BODY, "webhook_url": "https://hooks.example.org/x"})
    assert made.status_code == 201, made.content
    assert made.json()["secret"]
    rule = made.json()["rule"]
    assert rule["remind_hours"] == 24
    assert "secret" not in str(rule)
    path = f"{RULES}{rule['id']}/"
    assert ask(tenant, "get", path).json()["name"] == "Errors"
    changed = ask(tenant, "patch", path, {"threshold": 50, "is_active": False}).json()
    assert (changed["rule"]["threshold"], changed["rule"]["is_active"]) == (50, False)
    assert changed["rule"]["webhook_url"] == "https://hooks.example.org/x"
    assert changed["secret"] is None
    assert [one["id"] for one in ask(tenant, "get", RULES).json()["results"]] == [rule["id"]]
    assert ask(other, "get", path).status_code == 404
    assert ask(other, "delete", path).status_code == 404
    assert ask(tenant, "delete", path).status_code == 204
    assert not AlertRule.objects.for_workspace(tenant.workspace).exists()
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    verbs = [row.details["verb"] for row in rows.order_by("id")]
    assert verbs[0] == "created"
    assert verbs[-1] == "deleted"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"threshold": 101}, "threshold"),
        ({"condition": "weather"}, "condition"),
        ({"emails": ["nobody"]}, "emails"),
        ({"webhook_url": "nonsense"}, "webhook_url"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(
    tenant: Tenant, change: dict[str, Any], field: str
) -> None:
    """REL-672: and nothing is made or half changed."""
    answer = ask(tenant, "post", RULES, {**BODY, **change})
    assert answer.status_code in {400, 422}, answer.content
    assert field in answer.content.decode()
    assert not AlertRule.objects.for_workspace(tenant.workspace).exists()
    made = ask(tenant, "post", RULES, BODY).json()["rule"]
    path = f"{RULES}{made['id']}/"
    bad = ask(tenant, "patch", path, {**change, "is_active": False})
    assert bad.status_code in {400, 422}
    assert ask(tenant, "get", path).json() == made


@pytest.mark.parametrize("role", ["member", "auditor", "admin"])
def test_others_have_no_say(tenant: Tenant, role: str) -> None:
    """REL-672."""
    assert ask(tenant, "get", RULES, role=role).status_code == 403
    assert ask(tenant, "post", RULES, BODY, role=role).status_code == 403
