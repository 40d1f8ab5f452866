"""Changes of an installed instance, and two people who make them at one moment."""

from __future__ import annotations

import threading

import pytest

from audit.models import AuditEntry
from mcp_servers.klavis import installing, instance_changes
from mcp_servers.klavis.models import KlavisAccount, KlavisInstance
from tests.factories import Tenant
from tests.fakes.klavis import FakeKlavis
from tests.patience import PATIENCE, wait_until
from tests.threads import Threads
from workspaces.errors import Conflict


def test_only_reading(tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis) -> None:
    """Ours: the provider is told first, and the change is on record."""
    instance_changes.set_read_only(
        instance=installed, is_read_only=True, actor=tenant.actor("admin")
    )
    installed.refresh_from_db()
    assert provider.only().is_read_only
    provider.fail("PATCH", "/mcp-server/instance/", status=500, times=9)
    with pytest.raises(Exception, match="Klavis"):
        instance_changes.set_read_only(
            instance=installed, is_read_only=False, actor=tenant.actor("admin")
        )
    installed.refresh_from_db()
    assert installed.is_read_only
    changes = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    assert any("is_read_only" in str(entry.details) for entry in changes)


def test_two_who_change_a_server_at_one_moment_do_not_undo_each_other(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """REL-1785: the second is refused before the provider hears of it, and so is who saw what was before."""
    stale = KlavisInstance.objects.for_workspace(tenant.workspace).get(pk=installed.pk)
    let_go = threading.Event()
    held = provider.fail("PATCH", "/mcp-server/instance/", hold=let_go)
    with Threads() as threads:
        first = threads.submit(
            instance_changes.set_read_only,
            instance=installed,
            is_read_only=True,
            actor=tenant.actor("admin"),
        )
        try:
            wait_until(lambda: not held.times)
            with pytest.raises(Conflict, match="right now"):
                instance_changes.set_read_only(
                    instance=stale, is_read_only=False, actor=tenant.actor("owner")
                )
        finally:
            let_go.set()
        assert first.result(PATIENCE).is_read_only
    with pytest.raises(Conflict, match="in the meantime"):
        instance_changes.set_read_only(
            instance=stale, is_read_only=False, actor=tenant.actor("owner")
        )
    assert provider.only().is_read_only
    stale.refresh_from_db()
    assert stale.is_read_only


def test_services_that_somebody_else_added_stay(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """REL-1785: also where the page is of before."""
    made = installing.install(
        workspace=tenant.workspace,
        server_name="",
        services=["Gmail"],
        actor=tenant.actor("admin"),
        for_workspace=True,
    )
    page = f"/w/{tenant.workspace.slug}/servers/klavis/{made.pk}/"
    assert 'name="seen" value="Gmail"' in tenant.client("owner").get(page).content.decode()
    instance_changes.change_services(
        instance=made, services=["Gmail", "Slack"], actor=tenant.actor("admin")
    )
    answer = tenant.client("owner").post(
        f"{page}services/", {"seen": ["Gmail"], "services": ["Gmail", "Weather"]}, follow=True
    )
    assert "Somebody else changed this server in the meantime." in answer.content.decode()
    (bundle,) = provider.bundles.values()
    assert bundle.servers == ["Gmail", "Slack"]
