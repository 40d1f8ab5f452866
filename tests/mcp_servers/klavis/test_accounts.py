"""The workspace's account at the provider."""

from __future__ import annotations

import pytest

from mcp_servers.klavis import accounts
from mcp_servers.klavis.accounts import AccountDraft
from mcp_servers.klavis.asking import NotSetUp
from mcp_servers.klavis.models import KlavisAccount, KlavisInstance, KlavisRemoval
from mcp_servers.models import McpServer
from mcp_servers.registry import services
from tests.factories import Tenant
from tests.fakes.klavis import KEY, FakeKlavis
from tests.mcp_servers.klavis.conftest import install, remove_all
from workspaces.errors import Conflict, PermissionDenied


def test_another_base_url_drops_the_key(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """SEC-99: the old key goes to the old address alone, for what is left to delete there."""
    other = FakeKlavis()
    try:
        accounts.save_account(
            workspace_id=tenant.workspace.pk,
            draft=AccountDraft(base_url=other.origin),
            actor=tenant.actor("admin"),
        )
        account = KlavisAccount.objects.for_workspace(tenant.workspace).get()
        assert account.api_key is None
        assert account.user_key is not None
        with pytest.raises(NotSetUp):
            accounts.try_account(workspace_id=tenant.workspace.pk, actor=tenant.actor("admin"))
        installed.refresh_from_db()
        assert installed.state == "failed"
        assert installed.server_url is None
        report = services.test_connection(
            server=McpServer.objects.for_workspace(tenant.workspace).get(),
            actor=tenant.actor("admin"),
        )
        assert not report.ok
        remove_all(tenant)
        assert not provider.instances
        assert not other.requests
    finally:
        other.stop()


def test_a_refused_key_is_told(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """Ours: on the settings page, until it works again."""
    provider.key = "another"
    actor = tenant.actor("admin")
    report = accounts.try_account(workspace_id=tenant.workspace.pk, actor=actor)
    assert not report.ok
    account.refresh_from_db()
    assert account.problem == report.message
    provider.key = KEY
    assert accounts.try_account(workspace_id=tenant.workspace.pk, actor=actor).ok
    account.refresh_from_db()
    assert not account.problem


def test_another_key_ends_what_was_said_of_the_old_one(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """REL-2117: of the account, and of a service that could not be installed with it; others stay as they are."""
    provider.key = "another-key-5522"
    slack = install(tenant, "Slack")
    slack.refresh_from_db()
    assert (slack.state, "refused the API key" in slack.reason) == ("failed", True)
    account = accounts.save_account(
        workspace_id=tenant.workspace.pk,
        draft=AccountDraft(api_key=provider.key),
        actor=tenant.actor("admin"),
    )
    assert account.problem == ""
    slack.refresh_from_db()
    assert (slack.state, slack.reason) == ("failed", "The API key has changed. Try again.")
    installed.refresh_from_db()
    assert installed.state == "ready"
    again = install(tenant, "Slack")
    again.refresh_from_db()
    assert (again.pk, again.state) == (slack.pk, "waiting_for_sign_in")


def test_two_who_set_it_up_at_once(
    tenant: Tenant, account: KlavisAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the second is told so, and the first one's account stays."""
    locking = KlavisAccount.objects.for_workspace(tenant.workspace).select_for_update()
    monkeypatch.setattr(type(locking), "first", lambda self: None)
    with pytest.raises(Conflict):
        accounts.save_account(
            workspace_id=tenant.workspace.pk,
            draft=AccountDraft(base_url="https://other.example.org", api_key="another"),
            actor=tenant.actor("admin"),
        )
    monkeypatch.undo()
    assert KlavisAccount.objects.for_workspace(tenant.workspace).get().base_url == account.base_url


def test_only_administrators_touch_the_account(tenant: Tenant, account: KlavisAccount) -> None:
    """SEC-117: the key is the workspace's."""
    with pytest.raises(PermissionDenied):
        accounts.save_account(
            workspace_id=tenant.workspace.pk, draft=AccountDraft(), actor=tenant.actor("member")
        )
    with pytest.raises(PermissionDenied):
        accounts.try_account(workspace_id=tenant.workspace.pk, actor=tenant.actor("member"))
    with pytest.raises(PermissionDenied):
        accounts.remove_account(workspace_id=tenant.workspace.pk, actor=tenant.actor("member"))


def test_removing_the_account_removes_everything(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """SEC-117."""
    tenant.allow_personal_servers()
    install(tenant, "Weather", "member", for_workspace=False)
    accounts.remove_account(workspace_id=tenant.workspace.pk, actor=tenant.actor("admin"))
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()
    remove_all(tenant)
    assert not provider.instances
    assert len(provider.deleted_users) == 2
    assert not KlavisRemoval.objects.for_workspace(tenant.workspace).exists()
