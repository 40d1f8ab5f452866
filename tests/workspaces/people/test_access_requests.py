"""Members ask for what they miss, administrators decide, and the member is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEntry, Notice
from tests.factories import Tenant, TwoTenants
from tests.workspaces.people.asked import page, send
from workspaces.errors import Conflict
from workspaces.models import AccessRequest, RequestKind
from workspaces.people.access_requests import MOST_OPEN, ask

pytestmark = pytest.mark.django_db


def notices(tenant: Tenant, who: str) -> list[str]:
    rows = Notice.objects.for_workspace(tenant.workspace).filter(user=tenant.people[who])
    return list(rows.values_list("title", flat=True))


def test_a_member_asks_and_an_administrator_grants(tenant: Tenant) -> None:
    """REL-525: both are told, and the log has the request and the answer with its note."""
    assert send(tenant).status_code == 302
    row = AccessRequest.objects.for_workspace(tenant.workspace).get()
    title = f"{tenant.member.email} asks for mail.send"
    assert (notices(tenant, "admin"), notices(tenant, "owner")) == ([title], [title])
    admin = tenant.client("admin")
    shown = admin.get(page(tenant)).content.decode()
    assert "Weekly report" in shown
    assert "/servers/?q=mail.send" in shown
    admin.post(f"{page(tenant)}{row.pk}/grant/", {"note": "Use it with care"})
    assert notices(tenant, "member") == ["Your request for mail.send was granted"]
    shown = tenant.client("member").get(page(tenant)).content.decode()
    assert "Use it with care" in shown
    answer = admin.post(f"{page(tenant)}{row.pk}/decline/", follow=True)
    assert "decided already" in answer.content.decode()
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(
        action__startswith="config."
    )
    assert entries.count() == 2


def test_a_request_with_a_fault_is_told_at_its_field(tenant: Tenant) -> None:
    """REL-525: what was typed stays; the same is not asked twice, and not for more than a list holds."""
    answer = send(tenant, reason=" ")
    assert answer.status_code == 422
    assert "Say what you need it for." in answer.content.decode()
    assert "mail.send" in answer.content.decode()
    assert send(tenant, kind="moon").status_code == 422
    assert send(tenant, name="x" * 201).status_code == 422
    assert send(tenant).status_code == 302
    assert "asked for this already" in send(tenant, name="MAIL.send").content.decode()
    for number in range(MOST_OPEN - 1):
        assert send(tenant, name=f"tool {number}").status_code == 302
    with pytest.raises(Conflict):
        ask(
            workspace=tenant.workspace,
            kind=RequestKind.TOOL,
            name="more",
            reason="more",
            actor=tenant.actor("member"),
        )


def test_the_page_is_filled_in_from_where_something_is_missed(tenant: Tenant) -> None:
    """REL-525: the catalogue names what was searched for."""
    client = tenant.client("member")
    shown = client.get(f"{page(tenant)}?kind=server&name=Weather%00").content.decode()
    assert 'value="Weather"' in shown
    found = client.get(f"/w/{tenant.workspace.slug}/catalogue/?q=zebra").content.decode()
    assert "/requests/?kind=server&amp;name=zebra" in found


def test_requests_are_the_asking_persons_and_the_deciders(two_workspaces: TwoTenants) -> None:
    """SEC-388: others neither see nor decide nor withdraw them, over REST either."""
    tenant, other = two_workspaces.a, two_workspaces.b

    def call(client: Client, method: str, path: str, body: Any = None, to: Tenant = tenant) -> Any:
        return client.generic(
            method,
            f"/api/access-requests/{path}",
            json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={"X-Workspace": to.workspace.slug},
        )

    member, admin, auditor = (tenant.client(who) for who in ("member", "admin", "auditor"))
    given = {"kind": "server", "name": "Weather", "reason": "Trips"}
    made = call(member, "POST", "", given)
    assert made.status_code == 201
    assert call(member, "POST", "", {**given, "kind": "moon"}).status_code == 400
    path = f"{made.json()['id']}/"
    assert call(auditor, "GET", "").json()["results"] == []
    assert call(auditor, "GET", path).status_code == 404
    assert call(member, "POST", f"{path}decide/", {"is_granted": True}).status_code == 403
    assert call(admin, "DELETE", path).status_code == 403
    stranger = other.client("admin")
    assert call(stranger, "POST", f"{path}decide/", {"is_granted": True}, other).status_code == 404
    answer = call(admin, "POST", f"{path}decide/", {"is_granted": False, "note": "Too far"})
    assert (answer.json()["status"], answer.json()["note"]) == ("declined", "Too far")
    assert call(member, "DELETE", path).status_code == 409
    again = call(member, "POST", "", given).json()
    assert call(member, "DELETE", f"{again['id']}/").status_code == 204
