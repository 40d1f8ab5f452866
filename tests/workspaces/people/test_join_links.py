"""A link lets in everybody with a confirmed address of one domain, so many times, until a day."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from audit.reports.facts import access_review
from tests.factories import PASSWORD, Tenant, TwoTenants, UserFactory, signed_in
from workspaces.actors import Role
from workspaces.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from workspaces.models import JoinLink, Membership, User, WorkspaceSession
from workspaces.people.joining import (
    MOST_USES,
    PublicEmailDomain,
    find_join_link,
    join_by_link,
    make_join_link,
    revoke_join_link,
)
from workspaces.people.suspending import suspend_member

pytestmark = pytest.mark.django_db


def make(tenant: Tenant, who: str = "admin", **changes: Any) -> tuple[JoinLink, str]:
    given = {"email_domain": "firm.example.org", "role": Role.MEMBER, "days": 7, "most_uses": 2}
    return make_join_link(
        workspace=tenant.workspace, actor=tenant.actor(who), **{**given, **changes}
    )


def join(tenant: Tenant, token: str, email: str, *, is_confirmed: bool = True) -> Membership:
    user = UserFactory.create(email=email, is_confirmed=is_confirmed)
    return join_by_link(token=token, user=user, actor=tenant.actor())


def test_people_of_the_domain_join_so_many_times(tenant: Tenant) -> None:
    """REL-524: by the role of the link, and not once more than it says."""
    link, token = make(tenant)
    assert token not in link.token_hash
    assert join(tenant, token, "ada@firm.example.org").role == "member"
    again = User.objects.get(email="ada@firm.example.org")
    with pytest.raises(Conflict):
        join_by_link(token=token, user=again, actor=tenant.actor())
    join(tenant, token, "bob@FIRM.example.org")
    with pytest.raises(NotFound):
        join(tenant, token, "eve@firm.example.org")
    link.refresh_from_db()
    assert (link.uses, link.is_open) == (2, False)


@pytest.mark.parametrize(
    ("email", "is_confirmed"),
    [
        ("ada@firm.example.org", False),
        ("ada@example.org", True),
        ("ada@sub.firm.example.org", True),
        ("ada@notfirm.example.org", True),
    ],
)
def test_nobody_else_joins(tenant: Tenant, email: str, is_confirmed: bool) -> None:
    """SEC-386: the address is of exactly this domain, and its mail was answered."""
    _, token = make(tenant)
    with pytest.raises(PermissionDenied):
        join(tenant, token, email, is_confirmed=is_confirmed)
    assert JoinLink.objects.for_workspace(tenant.workspace).get().uses == 0


def test_a_link_ends(tenant: Tenant) -> None:
    """SEC-386: revoked, expired, unknown, or made by somebody who may not invite any more."""
    link, token = make(tenant)
    revoke_join_link(link=link, actor=tenant.actor())
    _, late = make(tenant)
    JoinLink.objects.for_workspace(tenant.workspace).filter(revoked_at=None).update(
        expires_at=timezone.now() - timedelta(seconds=1)
    )
    _, orphan = make(tenant)
    members = Membership.objects.for_workspace(tenant.workspace)
    maker = members.get(user=tenant.admin)
    find_join_link(orphan)
    suspend_member(membership=maker, actor=tenant.actor("owner"))
    for dead in (token, late, orphan, "unknown", ""):
        with pytest.raises(NotFound):
            find_join_link(dead)


def test_a_link_stays_below_its_maker(tenant: Tenant) -> None:
    """SEC-386: no link makes owners, and members make none."""
    with pytest.raises(PermissionDenied):
        make(tenant, "member")
    with pytest.raises(PermissionDenied):
        make(tenant, "admin", role=Role.OWNER)
    with pytest.raises(InvalidInput):
        make(tenant, "owner", role=Role.OWNER)
    for field, value in (
        ("email_domain", "nonsense"),
        ("email_domain", "a@b.example.org"),
        ("days", 0),
        ("days", 91),
        ("most_uses", MOST_USES + 1),
    ):
        with pytest.raises(InvalidInput) as refused:
            changes: dict[str, Any] = {field: value}
            make(tenant, **changes)
        assert list(refused.value.fields) == [field]


@pytest.mark.parametrize("domain", ["gmail.com", " @GMAIL.com ", "outlook.com", "gmx.de"])
def test_a_link_for_a_public_mail_service_is_made_only_if_that_is_meant(
    tenant: Tenant, domain: str
) -> None:
    """SEC-675: anybody can get such an address, so the form and REST say so before the link is made."""
    with pytest.raises(PublicEmailDomain):
        make(tenant, email_domain=domain)
    client = tenant.client("admin")
    where = f"/w/{tenant.workspace.slug}/people/link/"
    form = {"email_domain": domain, "role": "member", "days": "7", "most_uses": "5"}
    assert "anybody may join" not in client.get(where).content.decode()
    asked = client.post(where, form)
    assert asked.status_code == 422
    assert "everybody who gets hold of this link could join" in asked.content.decode()
    assert "Make the link all the same: anybody may join" in asked.content.decode()
    head = {"X-Workspace": tenant.workspace.slug}
    body = {"email_domain": domain}
    sent: dict[str, Any] = {"content_type": "application/json", "headers": head}
    refused = client.post("/api/join-links/", json.dumps(body), **sent)
    assert refused.status_code == 422
    [fault] = refused.json()["errors"]
    assert fault["attr"] == "email_domain"
    assert "confirm that you mean it" in fault["detail"]
    assert not JoinLink.objects.for_workspace(tenant.workspace).exists()
    assert client.post(where, {**form, "lets_in_anybody": "on"}).context["address"]
    confirmed = json.dumps({**body, "lets_in_anybody": True})
    assert client.post("/api/join-links/", confirmed, **sent).status_code == 201
    assert JoinLink.objects.for_workspace(tenant.workspace).count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_stranger_makes_an_account_confirms_and_joins(tenant: Tenant) -> None:
    """REL-524: from the link to the chat; an address of another domain makes no account."""
    _, token = make(tenant)
    browser = Client()
    assert "firm.example.org" in browser.get(f"/join/{token}/", follow=True).content.decode()
    form = {"password1": PASSWORD, "password2": PASSWORD, "name": "Ada"}
    refused = browser.post("/accounts/signup/", {**form, "email": "ada@elsewhere.example.org"})
    assert "addresses at firm.example.org" in refused.content.decode()
    answer = browser.post("/accounts/signup/", {**form, "email": "ada@firm.example.org"})
    assert answer["Location"] == "/join/"
    assert "Confirm that" in browser.get("/join/").content.decode()
    browser.post("/join/", follow=True)
    assert Membership.objects.for_workspace(tenant.workspace).count() == 4
    browser.post("/join/", {"send": "1"})
    found = re.search(r"http://\S+/confirm-email/\S+", str(mail.outbox[-1].body))
    assert found is not None
    path = found[0].partition("://")[2].partition("/")[2]
    browser.post(f"/{path}")
    assert browser.get("/")["Location"] == "/join/"
    answer = browser.post("/join/")
    assert answer["Location"] == f"/w/{tenant.workspace.slug}/"
    assert browser.get(answer["Location"]).status_code == 200


def test_a_link_is_made_listed_and_revoked(two_workspaces: TwoTenants) -> None:
    """REL-524: on the page and over REST; its address is shown once, in its workspace alone."""
    tenant, other = two_workspaces.a, two_workspaces.b
    client = tenant.client("admin")
    base = f"/w/{tenant.workspace.slug}/people/"
    form = {"email_domain": "firm.example.org", "role": "member", "days": "7", "most_uses": "5"}
    made = client.post(f"{base}link/", form)
    assert "/join/" in made.context["address"]
    assert made.context["address"] in made.content.decode()
    link = JoinLink.objects.for_workspace(tenant.workspace).get()
    listed = client.get(f"{base}invite/").content.decode()
    assert "@firm.example.org" in listed
    assert made.context["address"] not in listed
    assert client.post(f"{base}link/", {**form, "days": "900"}).status_code == 422
    client.post(f"{base}link/{link.pk}/revoke/")
    assert (
        "@firm.example.org"
        not in client.get(f"{base}invite/").content.decode().partition("Join links")[2]
    )
    again = client.post(f"{base}link/{link.pk}/revoke/", follow=True)
    assert "This link is revoked already." in again.content.decode()
    head = {"X-Workspace": tenant.workspace.slug}
    body = json.dumps({"email_domain": "firm.example.org"})
    answer = client.post("/api/join-links/", body, content_type="application/json", headers=head)
    assert answer.status_code == 201
    pk = answer.json()["join_link"]["id"]
    assert "/join/" in answer.json()["link"]
    foreign = other.client("admin").delete(
        f"/api/join-links/{pk}/", headers={"X-Workspace": other.workspace.slug}
    )
    assert foreign.status_code == 404
    assert client.delete(f"/api/join-links/{pk}/", headers=head).status_code == 204
    assert client.delete(f"/api/join-links/{pk}/", headers=head).status_code == 409
    assert tenant.client("member").get("/api/join-links/", headers=head).status_code == 403


def test_whoever_has_joined_comes_to_the_workspace_by_the_same_link(
    tenant: Tenant, client: Client
) -> None:
    """REL-2072, REL-2781: also where it is used up or revoked by now; auditors see when they came."""
    link, token = make(tenant, most_uses=1)
    user = UserFactory.create(email="ada@firm.example.org", is_confirmed=True)
    client.force_login(user)
    home = f"/w/{tenant.workspace.slug}/"
    client.get(f"/join/{token}/")
    assert client.post("/join/")["Location"] == home
    assert client.post("/join/")["Location"] == home  # on the other page
    link.refresh_from_db()
    revoke_join_link(link=link, actor=tenant.actor())
    assert client.get(f"/join/{token}/", follow=True).redirect_chain[-1][0] == home
    came = {one.email: one.signed_in for one in access_review(tenant.workspace.pk).people}
    noted = WorkspaceSession.objects.for_workspace(tenant.workspace).get(user=user)
    assert came[user.email] == noted.created_at
    other = signed_in(UserFactory.create(email="bob@firm.example.org", is_confirmed=True))
    assert other.get(f"/join/{token}/", follow=True).status_code == 404
