"""New tokens for old: once for each, whoever needs one, and never in a circle."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError, transaction
from django.utils import timezone

from audit.actions import Action, Outcome
from audit.models import AuditEntry
from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import ConnectionFailed
from mcp_servers.gate import call_tool, recording
from mcp_servers.models import McpServer, OAuthGrant
from mcp_servers.oauth import renewing
from mcp_servers.oauth.grants import Holder
from mcp_servers.oauth.renewing import AccessToken, NoToken
from mcp_servers.registry.specs import connection_spec
from tests.factories import Tenant
from tests.fakes.protected_server import ProtectedServer
from tests.locks import until_somebody_waits
from tests.mcp_servers.factories import a_request, tool_of
from tests.mcp_servers.oauth.conftest import SignIn
from tests.patience import PATIENCE
from tests.threads import Threads


def holder_of(grant: OAuthGrant) -> Holder:
    """Whose it is."""
    return Holder(workspace_id=grant.workspace_id, server_id=grant.server_id, user_id=grant.user_id)


def only_grant() -> OAuthGrant:
    """The one that there is, as it stands now."""
    grant: OAuthGrant = OAuthGrant.objects.across_workspaces().select_related("server").get()
    return grant


def run_out(**fields: Any) -> None:
    """Let the stored access token be over by the clock."""
    OAuthGrant.objects.across_workspaces().update(
        expires_at=timezone.now() - timedelta(seconds=1), **fields
    )


@pytest.mark.both_engines
def test_many_calls_at_its_end_make_one_renewal(
    tenant: Tenant,
    server: McpServer,
    protected: ProtectedServer,
    sign_in: SignIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SEC-52: 50 calls with a token that has run out, of an issuer whose refresh tokens serve once: 1 refresh, 50 results."""
    # Fifty entries at once wait for one another on a slow machine, which is not what this is about.
    monkeypatch.setattr(recording, "COMMIT_SECONDS", 300.0)
    server.connection_config = {"max_concurrent_calls": 50, "max_queued_calls": 100}
    server.save()
    sign_in(server)
    protected.issuer.accounts.expire_access_tokens()
    run_out()
    tool = tool_of(server, "whoami")
    requests = [a_request(tenant, tool, approval_id=None) for _ in range(50)]
    tool.approval_override = "auto"
    tool.save()

    async def run() -> list[Any]:
        return await asyncio.gather(*(call_tool(request) for request in requests))

    outcomes = async_to_sync(run)()
    assert {outcome.outcome for outcome in outcomes} == {Outcome.OK}
    assert len(protected.issuer.token_requests("refresh_token")) == 1
    assert protected.issuer.accounts.reused == []
    [form] = protected.issuer.token_requests("refresh_token")
    assert form["resource"] == protected.url
    assert only_grant().generation == 3


def test_a_token_that_the_server_refuses_is_renewed_once(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """REL-200: once more after a 401, with a new token, and with an entry of its own in the log."""
    sign_in(server)
    protected.issuer.accounts.expire_access_tokens()
    tool = tool_of(server, "whoami")
    tool.approval_override = "auto"
    tool.save()
    outcome = async_to_sync(call_tool)(a_request(tenant, tool))
    assert outcome.outcome is Outcome.OK
    assert len(protected.issuer.token_requests("refresh_token")) == 1
    entries = AuditEntry.objects.for_workspace(tenant.workspace).order_by("pk")
    requested = entries.filter(action=Action.TOOL_CALL_REQUESTED)
    assert [row.details.get("sent_again_after") for row in requested] == [None, "auth_required"]
    assert entries.filter(action=Action.TOOL_CALL_FINISHED).count() == 1


def test_a_refused_renewal_is_tried_once_and_ends_the_grant(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-52: invalid_grant: one try, tokens gone, auth_required from then on, and no loop."""
    sign_in(server)
    protected.issuer.accounts.forget_refresh_tokens()
    protected.issuer.accounts.expire_access_tokens()
    run_out()
    tool = tool_of(server, "whoami")
    tool.approval_override = "auto"
    tool.save()
    for _ in range(2):
        outcome = async_to_sync(call_tool)(a_request(tenant, tool))
        assert outcome.details["kind"] == "auth_required"
    assert len(protected.issuer.token_requests("refresh_token")) == 1
    grant = only_grant()
    assert grant.tokens is None
    assert grant.lost_reason
    lost = AuditEntry.objects.for_workspace(tenant.workspace).filter(action=Action.GRANT_LOST)
    assert lost.count() == 1
    assert protected.calls == []


def test_a_renewal_finds_that_a_registration_was_forgotten(
    server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """REL-2427: whoever signs in next is known under a new one."""
    sign_in(server)
    protected.issuer.accounts.clients.clear()
    run_out()
    grant = only_grant()
    assert async_to_sync(runtime.run)(renewing.renew(holder_of(grant), grant.generation)) is (
        NoToken.SIGN_IN
    )
    sign_in(server)
    assert len(protected.issuer.at("register")) == 2


def test_an_issuer_with_a_fault_of_its_own_takes_nothing_away(
    server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """A 500 from the token endpoint leaves the grant as it is; the next try may do better."""
    grant = sign_in(server).grant
    protected.issuer.fail("token", status=500, times=1)
    run_out()
    outcome = runtime.run_sync(renewing.current_token(holder_of(grant)), 60)
    assert outcome is NoToken.FOR_NOW
    token = runtime.run_sync(renewing.current_token(holder_of(grant)), 60)
    assert isinstance(token, AccessToken)
    assert token.generation == grant.generation + 1


@pytest.mark.both_engines
def test_a_renewal_left_behind_by_a_dead_process_is_taken_over(
    server: McpServer, sign_in: SignIn
) -> None:
    """The mark on the row runs out by itself."""
    grant = sign_in(server).grant
    run_out(refreshing_until=timezone.now() - timedelta(seconds=1))
    token = runtime.run_sync(renewing.current_token(holder_of(grant)), 60)
    assert isinstance(token, AccessToken)
    assert only_grant().refreshing_until is None


@pytest.mark.both_engines
def test_whoever_waits_is_given_what_another_process_fetched(
    server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-52: while the mark of another process stands, nothing is sent to the issuer."""
    grant = sign_in(server).grant
    run_out(refreshing_until=timezone.now() + timedelta(seconds=60))
    waiting = runtime.current().submit(renewing.current_token(holder_of(grant)))
    row = only_grant()
    row.tokens = {"access_token": "fetched-elsewhere", "refresh_token": "next"}
    row.generation += 1
    row.expires_at = timezone.now() + timedelta(hours=1)
    row.save()
    token = waiting.result(PATIENCE)
    assert isinstance(token, AccessToken)
    assert token.value == "fetched-elsewhere"
    assert protected.issuer.token_requests("refresh_token") == []


@pytest.mark.both_engines
def test_a_token_near_its_end_is_renewed_while_it_still_serves(
    server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """Ahead of expiry: nobody waits for the new one."""
    grant = sign_in(server).grant
    OAuthGrant.objects.across_workspaces().update(
        granted_at=timezone.now() - timedelta(minutes=59),
        expires_at=timezone.now() + timedelta(seconds=30),
    )

    async def run() -> tuple[int, int]:
        first = await renewing.current_token(holder_of(grant))
        assert isinstance(first, AccessToken)
        later = await renewing.renew(holder_of(grant), first.generation)
        assert isinstance(later, AccessToken)
        return first.generation, later.generation

    with protected.issuer.held("token") as held:
        future = runtime.current().submit(run())
        assert held.arrived.wait(PATIENCE)
        held.release()
        assert future.result(PATIENCE) == (grant.generation, grant.generation + 1)
    assert len(protected.issuer.token_requests("refresh_token")) == 1


@pytest.mark.both_engines
def test_the_task_renews_what_is_in_use_and_soon_over(
    server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """Accounts that nobody has used for long are left alone."""
    sign_in(server)
    soon = timezone.now() + timedelta(seconds=20)
    rows = OAuthGrant.objects.across_workspaces()
    rows.update(expires_at=soon, last_used_at=timezone.now() - timedelta(days=30))
    assert renewing.renew_ageing() == 0
    rows.update(last_used_at=timezone.now())
    assert renewing.renew_ageing() == 1
    assert len(protected.issuer.token_requests("refresh_token")) == 1


@pytest.mark.parametrize("gives", [True, False])
def test_without_a_refresh_token_a_person_signs_in_again(
    server: McpServer, protected: ProtectedServer, sign_in: SignIn, gives: bool
) -> None:
    """A grant that cannot be renewed is lost with its access token, and one that can is not."""
    protected.issuer.accounts.gives_refresh_tokens = gives
    grant = sign_in(server).grant
    token = runtime.run_sync(renewing.renew(holder_of(grant), grant.generation), 60)
    assert isinstance(token, AccessToken) is gives
    assert bool(only_grant().lost_reason) is not gives


@pytest.mark.parametrize(
    ("status", "error"), [(403, ""), (404, ""), (429, ""), (400, "temporarily_unavailable")]
)
def test_what_is_not_the_issuers_refusal_ends_no_grant(
    server: McpServer, protected: ProtectedServer, sign_in: SignIn, status: int, error: str
) -> None:
    """A proxy's page or an overload is no word of the issuer's; RFC 6749, section 5.2."""
    grant = sign_in(server).grant
    protected.issuer.fail("token", status=status, error=error, times=1)
    run_out()
    outcome = runtime.run_sync(renewing.current_token(holder_of(grant)), 60)
    assert outcome is NoToken.FOR_NOW
    assert only_grant().tokens is not None


def test_a_refusal_that_comes_as_a_success_ends_the_grant(
    server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """Some issuers say {"error": …} with status 200."""
    grant = sign_in(server).grant
    protected.issuer.fail("token", status=200, error="bad_refresh_token", times=1)
    run_out()
    outcome = runtime.run_sync(renewing.current_token(holder_of(grant)), 60)
    assert outcome is NoToken.SIGN_IN
    assert only_grant().tokens is None


@pytest.mark.both_engines
def test_a_sign_in_meanwhile_outlives_the_end_of_the_old_token(
    server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """A late refusal is about the token it was asked with, and takes no newer one along."""
    grant = sign_in(server).grant
    protected.issuer.fail("token", error="invalid_grant", times=1)
    with protected.issuer.held("token") as held:
        waiting = runtime.current().submit(renewing.renew(holder_of(grant), grant.generation))
        assert held.arrived.wait(PATIENCE)
        row = only_grant()
        row.tokens = {"access_token": "newly-granted"}
        row.generation += 1
        row.save()
        held.release()
        found = waiting.result(PATIENCE)
    assert only_grant().tokens is not None
    assert isinstance(found, renewing.AccessToken)
    assert found.value == "newly-granted"


@pytest.mark.postgresql
def test_a_sign_in_waits_for_a_renewal_that_is_being_stored(
    server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """REL-1392: each token has a number of its own, so that no late renewal takes the place of a new sign-in."""
    grant = sign_in(server).grant
    with Threads(1) as threads:
        with transaction.atomic():
            row = renewing._locked(holder_of(grant), grant.generation)
            assert row is not None
            signing = threads.submit(sign_in, server)
            until_somebody_waits()
            row.generation += 1
            row.save(update_fields=["generation"])
        signing.result(PATIENCE)
    assert only_grant().generation == grant.generation + 2


def test_a_renewal_that_began_late_is_not_cut_off(
    server: McpServer,
    protected: ProtectedServer,
    sign_in: SignIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """REL-1392: however long its process waited for another one before: the issuer may have voided the old token."""
    grant = sign_in(server).grant
    wait = 3.0  # a busy machine takes a while to begin
    monkeypatch.setattr(renewing, "WAIT_SECONDS", wait)
    with protected.issuer.held("token") as held:
        waiting = runtime.current().submit(renewing.renew(holder_of(grant), grant.generation))
        assert held.arrived.wait(PATIENCE)
        with pytest.raises(TimeoutError):
            waiting.result(wait + 0.3)
        held.release()
        assert isinstance(waiting.result(PATIENCE), renewing.AccessToken)
    assert only_grant().generation == grant.generation + 1


@pytest.mark.both_engines
@pytest.mark.parametrize("is_stored", [False, True])
def test_a_new_token_outlives_a_database_that_is_away_for_a_moment(
    server: McpServer,
    protected: ProtectedServer,
    sign_in: SignIn,
    monkeypatch: pytest.MonkeyPatch,
    is_stored: bool,
) -> None:
    """REL-1392: the issuer gives it once, and voids the old one; also where the commit succeeded unseen."""
    grant = sign_in(server).grant
    store, tried = renewing._store, []

    def fails_first(*args: Any) -> Any:
        tried.append(args)
        if len(tried) > 2:
            return store(*args)
        if is_stored and len(tried) == 1:
            store(*args)
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(renewing, "_store", fails_first)
    monkeypatch.setattr(renewing, "_STORE_PAUSE", 0.01)
    found = runtime.run_sync(renewing.renew(holder_of(grant), grant.generation), PATIENCE)
    assert isinstance(found, renewing.AccessToken)
    row = only_grant()
    assert (len(tried), row.generation, row.refreshing_until) == (3, grant.generation + 1, None)
    assert row.tokens is not None
    assert row.tokens.reveal_json("a test")["access_token"] == found.value
    again = runtime.run_sync(renewing.renew(holder_of(grant), row.generation), PATIENCE)
    assert isinstance(again, renewing.AccessToken)
    assert protected.issuer.accounts.reused == []


@pytest.mark.parametrize("how", ["no grant", "no answer"])
def test_without_a_token_nothing_is_sent(
    tenant: Tenant,
    server: McpServer,
    protected: ProtectedServer,
    sign_in: SignIn,
    how: str,
) -> None:
    """SEC-54: a server that lets strangers in is not called as one, when the account ended or cannot be renewed now."""
    grant = sign_in(server).grant
    tool = tool_of(server, "whoami")
    tool.approval_override = "auto"
    tool.save()
    assert async_to_sync(call_tool)(a_request(tenant, tool)).outcome is Outcome.OK
    spec = connection_spec(server, user_id=tenant.member.pk)
    before = len(protected.requests)
    if how == "no grant":
        OAuthGrant.objects.across_workspaces().filter(pk=grant.pk).delete()
    else:
        run_out()
        protected.issuer.fail("token", status=503)
    with pytest.raises(ConnectionFailed):
        runtime.run_sync(pool.ping(spec, at_once=True), 60)
    assert len(protected.requests) == before
