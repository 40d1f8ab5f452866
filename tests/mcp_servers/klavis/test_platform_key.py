"""A key of the platform's owner, for every workspace that switches the hosted provider on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from django.urls import reverse
from pydantic import SecretStr

from mcp_servers.klavis.accounts import AccountDraft, save_account
from mcp_servers.klavis.models import DEFAULT_BASE_URL, KlavisAccount
from tests.factories import Tenant

KEY = "klavis-platform-canary-0123456789"


@pytest.fixture
def platform_key() -> Iterator[None]:
    """KLAVIS_API_KEY is set."""
    config = settings.TRELLIS.model_copy(update={"klavis_api_key": SecretStr(KEY)})
    with override_settings(TRELLIS=config):
        yield


def saved(tenant: Tenant, **draft: Any) -> KlavisAccount:
    return save_account(
        workspace_id=tenant.workspace.pk, draft=AccountDraft(**draft), actor=tenant.actor("admin")
    )


def test_a_workspace_without_a_key_of_its_own_uses_the_platform_s(
    tenant: Tenant, platform_key: None
) -> None:
    """Ours: and no page shows it."""
    account = saved(tenant)
    assert account.is_usable
    assert account.api_key.reveal("a test") == KEY
    page = tenant.client("admin").get(f"/w/{tenant.workspace.slug}/servers/klavis/")
    assert KEY not in page.content.decode()


def test_the_platform_s_key_goes_to_the_provider_alone(tenant: Tenant, platform_key: None) -> None:
    """SEC-99: whoever names another address is not given a key that is not theirs, then or later."""
    elsewhere = "http://127.0.0.1:8009"
    assert not saved(tenant, base_url=elsewhere).api_key
    assert saved(tenant, base_url=DEFAULT_BASE_URL).api_key.reveal("a test") == KEY
    assert not saved(tenant, base_url=elsewhere).api_key


def test_a_key_of_the_workspace_s_own_comes_first(tenant: Tenant, platform_key: None) -> None:
    """Ours: and it stays when the form is saved again without one."""
    saved(tenant, api_key="own-key-0123456789")
    assert saved(tenant).api_key.reveal("a test") == "own-key-0123456789"


def test_the_catalogue_says_that_hosted_services_exist(tenant: Tenant, platform_key: None) -> None:
    """Ours: what a person looks for is named, with who can switch it on, also where a search finds nothing."""
    url = f"{reverse('mcp_servers:catalogue', args=[tenant.workspace.slug])}?q=gmail"
    admin = tenant.client("admin").get(url).content.decode()
    assert "Set up Klavis" in admin
    member = tenant.client("member").get(url).content.decode()
    assert "An administrator of this workspace can switch them on." in member
    saved(tenant)
    assert "Set up Klavis" not in tenant.client("admin").get(url).content.decode()
