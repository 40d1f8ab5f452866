"""The page on which people make API tokens."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.factories import Tenant
from workspaces.models import ApiToken

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
