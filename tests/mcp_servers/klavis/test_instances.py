"""Installing hosted services, signing in, looking after them and removing them, against the provider's double."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from audit.models import AuditEntry
from mcp_servers.klavis import accounts, instances, polling, reconciling, removals
from mcp_servers.klavis.accounts import AccountDraft
from mcp_servers.klavis.asking import NotSetUp, external_id
from mcp_servers.klavis.cards import instance_card
from mcp_servers.klavis.errors import KlavisError
from mcp_servers.klavis.models import KlavisAccount, KlavisInstance, KlavisRemoval
from mcp_servers.klavis.tasks import keep_klavis, read_klavis_catalogue, read_klavis_catalogues
from mcp_servers.models import McpServer, McpTool
from mcp_servers.registry import services
from tests.factories import Tenant, make_tenant
from tests.fakes.klavis import KEY, FakeKlavis
from tests.mcp_servers.klavis.conftest import install, make_due, pending, poll_now
from tests.patience import PATIENCE, wait_until
from tests.threads import Threads
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.models import Membership
from workspaces.people.services import remove_member
from workspaces.secrets import Secret


def allow_personal(tenant: Tenant) -> None:
    tenant.workspace.allows_personal_servers = True
    tenant.workspace.save()


def remove_all(tenant: Tenant) -> None:
    make_due(tenant)
    for workspace_id, removal_id in removals.due_removals():
        removals.try_removal(workspace_id, removal_id)


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
    assert server.target_label == "Klavis: Gmail"
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


def test_an_answer_of_the_time_before_counts_no_more(
    tenant: Tenant,
    account: KlavisAccount,
    provider: FakeKlavis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: begun anew, or uninstalled, while the provider answered."""
    instance = install(tenant, "Gmail")
    actor = tenant.actor("admin")
    make_ready = instances.make_ready

    def too_late(seen: KlavisInstance, **more: Any) -> KlavisInstance:
        instances.begin_again(instance=instance, actor=actor)
        return make_ready(seen, **more)

    monkeypatch.setattr(polling, "make_ready", too_late)
    provider.only().is_signed_in = True
    found = poll_now(instance)
    assert found.state == "waiting_for_sign_in"
    assert found.oauth_urls is not None

    def gone(seen: KlavisInstance, **more: Any) -> KlavisInstance:
        instances.uninstall(instance=seen, actor=actor)
        return make_ready(seen, **more)

    monkeypatch.setattr(polling, "make_ready", gone)
    provider.only().is_signed_in = True
    poll_now(instance)
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()


def test_what_needs_no_sign_in_is_ready_at_once(tenant: Tenant, account: KlavisAccount) -> None:
    """Ours."""
    assert install(tenant, "Weather").state == "ready"


def test_people_are_named_by_nothing_that_says_who(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """SEC-117: an opaque id per workspace and person, the same each time."""
    allow_personal(tenant)
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
    allow_personal(tenant)
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
    again = instances.begin_again(instance=instance, actor=tenant.actor("admin"))
    assert again.state == "ready"


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
    allow_personal(tenant)
    own = install(tenant, "Gmail", "member", for_workspace=False)
    shared = install(tenant, "Slack", "admin")
    provider.requests.clear()
    KlavisInstance.objects.for_workspace(tenant.workspace).update(next_poll_at=timezone.now())
    for instance, role in ((own, "admin"), (own, "owner"), (shared, "member")):
        with pytest.raises(PermissionDenied):
            polling.poll_for(instance=instance, actor=tenant.actor(role))
        with pytest.raises(PermissionDenied):
            instances.begin_again(instance=instance, actor=tenant.actor(role))
        with pytest.raises(PermissionDenied):
            instances.set_credential(instance=instance, secret="x", actor=tenant.actor(role))
    assert not provider.requests
    assert polling.poll_for(instance=own, actor=tenant.actor("member")).pk == own.pk


def test_a_service_that_takes_a_key(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """Ours: it goes to the provider and is kept nowhere here."""
    instance = install(tenant, "Slack")
    ready = instances.set_credential(
        instance=instance, secret=" xoxb-key ", actor=tenant.actor("admin")
    )
    assert ready.state == "ready"
    assert provider.only().credential == {"api_key": "xoxb-key"}


def test_sign_in_again(tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis) -> None:
    """Ours: signed out over there, a new window here, and the same server afterwards."""
    again = instances.begin_again(instance=installed, actor=tenant.actor("admin"))
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
    again = instances.begin_again(instance=installed, actor=tenant.actor("admin"))
    anew = [*begun, ("grant.revoked", "Gmail", "signs in anew"), ("grant.requested", "Gmail", "")]
    assert log_of(tenant) == anew
    rows = KlavisInstance.objects.for_workspace(tenant.workspace)
    rows.update(poll_until=timezone.now() - timedelta(seconds=1))
    poll_now(again)
    assert log_of(tenant) == [*anew, ("grant.failed", "Gmail", "expired")]
    again = instances.begin_again(instance=installed, actor=tenant.actor("admin"))
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
        instances.set_credential(instance=slack, secret="xoxb-wrong", actor=actor)
    instances.set_credential(instance=slack, secret="xoxb-right", actor=actor)
    assert log_of(tenant) == [
        ("grant.requested", "Slack", ""),
        ("grant.requested", "Slack", "api_key"),
        ("grant.failed", "Slack", "klavis_not_accepted"),
        ("grant.requested", "Slack", "api_key"),
        ("grant.given", "Slack", "api_key"),
    ]
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    assert not any("xoxb" in str(entry.details) for entry in entries)


def test_a_deletion_that_is_given_up_is_on_record(
    tenant: Tenant, installed: KlavisInstance
) -> None:
    """SEC-117: what stays alive at the provider, and who decided so."""
    instances.uninstall(instance=installed, actor=tenant.actor("admin"))
    (removal,) = pending(tenant)
    removals.forget_removal(removal=removal, actor=tenant.actor("admin"))
    entry = AuditEntry.objects.for_workspace(tenant.workspace).order_by("id").last()
    assert entry is not None
    assert (entry.action, entry.actor_label) == ("config.changed", tenant.admin.email)
    assert entry.details["verb"] == "deleted"
    assert entry.details["name"] == "Gmail"


def test_only_reading(tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis) -> None:
    """Ours: the provider is told first, and the change is on record."""
    instances.set_read_only(instance=installed, is_read_only=True, actor=tenant.actor("admin"))
    installed.refresh_from_db()
    assert provider.only().is_read_only
    provider.fail("PATCH", "/mcp-server/instance/", status=500, times=9)
    with pytest.raises(Exception, match="Klavis"):
        instances.set_read_only(instance=installed, is_read_only=False, actor=tenant.actor("admin"))
    installed.refresh_from_db()
    assert installed.is_read_only
    changes = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    assert any("is_read_only" in str(entry.details) for entry in changes)


def test_uninstalling_deletes_here_at_once_and_there_until_it_is_done(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """SEC-117: removal deletes the remote instance, retried by the outbox after failures."""
    provider.fail("DELETE", "/mcp-server/instance/", status=500, times=3)
    instances.uninstall(instance=installed, actor=tenant.actor("admin"))
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
    instances.uninstall(instance=installed, actor=tenant.actor("admin"))
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
    instances.uninstall(instance=installed, actor=tenant.actor("admin"))
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
    make = instances._keep

    def too_late(instance: KlavisInstance, *rest: Any, **more: Any) -> KlavisInstance | None:
        instances.uninstall(instance=instance, actor=tenant.actor("admin"))
        return make(instance, *rest, **more)

    monkeypatch.setattr(instances, "_keep", too_late)
    install(tenant, "Gmail")
    assert provider.instances
    remove_all(tenant)
    assert not provider.instances


def test_a_member_who_leaves(tenant: Tenant, account: KlavisAccount, provider: FakeKlavis) -> None:
    """SEC-117: their instances go, and all that the provider keeps of them."""
    allow_personal(tenant)
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
    again = instances.begin_again(instance=installed, actor=tenant.actor("admin"))
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


def test_several_behind_one_server(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """Ours: usable at once, each service with its own sign-in."""
    instance = instances.install(
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
    changed = instances.change_services(
        instance=instance, services=["Slack", "Weather"], actor=tenant.actor("admin")
    )
    assert changed.services == ["Slack", "Weather"]
    assert bundle.servers == ["Slack", "Weather"]
    instances.uninstall(instance=changed, actor=tenant.actor("admin"))
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
        instances.uninstall(instance=poll_now(instance), actor=actor)
        remove_all(tenant)
        assert not older.instances
    finally:
        older.stop()


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
    allow_personal(tenant)
    install(tenant, "Weather", "member", for_workspace=False)
    accounts.remove_account(workspace_id=tenant.workspace.pk, actor=tenant.actor("admin"))
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()
    remove_all(tenant)
    assert not provider.instances
    assert len(provider.deleted_users) == 2
    assert not KlavisRemoval.objects.for_workspace(tenant.workspace).exists()


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
    instances.uninstall(instance=slack, actor=tenant.actor("admin"))
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


def test_a_deletion_that_cannot_be_read_keeps_nobody_from_installing(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """Ours: and those that can be read are withdrawn all the same."""
    instances.uninstall(instance=install(tenant, "Weather"), actor=tenant.actor("admin"))
    rows = KlavisRemoval.objects.for_workspace(tenant.workspace)
    rows.update(remote_id=Secret(sealed="v1.gone.AAAA"))
    instances.uninstall(instance=installed, actor=tenant.actor("admin"))
    assert install(tenant, "Gmail").state == "ready"
    assert [row.label for row in rows] == ["Weather"]


def test_a_key_that_is_gone_keeps_nobody_from_leaving(
    tenant: Tenant, installed: KlavisInstance
) -> None:
    """Ours: what cannot be decrypted any more cannot be deleted over there, and is still deleted here."""
    rows = KlavisAccount.objects.for_workspace(tenant.workspace)
    broken = "v1.gone.AAAA"
    rows.update(api_key=Secret(sealed=broken), user_key=Secret(sealed=broken))
    instances.uninstall(instance=installed, actor=tenant.actor("admin"))
    assert not KlavisInstance.objects.for_workspace(tenant.workspace).exists()
    membership = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    remove_member(membership=membership, actor=tenant.actor("owner"))
    assert not pending(tenant)


def test_two_who_change_a_server_at_one_moment_do_not_undo_each_other(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """REL-1785: the second is refused before the provider hears of it, and so is who saw what was before."""
    stale = KlavisInstance.objects.for_workspace(tenant.workspace).get(pk=installed.pk)
    let_go = threading.Event()
    held = provider.fail("PATCH", "/mcp-server/instance/", hold=let_go)
    with Threads() as threads:
        first = threads.submit(
            instances.set_read_only,
            instance=installed,
            is_read_only=True,
            actor=tenant.actor("admin"),
        )
        try:
            wait_until(lambda: not held.times)
            with pytest.raises(Conflict, match="right now"):
                instances.set_read_only(
                    instance=stale, is_read_only=False, actor=tenant.actor("owner")
                )
        finally:
            let_go.set()
        assert first.result(PATIENCE).is_read_only
    with pytest.raises(Conflict, match="in the meantime"):
        instances.set_read_only(instance=stale, is_read_only=False, actor=tenant.actor("owner"))
    assert provider.only().is_read_only
    stale.refresh_from_db()
    assert stale.is_read_only


def test_services_that_somebody_else_added_stay(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """REL-1785: also where the page is of before."""
    made = instances.install(
        workspace=tenant.workspace,
        server_name="",
        services=["Gmail"],
        actor=tenant.actor("admin"),
        for_workspace=True,
    )
    page = f"/w/{tenant.workspace.slug}/servers/klavis/{made.pk}/"
    assert 'name="seen" value="Gmail"' in tenant.client("owner").get(page).content.decode()
    instances.change_services(
        instance=made, services=["Gmail", "Slack"], actor=tenant.actor("admin")
    )
    answer = tenant.client("owner").post(
        f"{page}services/", {"seen": ["Gmail"], "services": ["Gmail", "Weather"]}, follow=True
    )
    assert "Somebody else changed this server in the meantime." in answer.content.decode()
    (bundle,) = provider.bundles.values()
    assert bundle.servers == ["Gmail", "Slack"]
