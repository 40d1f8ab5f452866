"""What somebody waits for ends with their right to it, at the server too."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import InterfaceError
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from chat.models import Bud
from mcp_servers.endpoint.sign_in.ending import end_sign_in
from mcp_servers.gate import access
from mcp_servers.models import ClientSignIn, McpPrompt, McpResource, McpTool
from tests.factories import Tenant
from tests.fakes.full_server import FullServer
from tests.mcp_servers.endpoint.client import McpClient, token_for
from tests.mcp_servers.endpoint.leaving import (
    Leaving,
    ended,
    leaving_client,
)
from tests.mcp_servers.endpoint.signing_in import SigningIn
from tests.mcp_servers.factories import looked_at
from tests.patience import PATIENCE, wait_until
from tests.workspaces.api.tokens import bearer, token_of
from workspaces.models import ApiToken, Membership, User, Workspace
from workspaces.people.tokens import revoke_token

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def watched(
    full: tuple[FullServer, str], silent: McpTool, monkeypatch: pytest.MonkeyPatch
) -> FullServer:
    """A server whose tool answers late. Access to it is looked at all the time."""
    monkeypatch.setattr(access, "CHECK_SECONDS", 0.05)
    return full[0]


def _revoke(tenant: Tenant) -> None:
    revoke_token(
        token=ApiToken.objects.for_workspace(tenant.workspace).get(), actor=tenant.actor("member")
    )


def _suspend(tenant: Tenant) -> None:
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.member).update(
        suspended_at=timezone.now()
    )


def _suspend_workspace(tenant: Tenant) -> None:
    Workspace.objects.filter(pk=tenant.workspace.pk).update(is_active=False)


def _forbid(tenant: Tenant) -> None:
    Workspace.objects.filter(pk=tenant.workspace.pk).update(allows_mcp_clients=False)


@pytest.mark.parametrize("end", [_revoke, _suspend, _suspend_workspace, _forbid])
def test_a_call_ends_with_the_access_of_its_client(
    tenant: Tenant, watched: FullServer, end: Callable[[Tenant], None]
) -> None:
    """SEC-1151: what the server would have answered reaches nobody."""
    call = leaving_client(McpClient(tenant, token_for(tenant)))
    wait_until(lambda: watched.calls)
    end(tenant)
    answer = call.answer()
    assert (answer["id"], answer["error"]["message"]) == (7, access.AccessEnded().message)
    wait_until(lambda: watched.cancelled == [60])
    assert ended(tenant) == ["cancelled"]


def test_a_look_that_fails_is_not_the_last(
    tenant: Tenant, watched: FullServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-1151: a connection that was closed meanwhile ends neither the call nor the watch over it."""
    failed = threading.Event()
    execute = CursorWrapper.execute

    def fail_once(cursor: CursorWrapper, sql: str, params: Any = None) -> Any:
        if sql.startswith("SELECT %s AS") and "allows_mcp" in sql and not failed.is_set():
            failed.set()
            raise InterfaceError("connection already closed")
        return execute(cursor, sql, params)

    call = leaving_client(McpClient(tenant, token_for(tenant)))
    wait_until(lambda: watched.calls)
    monkeypatch.setattr(CursorWrapper, "execute", fail_once)
    wait_until(failed.is_set)
    _revoke(tenant)
    assert call.answer()["error"]["message"] == access.AccessEnded().message


def test_a_call_goes_on_while_its_client_is_signed_in(tenant: Tenant, watched: FullServer) -> None:
    """SEC-1151: and it is stopped when the person signs the client out."""
    client = McpClient(tenant, SigningIn.begun(tenant).tokens()["access_token"])
    assert "result" in leaving_client(client, seconds=1).answer()
    call = leaving_client(client)
    wait_until(lambda: len(watched.calls) == 2)
    for sign_in in ClientSignIn.objects.for_workspace(tenant.workspace):
        end_sign_in(sign_in=sign_in, actor=tenant.actor("member"))
    assert call.answer()["error"]["message"] == access.AccessEnded().message
    wait_until(lambda: watched.cancelled == [60])


def _make_member(tenant: Tenant) -> None:
    rows = Membership.objects.for_workspace(tenant.workspace)
    rows.filter(user=tenant.admin).update(role="member")


def _shut_out(tenant: Tenant) -> None:
    User.objects.filter(pk=tenant.admin.pk).update(is_active=False)


def _end_tokens(tenant: Tenant) -> None:
    ApiToken.objects.for_workspace(tenant.workspace).delete()


@pytest.mark.parametrize("end", [_make_member, _shut_out, _end_tokens])
def test_a_trial_ends_with_the_right_to_try(
    tenant: Tenant, watched: FullServer, silent: McpTool, end: Callable[[Tenant], None]
) -> None:
    """SEC-1200: what the server would have answered reaches nobody."""
    headers = bearer(token_of(tenant, "servers:write", role="admin"))
    body = json.dumps({"arguments": {"seconds": 60}, "confirm": True}).encode()
    trial = Leaving(f"/api/tools/{silent.pk}/test/", headers, body)
    wait_until(lambda: watched.calls)
    end(tenant)
    detail = trial.answer()["errors"][0]
    assert (trial.status, detail["code"]) == (403, "access_ended")
    wait_until(lambda: watched.cancelled == [60])
    assert ended(tenant) == ["cancelled"]


@pytest.mark.parametrize("kind", ["resource", "prompt", "prompt of a chat"])
def test_what_somebody_reads_ends_with_their_right(
    tenant: Tenant, watched: FullServer, silent: McpTool, kind: str
) -> None:
    """SEC-1200: as a tool does that an administrator tries; of a chat's prompt, once they may not enter any more."""
    begun = threading.Event()

    async def slow() -> str:
        begun.set()
        await asyncio.sleep(60)
        return "late"

    watched.server.resource("memo://slow")(slow)
    watched.server.prompt()(slow)
    looked_at(tenant, silent.server)
    if kind == "resource":
        row = McpResource.objects.for_workspace(tenant.workspace).get(uri="memo://slow")
        path, body = f"/api/resources/{row.pk}/read_content/", b"{}"
    else:
        prompt = McpPrompt.objects.for_workspace(tenant.workspace).get(name="slow")
        path, body = f"/api/prompts/{prompt.pk}/fill/", b"{}"
    scope, end = "servers:write", _make_member
    if kind == "prompt of a chat":
        McpPrompt.objects.for_workspace(tenant.workspace).update(is_enabled=True)
        bud = Bud.objects.create(
            workspace=tenant.workspace, owner=tenant.admin, name="B", slug="b", takes_all_tools=True
        )
        path, body = (
            f"/api/buds/{bud.pk}/prompts/",
            json.dumps({"prompt_id": str(prompt.pk)}).encode(),
        )
        scope, end = "chat", _shut_out
    reading = Leaving(path, bearer(token_of(tenant, scope, role="admin")), body)
    assert begun.wait(PATIENCE)
    end(tenant)
    detail = reading.answer()["errors"][0]
    assert (reading.status, detail["code"]) == (403, "access_ended")


def test_a_trial_goes_on_while_its_administrator_may_try(
    tenant: Tenant, watched: FullServer, silent: McpTool
) -> None:
    """SEC-1200: with a token as in a browser, of a workspace's server."""
    headers = bearer(token_of(tenant, "servers:write", role="admin"))
    body = json.dumps({"arguments": {"seconds": 1}, "confirm": True}).encode()
    trial = Leaving(f"/api/tools/{silent.pk}/test/", headers, body)
    assert trial.answer()["outcome"] == "ok"
