"""Signing in to hosted services: windows, keys, waiting, and what the log is told."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from audit.models import AuditEntry
from mcp_servers.klavis import installing, instance_changes, instance_server, polling, reconciling
from mcp_servers.klavis.errors import KlavisError
from mcp_servers.klavis.models import KlavisAccount, KlavisInstance
from mcp_servers.models import McpServer
from tests.factories import Tenant
from tests.fakes.klavis import FakeKlavis
from tests.mcp_servers.klavis.conftest import install, poll_now
from workspaces.errors import PermissionDenied


def test_an_answer_of_the_time_before_counts_no_more(
    tenant: Tenant,
    account: KlavisAccount,
    provider: FakeKlavis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: begun anew, or uninstalled, while the provider answered."""
    instance = install(tenant, "Gmail")
    actor = tenant.actor("admin")
    make_ready = instance_server.make_ready

    def too_late(seen: KlavisInstance, **more: Any) -> KlavisInstance:
        installing.begin_again(instance=instance, actor=actor)
        return make_ready(seen, **more)

    monkeypatch.setattr(polling, "make_ready", too_late)
    provider.only().is_signed_in = True
    found = poll_now(instance)
    assert found.state == "waiting_for_sign_in"
    assert found.oauth_urls is not None

    def gone(seen: KlavisInstance, **more: Any) -> KlavisInstance:
        installing.uninstall(instance=seen, actor=actor)
        return make_ready(seen, **more)

    monkeypatch.setattr(polling, "make_ready", gone)
    provider.only().is_signed_in = True
    poll_now(instance)
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()


def test_a_window_that_is_no_web_address_is_never_opened(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """SEC-49: http and https alone."""
    for url in ("javascript:alert(1)", "intent://x", "https://a@b/", "file:///x", "https:///x"):
        provider.fail(
            "POST",
            "/mcp-server/instance/create",
            status=200,
            body=json.dumps(
                {"serverUrl": "https://x.example.org/", "instanceId": "i", "oauthUrl": url}
            ).encode(),
        )
        provider.fail("GET", "/mcp-server/instance/i", status=200, body=b'{"authNeeded": true}')
        assert install(tenant, "Gmail").oauth_urls is None


def test_waiting_ends(tenant: Tenant, account: KlavisAccount, provider: FakeKlavis) -> None:
    """Ours: after a while the provider is asked no more, and the person is told."""
    instance = install(tenant, "Gmail")
    KlavisInstance.objects.for_workspace(tenant.workspace).update(
        poll_until=timezone.now() - timedelta(seconds=1)
    )
    found = poll_now(instance)
    assert (found.state, found.reason) == ("failed", polling.EXPIRED)
    assert found.oauth_urls is None
    before = len(provider.requests)
    assert polling.poll(instance.workspace_id, instance.pk)
    assert len(provider.requests) == before


def test_the_provider_is_not_asked_before_its_time(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """Ours: however often a page asks."""
    instance = install(tenant, "Gmail")
    before = len(provider.requests)
    KlavisInstance.objects.for_workspace(tenant.workspace).update(
        next_poll_at=timezone.now() + timedelta(minutes=1)
    )
    for _ in range(5):
        polling.poll_for(instance=instance, actor=tenant.actor("admin"))
    assert len(provider.requests) == before


def test_nobody_else_hears_of_a_sign_in(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """SEC-117: a sign-in binds to who began it: others are refused, and the provider is not asked."""
    tenant.allow_personal_servers()
    own = install(tenant, "Gmail", "member", for_workspace=False)
    shared = install(tenant, "Slack", "admin")
    provider.requests.clear()
    KlavisInstance.objects.for_workspace(tenant.workspace).update(next_poll_at=timezone.now())
    for instance, role in ((own, "admin"), (own, "owner"), (shared, "member")):
        with pytest.raises(PermissionDenied):
            polling.poll_for(instance=instance, actor=tenant.actor(role))
        with pytest.raises(PermissionDenied):
            installing.begin_again(instance=instance, actor=tenant.actor(role))
        with pytest.raises(PermissionDenied):
            instance_changes.set_credential(instance=instance, secret="x", actor=tenant.actor(role))
    assert not provider.requests
    assert polling.poll_for(instance=own, actor=tenant.actor("member")).pk == own.pk


def test_a_service_that_takes_a_key(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """Ours: it goes to the provider and is kept nowhere here."""
    instance = install(tenant, "Slack")
    ready = instance_changes.set_credential(
        instance=instance, secret=" xoxb-key ", actor=tenant.actor("admin")
    )
    assert ready.state == "ready"
    assert provider.only().credential == {"api_key": "xoxb-key"}


def test_sign_in_again(tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis) -> None:
    """Ours: signed out over there, a new window here, and the same server afterwards."""
    again = installing.begin_again(instance=installed, actor=tenant.actor("admin"))
    assert again.state == "waiting_for_sign_in"
    assert again.server_id == installed.server_id
    assert not provider.only().is_signed_in
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert server.state.status == "auth_required"
    provider.only().is_signed_in = True
    assert poll_now(again).state == "ready"
    server.refresh_from_db()
    assert server.state.status == "connected"


def log_of(tenant: Tenant) -> list[tuple[str, str, str]]:
    """What became of accounts, by whom and for whom."""
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action__startswith="grant.")
    return [
        (one.action, one.server_name, str(one.details.get("reason") or one.details.get("by", "")))
        for one in entries.order_by("id")
    ]


def test_whose_account_a_service_has_is_on_record(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """Ours: connected, signed out for another one, not connected in time, and lost; and no address of any of it."""
    begun = [("grant.requested", "Gmail", ""), ("grant.given", "Gmail", "")]
    assert log_of(tenant) == begun
    again = installing.begin_again(instance=installed, actor=tenant.actor("admin"))
    anew = [*begun, ("grant.revoked", "Gmail", "signs in anew"), ("grant.requested", "Gmail", "")]
    assert log_of(tenant) == anew
    rows = KlavisInstance.objects.for_workspace(tenant.workspace)
    rows.update(poll_until=timezone.now() - timedelta(seconds=1))
    poll_now(again)
    assert log_of(tenant) == [*anew, ("grant.failed", "Gmail", "expired")]
    again = installing.begin_again(instance=installed, actor=tenant.actor("admin"))
    provider.only().is_signed_in = True
    assert poll_now(again).state == "ready"
    provider.only().is_signed_in = False
    reconciling.check(installed.workspace_id, installed.pk)
    assert log_of(tenant)[-2:] == [
        ("grant.given", "Gmail", ""),
        ("grant.lost", "Gmail", "signed out"),
    ]
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action__startswith="grant.")
    for entry in entries:
        assert entry.details["account"] == "workspace"
        assert entry.details["services"] == ["Gmail"]
        assert tenant.admin.email in (entry.actor_label, entry.on_behalf_of)
        is_noticed = entry.action in ("grant.failed", "grant.lost")
        assert (entry.actor_kind == "system") == is_noticed
        assert provider.only().secret not in str(entry.details)
        assert "://" not in str(entry.details)


def test_an_api_key_is_on_record(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """Ours: who gave one, and whether the provider took it; never the key."""
    slack = install(tenant, "Slack")
    provider.fail("POST", "/mcp-server/instance/set-auth", status=422)
    actor = tenant.actor("admin")
    with pytest.raises(KlavisError):
        instance_changes.set_credential(instance=slack, secret="xoxb-wrong", actor=actor)
    instance_changes.set_credential(instance=slack, secret="xoxb-right", actor=actor)
    assert log_of(tenant) == [
        ("grant.requested", "Slack", ""),
        ("grant.requested", "Slack", "api_key"),
        ("grant.failed", "Slack", "klavis_not_accepted"),
        ("grant.requested", "Slack", "api_key"),
        ("grant.given", "Slack", "api_key"),
    ]
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    assert not any("xoxb" in str(entry.details) for entry in entries)
