"""A backup brings back what let people in when it was made. It lets nobody in any more."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.factories import TwoTenants
from workspaces.actors import Role
from workspaces.errors import NotFound
from workspaces.people.after_restore import RevokedAccess, end_ways_in
from workspaces.people.joining import find_join_link, make_join_link
from workspaces.people.services import find_invitation, make_invitation

pytestmark = pytest.mark.django_db


def test_what_may_have_been_taken_back_since_lets_nobody_in(two_workspaces: TwoTenants) -> None:
    """SEC-530: sessions, invitations and join links of every workspace."""
    browsers, invitations, links = [], [], []
    for tenant in (two_workspaces.a, two_workspaces.b):
        browser = Client()
        browser.force_login(tenant.member)
        browsers.append(browser)
        _, token = make_invitation(
            workspace=tenant.workspace,
            email="ada@example.org",
            role=Role.MEMBER,
            is_auditor=False,
            actor=tenant.actor(),
        )
        invitations.append(token)
        _, token = make_join_link(
            workspace=tenant.workspace,
            email_domain="example.org",
            role=Role.MEMBER,
            days=7,
            most_uses=2,
            actor=tenant.actor(),
        )
        links.append(token)
    assert all(browser.get("/account/").status_code == 200 for browser in browsers)

    assert end_ways_in() == RevokedAccess(sessions=2, invitations=2, join_links=2)
    assert all(browser.get("/account/").status_code == 302 for browser in browsers)
    for token in invitations:
        with pytest.raises(NotFound):
            find_invitation(token)
    for token in links:
        with pytest.raises(NotFound):
            find_join_link(token)
    assert end_ways_in() == RevokedAccess(sessions=0, invitations=0, join_links=0)
