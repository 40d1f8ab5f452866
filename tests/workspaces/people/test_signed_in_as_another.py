"""An invitation or a join link that somebody opens while they are signed in as another person."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from tests.factories import PASSWORD, Tenant, UserFactory
from tests.workspaces.people.inviting import invite_member
from workspaces.actors import Role
from workspaces.models import Membership
from workspaces.people.joining import make_join_link

pytestmark = pytest.mark.django_db
ADDRESS = "ada@firm.example.org"


def invitation(tenant: Tenant) -> str:
    _, token = invite_member(
        workspace=tenant.workspace,
        email=ADDRESS,
        role=Role.MEMBER,
        is_auditor=False,
        actor=tenant.actor("admin"),
        accept_url="http://testserver/invitations/{token}/",
    )
    return f"/invitations/{token}/"


def join_link(tenant: Tenant) -> str:
    _, token = make_join_link(
        workspace=tenant.workspace,
        email_domain="firm.example.org",
        role=Role.MEMBER,
        days=7,
        most_uses=2,
        actor=tenant.actor("admin"),
    )
    return f"/join/{token}/"


@pytest.mark.parametrize("make", [invitation, join_link])
def test_whoever_signs_out_for_it_comes_back_to_it(
    tenant: Tenant, make: Callable[[Tenant], str]
) -> None:
    """REL-2157: and joins as the person that it is for, without the mail that it came in."""
    ada = UserFactory.create(email=ADDRESS, is_confirmed=True)
    client = Client()
    client.force_login(
        UserFactory.create(email="private@example.net"),
        backend="allauth.account.auth_backends.AuthenticationBackend",
    )
    path = make(tenant)
    page = client.get(path, follow=True)
    text = page.content.decode()
    assert "private@example.net" in text
    assert "firm.example.org" in text
    [back] = re.findall(r'name="next"\s+value="([^"]+)"', text)
    assert back == path
    seen = client.post("/accounts/logout/", {"next": back}, follow=True)
    assert "I have an account" in seen.content.decode()
    at = seen.redirect_chain[-1][0]
    form = {"login": ADDRESS, "password": PASSWORD, "next": at}
    assert (
        "Join the workspace" in client.post("/accounts/login/", form, follow=True).content.decode()
    )
    client.post(at)
    assert Membership.objects.for_workspace(tenant.workspace).filter(user=ada).exists()


def test_the_way_back_leads_to_no_other_site(tenant: Tenant) -> None:
    """REL-2157: whatever the form is made to say."""
    client = tenant.client("member")
    answer = client.post("/accounts/logout/", {"next": "https://evil.example/"})
    assert answer["Location"] == "/accounts/login/"


@pytest.mark.parametrize("make", [invitation, join_link])
def test_a_suspended_workspace_is_named_and_nobody_is_sent_for_a_new_invitation(
    tenant: Tenant, client: Client, make: Callable[[Tenant], str]
) -> None:
    """REL-2213: the page says whom to ask, and the same link works again once the workspace is open."""
    path = make(tenant)
    tenant.workspace.is_active = False
    tenant.workspace.save()
    page = client.get(path, follow=True)
    assert page.status_code == 403
    text = page.content.decode()
    assert f"{tenant.workspace.name} is suspended" in text
    assert "people who run this installation" in text
    assert "Ask for a new one" not in text
    tenant.workspace.is_active = True
    tenant.workspace.save()
    assert client.get(path, follow=True).status_code == 200
