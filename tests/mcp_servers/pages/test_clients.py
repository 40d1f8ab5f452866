"""People let other MCP clients in on a page, and take that back."""

from __future__ import annotations

import pytest

from tests.factories import Tenant
from workspaces.models import ApiToken

pytestmark = pytest.mark.django_db


def test_a_client_gets_a_token_that_is_shown_once_with_what_to_paste(tenant: Tenant) -> None:
    """SEC-531, SEC-108, REL-2038, REL-2933: only where the owner allows it; the token opens the endpoint and nothing else."""
    url = f"/w/{tenant.workspace.slug}/servers/clients/"
    member = tenant.client("member")
    given = {"name": "VS Code", "scope": "mcp:read", "days": "30"}
    closed = member.post(url, given).content.decode()
    assert "Ask an owner of the workspace" in closed
    assert not ApiToken.objects.for_workspace(tenant.workspace).exists()
    tenant.workspace.allows_mcp_clients = True
    tenant.workspace.save()

    shown = member.post(url, given).content.decode()
    token = ApiToken.objects.for_workspace(tenant.workspace).get()
    assert (token.name, token.scopes, token.user) == ("VS Code", ["mcp:read"], tenant.member)
    assert shown.count(token.hint) > 5, "by itself and in each example"
    for command in (
        "claude mcp add --scope user ",
        "codex mcp add trellis-",
        "gemini mcp add --scope user ",
        "copilot mcp add ",
        "opencode mcp add trellis-",
    ):
        assert shown.count(command) == 2, "with a sign-in, and with the token"
    later = member.get(url).content.decode()
    assert f"{token.hint}" not in later
    assert "Clients with a token" in later
    assert "Your clients" not in tenant.client("admin").get(url).content.decode()
    member.post(f"/account/tokens/{token.pk}/revoke/")
    assert "Your clients" not in member.get(url).content.decode()


def test_what_is_wrong_with_a_client_is_told_at_its_field(tenant: Tenant) -> None:
    """Ours: a name that is missing, and a scope that this page does not give."""
    tenant.workspace.allows_mcp_clients = True
    tenant.workspace.save()
    url = f"/w/{tenant.workspace.slug}/servers/clients/"
    answer = tenant.client("member").post(url, {"name": "", "scope": "chat", "days": "30"})
    assert answer.status_code == 200
    assert set(answer.context["form"].errors) == {"name", "scope"}
    assert not ApiToken.objects.for_workspace(tenant.workspace).exists()
