"""The pages and the REST routes about members."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from typing import Any
from unittest.mock import patch

import pytest
from django.test import Client

from audit.models import Notice
from chat.models import Bud
from tests.chat.services.buds import many_buds
from tests.factories import Tenant, TwoTenants, signed_in
from workspaces.models import Membership, User
from workspaces.people import services
from workspaces.people.access import AccessItem

pytestmark = pytest.mark.django_db


def of(tenant: Tenant, who: str) -> Membership:
    rows = Membership.objects.also_suspended(tenant.workspace)
    return rows.get(user=tenant.people[who])


def page(tenant: Tenant, who: str, verb: str = "") -> str:
    end = f"{verb}/" if verb else ""
    return f"/w/{tenant.workspace.slug}/people/{of(tenant, who).pk}/{end}"


def call(client: Client, tenant: Tenant, method: str, path: str, body: Any = None) -> Any:
    return client.generic(
        method,
        f"/api/members/{path}",
        json.dumps(body) if body is not None else "",
        content_type="application/json",
        headers={"X-Workspace": tenant.workspace.slug},
    )


def test_a_person_is_suspended_and_let_in_on_their_page(tenant: Tenant) -> None:
    """REL-520."""
    client = tenant.client("admin")
    assert tenant.member.email in client.get(f"/w/{tenant.workspace.slug}/people/").content.decode()
    client.post(page(tenant, "member", "suspend"), {"reason": "On leave"})
    shown = client.get(page(tenant, "member")).content.decode()
    assert "Reason: On leave" in shown
    assert (
        "suspended" in client.get(f"/w/{tenant.workspace.slug}/people/?q=member").content.decode()
    )
    client.post(page(tenant, "member", "resume"))
    assert of(tenant, "member").suspended_at is None
    answer = client.post(page(tenant, "owner", "suspend"), follow=True)
    assert "above your own" in answer.content.decode()
    answer = client.post(page(tenant, "member", "role"), {"role": "king"})
    assert answer.status_code == 422


def test_who_gives_up_their_own_role_reads_that_it_is_done(tenant: Tenant) -> None:
    """REL-2158: and not that they may not see the page that they came from."""
    answer = tenant.client("admin").post(
        page(tenant, "admin", "role"), {"role": "member"}, follow=True
    )
    assert answer.status_code == 200
    assert of(tenant, "admin").role == "member"
    assert "You are a member of this workspace now" in answer.content.decode()


def test_nobody_is_offered_a_role_that_they_cannot_give(tenant: Tenant) -> None:
    """REL-1451: an admin makes no owner and no auditor, and what they save leaves an auditor one."""
    admin, owner = tenant.client("admin"), tenant.client("owner")
    for client, is_owner in ((admin, False), (owner, True)):
        for place in (page(tenant, "member"), f"/w/{tenant.workspace.slug}/people/invite/"):
            shown = client.get(place).content.decode()
            assert '<option value="admin"' in shown
            assert ('<option value="owner"' in shown) is is_owner
    shown = admin.get(page(tenant, "owner")).content.decode()
    assert "Only an owner can change that." in shown
    assert f'action="{page(tenant, "owner")}' not in shown
    shown = admin.get(page(tenant, "auditor")).content.decode()
    assert 'type="hidden" name="is_auditor" value="on"' in shown
    seen = re.search(r'name="seen" value="([^"]*)"', shown)
    assert seen is not None
    body = {"role": "admin", "is_auditor": "on", "seen": seen[1]}
    assert admin.post(page(tenant, "auditor", "role"), body).status_code == 302
    changed = of(tenant, "auditor")
    assert (changed.role, changed.is_auditor) == ("admin", True)


def test_a_page_says_what_a_person_may_use_and_why(tenant: Tenant) -> None:
    """REL-522: by role, right to audit, bud, server and sign-in."""
    shown = tenant.client("admin").get(page(tenant, "auditor")).content.decode()
    assert "Use buds and have conversations" in shown
    assert "Role: Member" in shown
    assert "Right to audit" in shown
    answer = call(tenant.client("admin"), tenant, "GET", f"{of(tenant, 'admin').pk}/access/")
    assert {
        "kind": "permission",
        "name": "See the audit log",
        "why": "Role: Admin",
    } in answer.json()["results"]


def test_a_page_leads_to_all_that_somebody_may_use(tenant: Tenant) -> None:
    """REL-814: where only the first ones of a kind are shown, it says so; every row is on exactly one page."""
    client = tenant.client("admin")
    text = "Buds: the first 20 are shown."
    assert text not in client.get(page(tenant, "member")).content.decode()
    many_buds(tenant, 230, is_archived=False)
    shown = client.get(page(tenant, "member")).content.decode()
    assert text in shown
    where = page(tenant, "member", "access")
    assert f"{where}?kind=bud" in shown
    found: list[AccessItem] = []
    following: str | None = f"{where}?kind=bud"
    for _page in range(3):
        assert following is not None
        answer = client.get(following)
        found += answer.context["rows"]
        query = answer.context["ways"].following
        following = f"{where}{query}" if query else None
    assert following is None
    names = [row.name for row in found]
    assert names == sorted(names)
    assert len({row.key for row in found}) == len(found) == 230


def test_programs_get_all_that_somebody_may_use_page_by_page(tenant: Tenant) -> None:
    """REL-814: one list of all kinds, also where many rows have one name."""
    many_buds(tenant, 230, is_archived=False)
    Bud.objects.for_workspace(tenant.workspace).update(name="Alike")
    client, path = tenant.client("admin"), f"{of(tenant, 'member').pk}/access/"
    results: list[dict[str, str]] = []
    following: str | None = path
    while following is not None:
        answer = call(client, tenant, "GET", following).json()
        results += answer["results"]
        following = path + "?" + answer["next"].partition("?")[2] if answer["next"] else None
    assert [one["name"] for one in results if one["kind"] == "bud"] == ["Alike"] * 230
    assert results[0]["kind"] == "permission"
    only = call(client, tenant, "GET", f"{path}?kind=server").json()["results"]
    assert {one["kind"] for one in only} <= {"server"}


SOME_ID = (
    "00000000-0000-7000-8000-000000000000"  # the same in each process, as names of tests are to be
)


def made_up(*parts: object) -> str:
    return "after=" + urlsafe_b64encode(json.dumps(parts).encode()).decode()


@pytest.mark.parametrize(
    "typo",
    [
        *("kind=buds", "after=nonsense", "limit=5", made_up(["bud"], "a", SOME_ID)),
        *(made_up("bud", "\0", SOME_ID), made_up("bud", "\ud800", SOME_ID)),
        *(made_up("bud", "a", "b"), made_up("bud", "a"), made_up("room", "a", SOME_ID)),
    ],
)
def test_an_address_that_does_not_fit_is_told(tenant: Tenant, typo: str) -> None:
    """REL-814."""
    answer = tenant.client("admin").get(f"{page(tenant, 'member', 'access')}?{typo}")
    assert answer.status_code == 200
    message = (
        "The first one is shown." if typo.startswith("after") else "The list is shown without it."
    )
    assert message in answer.content.decode()
    cursor = typo.replace("after", "cursor")
    path = f"{of(tenant, 'member').pk}/access/?{cursor}"
    assert call(tenant.client("admin"), tenant, "GET", path).status_code == 400


def test_ownership_goes_to_somebody_else_by_typing_the_name(tenant: Tenant) -> None:
    """REL-521: the old owner becomes administrator, and both are told."""
    client = tenant.client("owner")
    answer = client.post(page(tenant, "admin", "make-owner"), {"confirmation": "yes"})
    assert answer.status_code == 422
    shown = answer.content.decode()
    assert 'autofocus aria-invalid="true" aria-describedby="transfer-name_error"' in shown
    assert 'id="transfer-name_error"' in shown
    assert of(tenant, "owner").role == "owner"
    name = tenant.workspace.name
    client.post(page(tenant, "admin", "make-owner"), {"confirmation": name})
    assert (of(tenant, "owner").role, of(tenant, "admin").role) == ("admin", "owner")
    recipients = Notice.objects.for_workspace(tenant.workspace).values_list("user__email", "title")
    assert sorted(recipients) == [
        (tenant.admin.email, f"You own {name}"),
        (tenant.owner.email, f"{tenant.admin.email} owns {name}"),
    ]
    answer = client.post(page(tenant, "member", "make-owner"), {"confirmation": name})
    assert of(tenant, "member").role == "member"


def test_a_person_is_told_of_another_role_and_of_the_right_to_audit(tenant: Tenant) -> None:
    """REL-1728: in their bell, by whom; their open pages hear of it, and nobody of what stays as it was."""
    client, name = tenant.client("owner"), tenant.workspace.name
    with patch.object(services, "announce") as nudged:
        client.post(page(tenant, "admin", "role"), {"role": "admin"})
        client.post(page(tenant, "admin", "role"), {"role": "member", "is_auditor": "on"})
        client.post(page(tenant, "admin", "role"), {"role": "member"})
    rows = Notice.objects.for_workspace(tenant.workspace).order_by("pk")
    assert list(rows.values_list("user__email", "title", "text")) == [
        (
            tenant.admin.email,
            f"You are Member of {name} now",
            (
                f"{tenant.owner.email} changed your role from Admin to Member. "
                "You may now read arguments and results in the audit log, and export it."
            ),
        ),
        (
            tenant.admin.email,
            f"Your rights in {name} have changed",
            (
                f"{tenant.owner.email} changed them. "
                "You may no longer read arguments and results in the audit log, or export it."
            ),
        ),
    ]
    listed = [(call.args[1].kind, call.args[1].user_id) for call in nudged.call_args_list]
    assert listed == [("membership.changed", str(tenant.admin.pk))] * 2


@pytest.mark.parametrize("who", ["member", "admin"])
def test_a_member_leaves_by_themselves(tenant: Tenant, who: str) -> None:
    """REL-1729: on their profile, and who looks after members is told."""
    client, workspace = tenant.client(who), tenant.workspace
    address = f"/w/{workspace.slug}/leave/"
    assert f'action="{address}"' in client.get("/account/").content.decode()
    html = client.post(address, follow=True).content.decode()
    assert f"You have left {workspace.name}." in html
    assert client.get(f"/w/{workspace.slug}/").status_code == 404
    assert not Membership.objects.for_workspace(workspace).filter(user=tenant.people[who]).exists()
    left = f"{tenant.people[who].email} has left {workspace.name}"
    heard = Notice.objects.for_workspace(workspace).filter(title=left)
    others = {tenant.owner.email, tenant.admin.email} - {tenant.people[who].email}
    assert set(heard.values_list("user__email", flat=True)) == others


def test_the_last_owner_does_not_leave(tenant: Tenant) -> None:
    """REL-1729: and reads what to do first. The platform's owner is no member, and has nothing to leave."""
    client, address = tenant.client("owner"), f"/w/{tenant.workspace.slug}/leave/"
    html = client.post(address, follow=True).content.decode()
    assert "A workspace needs an owner. Make someone else an owner first." in html
    assert of(tenant, "owner").role == "owner"
    of(tenant, "member").delete()
    type(tenant.member).objects.filter(pk=tenant.member.pk).update(is_superuser=True)
    root = tenant.client("member")
    assert f'action="{address}"' not in root.get("/account/").content.decode()
    assert root.post(address).status_code == 404


@pytest.mark.parametrize("who", ["member", "auditor"])
def test_members_do_not_manage_members(tenant: Tenant, who: str) -> None:
    """SEC-387: not the list, not a person's page, not over REST."""
    client = tenant.client(who)
    assert client.get(f"/w/{tenant.workspace.slug}/people/").status_code == 403
    assert client.get(page(tenant, "member")).status_code == 403
    assert client.post(page(tenant, "owner", "suspend")).status_code == 403
    assert call(client, tenant, "GET", "").status_code == 403
    path = f"{of(tenant, 'owner').pk}/suspend/"
    assert call(client, tenant, "POST", path, {}).status_code == 403


def test_an_account_that_is_switched_off_shows_among_the_members(tenant: Tenant) -> None:
    """REL-2402: on the pages, in the admin and over REST. Nothing of the workspace says it otherwise."""
    User.objects.filter(pk=tenant.member.pk).update(is_active=False)
    client = tenant.client("owner")
    mark = "account switched off"
    paths = (
        f"/w/{tenant.workspace.slug}/people/",
        page(tenant, "member"),
        "/admin/workspaces/membership/",
    )
    for path in paths:
        assert client.get(path).content.decode().count(mark) == 1, path
    assert mark not in client.get(page(tenant, "auditor")).content.decode()
    listed = call(client, tenant, "GET", "").json()["results"]
    off = [one["email"] for one in listed if not one["is_account_active"]]
    assert off == [tenant.member.email]


def test_programs_manage_members(two_workspaces: TwoTenants) -> None:
    """REL-520, REL-521, SEC-387: the same over REST, within the workspace alone."""
    tenant, other = two_workspaces.a, two_workspaces.b
    client = tenant.client("owner")
    listed = call(client, tenant, "GET", "").json()["results"]
    assert {one["email"] for one in listed} == {person.email for person in tenant.people.values()}
    pk = of(tenant, "member").pk
    answer = call(client, tenant, "POST", f"{pk}/suspend/", {"reason": "On leave"})
    assert answer.status_code == 200
    assert answer.json()["suspension_reason"] == "On leave"
    assert call(client, tenant, "POST", f"{pk}/suspend/", {}).status_code == 409
    assert call(client, tenant, "GET", f"{pk}/access/").json()["results"] == []
    assert call(client, tenant, "POST", f"{pk}/resume/").json()["suspended_at"] is None
    assert call(client, tenant, "POST", f"{pk}/role/", {"role": "admin"}).json()["role"] == "admin"
    assert call(client, tenant, "POST", f"{pk}/role/", {"role": "king"}).status_code == 400
    answer = call(client, tenant, "POST", f"{pk}/make-owner/", {"confirmation": "x"})
    assert answer.status_code == 422
    typed = {"confirmation": tenant.workspace.name}
    assert call(client, tenant, "POST", f"{pk}/make-owner/", typed).status_code == 204
    assert call(client, tenant, "DELETE", f"{of(tenant, 'auditor').pk}/").status_code == 204
    foreign = of(other, "member").pk
    for method, path in (("GET", f"{foreign}/"), ("POST", f"{foreign}/suspend/")):
        assert (
            call(client, tenant, method, path, {} if method == "POST" else None).status_code == 404
        )


def test_a_workspace_without_members_says_so(tenant: Tenant) -> None:
    """REL-3336: the platform's owner enters a new one, where nobody had been looked for and nobody turned anything on."""
    client = signed_in(User.objects.create_superuser(email="root@a.example.org"))
    Membership.unscoped.filter(workspace=tenant.workspace).delete()
    at = f"/w/{tenant.workspace.slug}/"
    for path in ("people/", "spending/", "servers/rules/"):
        shown = client.get(f"{at}{path}").content.decode()
        assert "This workspace has no members yet." in shown, path
        assert "has that name or address" not in shown, path
        assert "All members have turned it on" not in shown, path
    for path in ("people/", "spending/"):
        assert "has that name or address" in client.get(f"{at}{path}?q=x").content.decode(), path
    listed = client.get("/admin/workspaces/membership/").content.decode()
    assert "People become members by an invitation" in listed
