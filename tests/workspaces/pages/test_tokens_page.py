"""The page on which people make API tokens."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from tests.factories import Tenant
from workspaces.models import ApiToken
from workspaces.people.tokens import issue_token

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("who", "scopes"),
    [
        ("member", ["chat", "servers:read", "servers:write"]),
        ("auditor", ["chat", "servers:read", "servers:write", "audit:read", "audit:write"]),
        (
            "admin",
            [
                "chat",
                "buds:write",
                "servers:read",
                "servers:write",
                "members:write",
                "audit:read",
                "audit:write",
            ],
        ),
        (
            "owner",
            [
                "chat",
                "buds:write",
                "servers:read",
                "servers:write",
                "members:write",
                "workspace:write",
                "audit:read",
                "audit:write",
            ],
        ),
    ],
)
def test_scopes_are_offered_that_the_person_can_use(
    tenant: Tenant, who: str, scopes: list[str]
) -> None:
    """REL-431: what their role lacks is neither offered nor taken; using the chat is chosen already."""
    client = tenant.client(who)
    address = reverse("workspaces:tokens")
    form = client.get(address).context["form"]
    assert [scope for scope, _ in form.fields["scopes"].choices] == scopes
    assert form["scopes"].initial == ["chat"]
    made = {"name": "x", "days": "30", "scopes": ["workspace:write"]}
    client.post(address, made)
    expected = int("workspace:write" in scopes)
    assert ApiToken.objects.for_workspace(tenant.workspace).count() == expected


def test_what_was_deleted_meanwhile_is_told_to_be_gone(tenant: Tenant) -> None:
    """REL-2076: as where a person revokes it once more on another page; an address is a matter of links."""
    token, _plain = issue_token(
        workspace=tenant.workspace,
        user=tenant.member,
        name="script",
        scopes=["chat"],
        expires_at=timezone.now() + timedelta(days=1),
        actor=tenant.actor("member"),
    )
    client = tenant.client("member", raise_request_exception=False)
    revoke = f"/account/tokens/{token.pk}/revoke/"
    before = {"referer": "http://testserver/account/tokens/"}
    assert client.post(revoke, headers=before).status_code == 302
    again = client.post(revoke, headers=before)
    told = again.content.decode()
    assert again.status_code == 404
    assert "This is no longer there" in told
    assert "Nothing was changed now" in told
    assert 'href="http://testserver/account/tokens/#unsent"' in told
    opened = client.get("/account/nothing/").content.decode()
    assert "There is nothing at this address" in opened
