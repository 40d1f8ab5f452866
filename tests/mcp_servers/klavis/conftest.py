"""The provider's double, a workspace with an account there, and nobody who waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.utils import timezone

from mcp_servers.klavis import accounts, http, installing, polling, removals
from mcp_servers.klavis.accounts import AccountDraft
from mcp_servers.klavis.models import KlavisAccount, KlavisInstance, KlavisRemoval
from tests.factories import Tenant
from tests.fakes.klavis import KEY, FakeKlavis


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other without a pause."""
    monkeypatch.setattr(http, "FIRST_PAUSE_SECONDS", 0.0)


@pytest.fixture
def provider() -> Iterator[FakeKlavis]:
    """The provider."""
    double = FakeKlavis()
    yield double
    double.stop()


@pytest.fixture
def account(tenant: Tenant, provider: FakeKlavis, at_once: None) -> KlavisAccount:
    """The workspace's account, with the catalogue read."""
    accounts.save_account(
        workspace_id=tenant.workspace.pk,
        draft=AccountDraft(base_url=provider.origin, api_key=KEY),
        actor=tenant.actor("admin"),
    )
    report = accounts.try_account(workspace_id=tenant.workspace.pk, actor=tenant.actor("admin"))
    assert report.ok, report
    return KlavisAccount.objects.for_workspace(tenant.workspace).get()


@pytest.fixture
def installed(tenant: Tenant, account: KlavisAccount, provider: FakeKlavis) -> KlavisInstance:
    """The workspace's Gmail, signed in and ready."""
    instance = install(tenant, "Gmail")
    provider.only().is_signed_in = True
    found = poll_now(instance)
    assert found.state == "ready", found.reason
    return found


def install(
    tenant: Tenant, name: str, role: str = "admin", *, for_workspace: bool = True
) -> KlavisInstance:
    """Install a service as somebody."""
    return installing.install(
        workspace=tenant.workspace,
        server_name=name,
        actor=tenant.actor(role),
        for_workspace=for_workspace,
    )


def poll_now(instance: KlavisInstance) -> KlavisInstance:
    """Ask the provider whether somebody signed in, as if the time for it had come."""
    rows = KlavisInstance.objects.for_workspace(instance.workspace_id).filter(pk=instance.pk)
    rows.update(next_poll_at=timezone.now())
    found = polling.poll(instance.workspace_id, instance.pk)
    assert found is not None
    return found


def pending(tenant: Tenant) -> list[KlavisRemoval]:
    """Deletions that are still to be made."""
    return list(KlavisRemoval.objects.for_workspace(tenant.workspace))


def make_due(tenant: Tenant) -> None:
    """The time of every pending deletion has come."""
    KlavisRemoval.objects.for_workspace(tenant.workspace).update(next_attempt_at=timezone.now())


def remove_all(tenant: Tenant) -> None:
    """Make every pending deletion now."""
    make_due(tenant)
    for workspace_id, removal_id in removals.due_removals():
        removals.try_removal(workspace_id, removal_id)
