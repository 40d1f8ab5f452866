"""What the regular rounds find out about instances."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from mcp_servers.klavis import accounts, installing, reconciling
from mcp_servers.klavis.accounts import AccountDraft
from mcp_servers.klavis.cards import instance_card
from mcp_servers.klavis.models import KlavisAccount, KlavisInstance
from mcp_servers.klavis.tasks import keep_klavis, read_klavis_catalogue, read_klavis_catalogues
from mcp_servers.models import McpServer
from tests.factories import Tenant, make_tenant
from tests.fakes.klavis import KEY, FakeKlavis
from tests.mcp_servers.klavis.conftest import install, poll_now
from workspaces.secrets import Secret


def test_what_vanished_is_offered_anew(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """Ours: our table is the truth, and says what became of its rows; one 404 is not yet the end of anything."""
    provider.fail("GET", "/mcp-server/instance/", status=404)
    for _ in range(2):
        reconciling.check(installed.workspace_id, installed.pk)
    installed.refresh_from_db()
    assert installed.state == "ready"
    provider.instances.clear()
    for state in ("ready", "failed"):
        reconciling.check(installed.workspace_id, installed.pk)
        installed.refresh_from_db()
        assert installed.state == state
    assert (installed.state, installed.reason) == ("failed", reconciling.VANISHED)
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert server.state.status == "error"
    again = installing.begin_again(instance=installed, actor=tenant.actor("admin"))
    assert again.state == "waiting_for_sign_in"
    assert again.server_id == server.pk


def test_a_lost_sign_in_shows_on_the_server(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """Ours."""
    provider.only().is_signed_in = False
    reconciling.check(installed.workspace_id, installed.pk)
    installed.refresh_from_db()
    assert installed.state == "waiting_for_sign_in"
    assert installed.reason == reconciling.SIGNED_OUT
    assert McpServer.objects.for_workspace(tenant.workspace).get().state.status == "auth_required"


@pytest.mark.parametrize("status", [401, 429, 500])
def test_a_provider_in_trouble_changes_nothing(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis, status: int
) -> None:
    """Ours: only its word that an instance is gone counts."""
    provider.fail("GET", "/mcp-server/instance/", status=status, times=9)
    reconciling.check(installed.workspace_id, installed.pk)
    installed.refresh_from_db()
    assert installed.state == "ready"
    account = KlavisAccount.objects.for_workspace(tenant.workspace).get()
    assert bool(account.problem) == (status == 401)


def test_an_interrupted_installation_goes_on(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """Ours: a process that ended in between leaves nothing behind."""
    instance = install(tenant, "Weather")
    McpServer.objects.for_workspace(tenant.workspace).all().delete()
    old = timezone.now() - timedelta(hours=1)
    rows = KlavisInstance.objects.for_workspace(tenant.workspace)
    rows.update(state="creating", instance_id=None, updated_at=old, last_checked_at=old)
    assert (tenant.workspace.pk, instance.pk) in reconciling.due_checks()
    reconciling.check(tenant.workspace.pk, instance.pk)
    assert rows.get().state == "ready"
    assert len(provider.instances) == 1


def test_the_regular_round_hands_out_what_is_due(
    tenant: Tenant,
    account: KlavisAccount,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: sign-ins, looks and deletions."""
    handed: list[str] = []
    for name in ("poll_klavis", "check_klavis", "remove_at_klavis"):
        monkeypatch.setattr(
            f"mcp_servers.klavis.tasks.{name}.apply_async",
            lambda arguments, name=name, **_: handed.append(name),
        )
    gmail = install(tenant, "Gmail")
    weather = install(tenant, "Weather")
    long_ago = timezone.now() - timedelta(days=1)
    rows = KlavisInstance.objects.for_workspace(tenant.workspace)
    rows.filter(pk=gmail.pk).update(next_poll_at=long_ago)
    rows.filter(pk=weather.pk).update(last_checked_at=long_ago)
    slack = install(tenant, "Slack")
    installing.uninstall(instance=slack, actor=tenant.actor("admin"))
    handed.clear()
    keep_klavis()
    assert sorted(handed) == ["check_klavis", "poll_klavis", "remove_at_klavis"]
    keep_klavis()
    assert handed.count("check_klavis") == 1


def test_a_key_that_is_gone_stops_no_regular_work(
    tenant: Tenant,
    installed: KlavisInstance,
    provider: FakeKlavis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: neither asking for a sign-in nor looking, nor the catalogues of others."""
    other = make_tenant("b")
    accounts.save_account(
        workspace_id=other.workspace.pk,
        draft=AccountDraft(base_url=provider.origin, api_key=KEY),
        actor=other.actor("admin"),
    )
    slack = install(tenant, "Slack")
    mine = KlavisAccount.objects.for_workspace(tenant.workspace)
    mine.update(api_key=Secret(sealed="v1.gone.AAAA"), catalogue_read_at=None)
    assert poll_now(slack).state == "waiting_for_sign_in"
    slack.oauth_urls = Secret(sealed="v1.gone.AAAA")
    slack.next_poll_at = timezone.now()
    assert instance_card(slack, actor=tenant.actor("admin")).windows == ()
    reconciling.check(installed.workspace_id, installed.pk)
    monkeypatch.setattr(
        "mcp_servers.klavis.tasks.read_klavis_catalogue.apply_async",
        lambda arguments, **_: read_klavis_catalogue(*arguments),
    )
    read_klavis_catalogues()
    assert mine.get().catalogue_read_at is None
    assert KlavisAccount.objects.for_workspace(other.workspace).get().catalogue
