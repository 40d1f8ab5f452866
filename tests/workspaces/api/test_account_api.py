"""A person's own tokens, sessions and workspaces over REST."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from uuid_utils.compat import uuid7

from tests.factories import MembershipFactory, Tenant, TwoTenants, WorkspaceFactory, signed_in
from tests.platform_api import faults, issue
from workspaces.models import ApiToken, User
from workspaces.roles import Role

pytestmark = pytest.mark.django_db


def post(client: Client, path: str, body: Any = None) -> Any:
    return client.post(f"/api/{path}", body or {}, content_type="application/json")


def a_token(**changes: Any) -> dict[str, Any]:
    ends = timezone.now() + timedelta(days=30)
    return {"name": "script", "scopes": ["chat"], "expires_at": ends.isoformat(), **changes}


def test_people_make_list_and_end_their_own_tokens(tenant: Tenant) -> None:
    """REL-1064: a token is shown once. Nobody else sees it among theirs, and administrators see that there is one."""
    member, admin = tenant.client("member"), tenant.client("admin")
    made = post(member, "tokens/", a_token()).json()
    assert made["token"].startswith("trl_")
    path = f"tokens/{made['row']['id']}/"
    listed = member.get("/api/tokens/").content.decode()
    assert made["row"]["name"] in listed
    assert made["token"] not in listed
    assert not admin.get("/api/tokens/").json()["results"]
    assert admin.get(f"/api/{path}").status_code == 404
    assert [one["user"] for one in admin.get("/api/member-tokens/").json()["results"]] == [
        tenant.member.email
    ]
    assert member.get("/api/member-tokens/").status_code == 403
    assert admin.delete(f"/api/member-{path}").status_code == 204
    assert not ApiToken.objects.for_workspace(tenant.workspace).exists()
    again = post(member, "tokens/", a_token()).json()["row"]["id"]
    assert member.delete(f"/api/tokens/{again}/").status_code == 204


@pytest.mark.parametrize(
    ("changes", "status", "fields"),
    [
        ({"name": ""}, 400, {"name"}),
        ({"scopes": []}, 400, {"scopes"}),
        ({"scopes": ["all"]}, 400, {"scopes.0"}),
        ({"scopes": ["platform:read"]}, 422, {"scopes"}),
        ({"expires_at": "2020-01-01T00:00:00Z"}, 422, {"expires_at"}),
        ({"expires_at": "soon"}, 400, {"expires_at"}),
    ],
)
def test_a_faulty_token_is_told_at_its_field(
    tenant: Tenant, changes: dict[str, Any], status: int, fields: set[str]
) -> None:
    """REL-1064, SEC-501."""
    answer = post(tenant.client("owner"), "tokens/", a_token(**changes))
    assert (answer.status_code, set(faults(answer))) == (status, fields)


@pytest.mark.parametrize("path", ["tokens/", "sessions/", "workspaces/"])
def test_no_token_sees_or_makes_ways_in(tenant: Tenant, path: str) -> None:
    """SEC-504: they take a browser session."""
    scopes = ("chat", "members:write", "workspace:write")
    headers = {"Authorization": f"Bearer {issue(tenant.owner, tenant.workspace, *scopes)}"}
    client = Client(headers=headers)
    assert client.get(f"/api/{path}").status_code == 403
    assert post(client, path, a_token()).status_code in {403, 405}
    assert post(client, "sessions/sign-out-others/").status_code == 403


def test_people_see_and_end_their_other_browsers(two_workspaces: TwoTenants) -> None:
    """REL-1064: one of them, or all others; the one that asks stays."""
    tenant = two_workspaces.a
    here, there, third = (tenant.client("member") for _ in range(3))
    for client in (here, there, third, tenant.client("admin")):
        assert client.get(f"/w/{tenant.workspace.slug}/").status_code == 200
    rows = here.get("/api/sessions/").json()["results"]
    assert [one["is_current"] for one in rows].count(True) == 1
    assert len(rows) == 3
    mine = next(one["id"] for one in rows if one["is_current"])
    of_there = next(
        one["id"] for one in there.get("/api/sessions/").json()["results"] if one["is_current"]
    )
    assert here.delete(f"/api/sessions/{mine}/").status_code == 409
    assert tenant.client("admin").delete(f"/api/sessions/{mine}/").status_code == 404
    assert here.delete(f"/api/sessions/{of_there}/").status_code == 204
    assert there.get("/api/sessions/").status_code == 401
    assert post(here, "sessions/sign-out-others/").json() == {"ended": 1}
    assert third.get("/api/sessions/").status_code == 401
    assert len(here.get("/api/sessions/").json()["results"]) == 1
    assert here.delete(f"/api/sessions/{uuid7()}/").status_code == 404


def test_people_list_the_workspaces_that_they_may_enter(
    two_workspaces: TwoTenants, superuser: User, django_assert_num_queries: Any
) -> None:
    """REL-1064: with their role, page by page; of the platform's owner all of them."""
    person = two_workspaces.a.member
    client = two_workspaces.a.client("member")
    for number in range(4):
        other = WorkspaceFactory.create(name=f"W{number}", slug=f"w{number}")
        MembershipFactory.create(user=person, workspace=other, role=Role.ADMIN.value)
    page = client.get("/api/workspaces/?page_size=3").json()
    rest = client.get(page["next"]).json()
    found = page["results"] + rest["results"]
    assert [one["role"] for one in found] == ["admin"] * 4 + ["member"]
    assert two_workspaces.b.workspace.slug not in str(found)
    root = signed_in(superuser)
    assert len(root.get("/api/workspaces/").json()["results"]) == 6
