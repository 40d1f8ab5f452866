"""Deletions at the provider, with whatever they follow from."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from audit.models import AuditEntry
from mcp_servers.klavis import installing, making, removals
from mcp_servers.klavis.asking import external_id
from mcp_servers.klavis.models import KlavisAccount, KlavisInstance, KlavisRemoval
from mcp_servers.models import McpServer
from mcp_servers.registry import services
from tests.factories import Tenant
from tests.fakes.klavis import FakeKlavis
from tests.mcp_servers.klavis.conftest import install, pending, remove_all
from workspaces.models import Membership
from workspaces.people.services import remove_member
from workspaces.secrets import Secret


def test_a_deletion_that_is_given_up_is_on_record(
    tenant: Tenant, installed: KlavisInstance
) -> None:
    """SEC-117: what stays alive at the provider, and who decided so."""
    installing.uninstall(instance=installed, actor=tenant.actor("admin"))
    (removal,) = pending(tenant)
    removals.forget_removal(removal=removal, actor=tenant.actor("admin"))
    entry = AuditEntry.objects.for_workspace(tenant.workspace).order_by("id").last()
    assert entry is not None
    assert (entry.action, entry.actor_label) == ("config.changed", tenant.admin.email)
    assert entry.details["verb"] == "deleted"
    assert entry.details["name"] == "Gmail"


def test_uninstalling_deletes_here_at_once_and_there_until_it_is_done(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """SEC-117: removal deletes the remote instance, retried by the outbox after failures."""
    provider.fail("DELETE", "/mcp-server/instance/", status=500, times=3)
    installing.uninstall(instance=installed, actor=tenant.actor("admin"))
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()
    assert not KlavisInstance.objects.for_workspace(tenant.workspace).exists()
    (row,) = pending(tenant)
    remove_all(tenant)
    (row,) = pending(tenant)
    assert row.attempts == 1
    assert row.next_attempt_at > timezone.now()
    assert provider.instances
    remove_all(tenant)
    assert not pending(tenant)
    assert not provider.instances


def test_what_is_gone_over_there_is_done(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """SEC-117: 404 is an end too."""
    provider.instances.clear()
    installing.uninstall(instance=installed, actor=tenant.actor("admin"))
    remove_all(tenant)
    assert not pending(tenant)


def test_deleting_the_server_removes_its_instance(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """SEC-117: whichever door it is deleted by."""
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    services.delete_server(server=server, actor=tenant.actor("admin"))
    assert not KlavisInstance.objects.for_workspace(tenant.workspace).exists()
    remove_all(tenant)
    assert not provider.instances


def test_installing_again_at_once_keeps_what_comes_back(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """Ours: making is idempotent, so an old deletion must not take the new installation away."""
    installing.uninstall(instance=installed, actor=tenant.actor("admin"))
    again = install(tenant, "Gmail")
    assert again.state == "ready"
    remove_all(tenant)
    assert provider.only().server == "Gmail"


def test_uninstalled_while_it_was_made(
    tenant: Tenant,
    account: KlavisAccount,
    provider: FakeKlavis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SEC-117: what is made too late is deleted over there."""
    make = making._keep

    def too_late(instance: KlavisInstance, *rest: Any, **more: Any) -> KlavisInstance | None:
        installing.uninstall(instance=instance, actor=tenant.actor("admin"))
        return make(instance, *rest, **more)

    monkeypatch.setattr(making, "_keep", too_late)
    install(tenant, "Gmail")
    assert provider.instances
    remove_all(tenant)
    assert not provider.instances


def test_a_member_who_leaves(tenant: Tenant, account: KlavisAccount, provider: FakeKlavis) -> None:
    """SEC-117: their instances go, and all that the provider keeps of them."""
    tenant.allow_personal_servers()
    install(tenant, "Weather", "member", for_workspace=False)
    install(tenant, "Gmail", "member", for_workspace=False)
    membership = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    remove_member(membership=membership, actor=tenant.actor("owner"))
    assert not KlavisInstance.objects.for_workspace(tenant.workspace).exists()
    remove_all(tenant)
    assert not provider.instances
    assert provider.deleted_users == [external_id(account, tenant.member.pk)]


def test_a_workspace_that_goes(
    tenant: Tenant, installed: KlavisInstance, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """SEC-117: the deletions outlive it."""
    workspace_id = tenant.workspace.pk
    McpServer.objects.for_workspace(workspace_id).delete()
    KlavisInstance.objects.for_workspace(workspace_id).delete()
    KlavisAccount.objects.for_workspace(workspace_id).delete()
    assert {row.kind for row in pending(tenant)} == {"instance", "user"}
    remove_all(tenant)
    assert not provider.instances
    assert provider.deleted_users == [external_id(account, None)]


def test_a_deletion_that_cannot_be_read_keeps_nobody_from_installing(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """Ours: and those that can be read are withdrawn all the same."""
    installing.uninstall(instance=install(tenant, "Weather"), actor=tenant.actor("admin"))
    rows = KlavisRemoval.objects.for_workspace(tenant.workspace)
    rows.update(remote_id=Secret(sealed="v1.gone.AAAA"))
    installing.uninstall(instance=installed, actor=tenant.actor("admin"))
    assert install(tenant, "Gmail").state == "ready"
    assert [row.label for row in rows] == ["Weather"]


def test_a_key_that_is_gone_keeps_nobody_from_leaving(
    tenant: Tenant, installed: KlavisInstance
) -> None:
    """Ours: what cannot be decrypted any more cannot be deleted over there, and is still deleted here."""
    rows = KlavisAccount.objects.for_workspace(tenant.workspace)
    broken = "v1.gone.AAAA"
    rows.update(api_key=Secret(sealed=broken), user_key=Secret(sealed=broken))
    installing.uninstall(instance=installed, actor=tenant.actor("admin"))
    assert not KlavisInstance.objects.for_workspace(tenant.workspace).exists()
    membership = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    remove_member(membership=membership, actor=tenant.actor("owner"))
    assert not pending(tenant)
