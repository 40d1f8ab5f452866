"""Alerts, notices and one's own activity over REST."""

from __future__ import annotations

from typing import Any

import pytest
from uuid_utils.compat import uuid7

from audit.actions import Action
from audit.alerts.notices import notify
from audit.alerts.services import RECOMMENDED, create_rule
from audit.models import Alert, AlertRule
from audit.services import EntryDraft, record
from tests.factories import Tenant
from workspaces.database import database_now

pytestmark = pytest.mark.django_db


def post(client: Any, path: str, body: Any = None) -> Any:
    return client.post(f"/api/{path}", body or {}, content_type="application/json")


def test_people_read_their_notices(tenant: Tenant) -> None:
    """REL-1064: nobody else's, and one or all are read."""
    for person in (tenant.member, tenant.admin):
        for number in range(3):
            notify(
                workspace_id=tenant.workspace.pk,
                user_ids=[person.pk],
                kind="test",
                title=f"{person.name} {number}",
                text="",
                url="/",
            )
    client = tenant.client("member")
    rows = client.get("/api/notices/?is_read=false").json()["results"]
    assert [one["title"] for one in rows] == [f"{tenant.member.name} {n}" for n in (2, 1, 0)]
    assert post(client, "notices/read/", {"notice": rows[0]["id"]}).json() == {"unread": 2}
    assert len(client.get("/api/notices/?is_read=true").json()["results"]) == 1
    assert client.get("/api/notices/?is_read=perhaps").status_code == 400
    assert post(client, "notices/read/", {"notice": "x"}).status_code == 400
    assert post(client, "notices/read/", {"notice": str(uuid7())}).status_code == 404
    assert post(client, "notices/read/").json() == {"unread": 0}
    assert len(tenant.client("admin").get("/api/notices/?is_read=false").json()["results"]) == 3


def test_alerts_are_listed_for_those_who_see_the_log(tenant: Tenant) -> None:
    """REL-1064: open ones and those of before."""
    rule, _ = create_rule(
        workspace_id=tenant.workspace.pk, actor=tenant.actor("owner"), draft=RECOMMENDED[0]
    )
    now = database_now()
    for ended in (now, None):
        Alert.objects.create(
            workspace=tenant.workspace,
            rule=rule,
            started_at=now,
            ended_at=ended,
            value=1,
            peak=2,
            told_at=now,
        )
    admin = tenant.client("admin")
    assert len(admin.get("/api/alerts/").json()["results"]) == 2
    [is_open] = admin.get("/api/alerts/?is_open=true").json()["results"]
    assert (is_open["rule_name"], is_open["ended_at"]) == (rule.name, None)
    assert tenant.client("member").get("/api/alerts/").status_code == 403


def test_recommended_rules_are_added_once(tenant: Tenant) -> None:
    """REL-1064: by owners."""
    owner = tenant.client("owner")
    assert post(owner, "alert-rules/recommended/").json() == {"added": len(RECOMMENDED)}
    assert post(owner, "alert-rules/recommended/").json() == {"added": 0}
    assert AlertRule.objects.for_workspace(tenant.workspace).count() == len(RECOMMENDED)
    assert post(tenant.client("admin"), "alert-rules/recommended/").status_code == 403


def test_people_read_what_the_log_holds_of_them(tenant: Tenant) -> None:
    """REL-1064: also members, who see no log; and nothing of anybody else."""
    for role in ("member", "admin"):
        record(
            EntryDraft(
                action=Action.CONFIG_CHANGED,
                actor=tenant.actor(role),
                workspace_id=tenant.workspace.pk,
                details={"by": role},
            )
        )
    member = tenant.client("member")
    [mine] = member.get("/api/activity/?action=config.changed").json()["results"]
    assert mine["details"] == {"by": "member"}
    assert member.get(f"/api/activity/{mine['id']}/").json()["arguments_preview"] == ""
    assert tenant.client("admin").get(f"/api/activity/{mine['id']}/").status_code == 404
    assert member.get("/api/activity/?server=x").status_code == 400
