"""Installing hosted services, against the provider's double."""

from __future__ import annotations

import pytest

from audit.models import AuditEntry
from mcp_servers.klavis import accounts, installing, instance_changes
from mcp_servers.klavis.accounts import AccountDraft
from mcp_servers.klavis.asking import NotSetUp, external_id
from mcp_servers.klavis.models import KlavisAccount
from mcp_servers.models import McpServer, McpTool
from mcp_servers.registry import services
from mcp_servers.registry.specs import target_label
from tests.factories import Tenant
from tests.fakes.klavis import KEY, FakeKlavis
from tests.mcp_servers.klavis.conftest import install, poll_now, remove_all
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.models import Membership


def test_install_sign_in_ready(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """Ours: made, waited for, then a server with its tools."""
    instance = install(tenant, "gmail")
    assert instance.state == "waiting_for_sign_in"
    assert instance.server is None
    assert list(instance.oauth_urls.reveal_json("test")) == ["Gmail"]
    assert poll_now(instance).state == "waiting_for_sign_in"
    provider.only().is_signed_in = True
    instance = poll_now(instance)
    assert instance.state == "ready"
    assert instance.oauth_urls is None
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert (server.name, server.hosted_by, server.url, server.state.status) == (
        "Gmail",
        "klavis",
        "",
        "connected",
    )
    assert target_label(server) == "Klavis: Gmail"
    tools = McpTool.objects.for_workspace(tenant.workspace)
    assert "search" in tools.callable().values_list("name", flat=True)
    provider.mcp.add_tool(lambda: "", name="added_later", description="New.")
    services.check_server(server=server)
    assert "added_later" in tools.values_list("name", flat=True)
    assert "added_later" not in tools.callable().values_list("name", flat=True)


def test_who_no_longer_manages_servers_accepts_nothing(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """Ours: who began an installation counts with today's role when it is finished."""
    instance = install(tenant, "Gmail")
    rows = Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.admin)
    rows.update(role="member")
    provider.only().is_signed_in = True
    assert poll_now(instance).state == "ready"
    tools = McpTool.objects.for_workspace(tenant.workspace)
    assert tools.exists()
    assert not tools.callable().exists()


def test_what_needs_no_sign_in_is_ready_at_once(tenant: Tenant, account: KlavisAccount) -> None:
    """Ours."""
    assert install(tenant, "Weather").state == "ready"


def test_people_are_named_by_nothing_that_says_who(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """SEC-117: an opaque id per workspace and person, the same each time."""
    tenant.allow_personal_servers()
    install(tenant, "Weather")
    install(tenant, "Weather", "member", for_workspace=False)
    sent = [one.body["userId"] for one in provider.requests if one.path.endswith("/create")]
    assert len(set(sent)) == 2
    assert sent[0] == external_id(account, None)
    assert sent[1] == external_id(account, tenant.member.pk)
    for one in sent:
        assert str(tenant.member.pk) not in one
        assert "@" not in one
    other = KlavisAccount(workspace_id=tenant.member.pk, user_key="other")
    assert external_id(other, None) not in sent


def test_who_may_install(tenant: Tenant, account: KlavisAccount) -> None:
    """Ours: administrators the workspace's; members their own, where that is allowed."""
    with pytest.raises(PermissionDenied):
        install(tenant, "Gmail", "member")
    with pytest.raises(PermissionDenied):
        install(tenant, "Gmail", "member", for_workspace=False)
    tenant.allow_personal_servers()
    mine = install(tenant, "Weather", "member", for_workspace=False)
    server = mine.server or McpServer.objects.for_workspace(tenant.workspace).get()
    assert server.owner_id == tenant.member.pk
    assert server.scope == "personal"
    with pytest.raises(InvalidInput):
        install(tenant, "Nobody offers this")


def test_twice_is_once(tenant: Tenant, account: KlavisAccount, provider: FakeKlavis) -> None:
    """Ours: one that is waited for goes on, one that is ready stays."""
    first = install(tenant, "Gmail")
    assert install(tenant, "Gmail").pk == first.pk
    assert len(provider.instances) == 1
    install(tenant, "Weather")
    with pytest.raises(Conflict):
        install(tenant, "Weather")


def test_without_an_account_it_says_so(tenant: Tenant) -> None:
    """Ours."""
    with pytest.raises(NotSetUp):
        install(tenant, "Gmail")


@pytest.mark.parametrize("status", [401, 404, 422, 500])
def test_a_failure_stands_on_the_card_and_can_be_tried_again(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis, status: int
) -> None:
    """Ours: in plain words."""
    provider.fail("POST", "/mcp-server/instance/create", status=status, times=3)
    instance = install(tenant, "Weather")
    assert instance.state == "failed"
    assert "Klavis" in instance.reason
    provider.faults.clear()
    again = installing.begin_again(instance=instance, actor=tenant.actor("admin"))
    assert again.state == "ready"


def test_several_behind_one_server(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """Ours: usable at once, each service with its own sign-in."""
    instance = installing.install(
        workspace=tenant.workspace,
        server_name="",
        services=["gmail", "Slack"],
        actor=tenant.actor("admin"),
        for_workspace=True,
    )
    assert instance.state == "ready"
    assert instance.services == ["Gmail", "Slack"]
    assert set(instance.oauth_urls.reveal_json("test")) == {"Gmail", "Slack"}
    (bundle,) = provider.bundles.values()
    provider.fail("GET", "/mcp-server/strata/", status=403)
    poll_now(instance)
    instance.refresh_from_db()
    assert instance.state == "ready"
    bundle.signed_in = {"Gmail"}
    poll_now(instance)
    instance.refresh_from_db()
    assert set(instance.oauth_urls.reveal_json("test")) == {"Slack"}
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="grant.given")
    assert [entry.details["services"] for entry in entries] == [["Gmail"]]
    changed = instance_changes.change_services(
        instance=instance, services=["Slack", "Weather"], actor=tenant.actor("admin")
    )
    assert changed.services == ["Slack", "Weather"]
    assert bundle.servers == ["Slack", "Weather"]
    installing.uninstall(instance=changed, actor=tenant.actor("admin"))
    remove_all(tenant)
    assert bundle.servers == []


def test_older_deployments_work_too(tenant: Tenant, at_once: None) -> None:
    """Ours: found out by itself, remembered, and used to the end."""
    older = FakeKlavis("older")
    try:
        accounts.save_account(
            workspace_id=tenant.workspace.pk,
            draft=AccountDraft(base_url=older.origin, api_key=KEY),
            actor=tenant.actor("admin"),
        )
        actor = tenant.actor("admin")
        assert accounts.try_account(workspace_id=tenant.workspace.pk, actor=actor).ok
        account = KlavisAccount.objects.for_workspace(tenant.workspace).get()
        assert account.found_dialect == "older"
        instance = install(tenant, "Gmail")
        older.only().is_signed_in = True
        assert poll_now(instance).state == "ready"
        installing.uninstall(instance=poll_now(instance), actor=actor)
        remove_all(tenant)
        assert not older.instances
    finally:
        older.stop()
