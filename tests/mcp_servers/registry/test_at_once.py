"""What administrators decide about tools while the server is being looked at, or goes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from django.db import transaction

from mcp_servers.models import (
    McpServer,
    McpTool,
    OAuthClient,
    OAuthGrant,
    StdioProgram,
    version_pins,
)
from mcp_servers.models.oauth import ClientKind
from mcp_servers.registry import discovery
from mcp_servers.registry.discovery import tools as looks
from mcp_servers.registry.discovery.warnings import warnings_of
from mcp_servers.registry.services import delete_server
from mcp_servers.registry.services.programs import check_programs
from mcp_servers.registry.services.tools import accept_definition
from tests.factories import Tenant
from tests.locks import until_somebody_waits
from tests.patience import PATIENCE
from tests.threads import Threads
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.errors import NotFound
from workspaces.holding import hold

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def a_tool(name: str = "read", description: str = "Reads a note.") -> dict[str, Any]:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    return {"name": name, "description": description, "inputSchema": schema}


@pytest.fixture
def server(tenant: Tenant) -> McpServer:
    row: McpServer = McpServer.objects.create(
        workspace=tenant.workspace, name="notes", url="https://mcp.example.org/"
    )
    return row


def look(server: McpServer, *given: dict[str, Any]) -> None:
    """As the platform looks by itself: what is new or changed rests."""
    actor = Actor.system(label="look", source=Source.TASK, workspace_id=server.workspace_id)
    discovery.store_tools(server=server, raw_tools=given, actor=actor)


def tool(server: McpServer, name: str = "read") -> McpTool:
    rows = McpTool.objects.for_workspace(server.workspace_id).select_related("server")
    found: McpTool = rows.get(server=server, name=name)
    return found


def amid_a_look(
    monkeypatch: pytest.MonkeyPatch, server: McpServer, work: Callable[[], object], *then: Any
) -> BaseException | None:
    """Do some work on another connection while a look has read the rows, and not written them."""
    begun: list[Future[Any]] = []
    with Threads(1) as threads:

        def begin(*given: Any) -> Any:
            if not begun:
                begun.append(threads.submit(work))
                until_somebody_waits(unless=begun[0])
            return warnings_of(*given)

        monkeypatch.setattr(looks, "warnings_of", begin)
        look(server, *then)
        return begun[0].exception(PATIENCE)


def test_what_is_accepted_during_a_look_stays_accepted(
    tenant: Tenant, server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1550: the look writes what the server says, and not what was decided before."""
    look(server, a_tool(), a_tool("other"))
    row = tool(server)
    assert row.is_quarantined

    def accept() -> None:
        accept_definition(tool=row, actor=tenant.actor(), seen_hash=row.definition_hash)

    McpTool.unscoped.filter(pk=row.pk).update(last_seen_at=row.last_seen_at.replace(year=2020))
    assert amid_a_look(monkeypatch, server, accept, a_tool(), a_tool("other")) is None
    assert not tool(server).is_quarantined


def test_a_server_that_is_deleted_during_a_look_goes(
    tenant: Tenant, server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1550: neither waits for the other for ever."""
    look(server, a_tool())
    stored = McpServer.objects.for_workspace(server.workspace_id).get(pk=server.pk)
    outcomes = amid_a_look(
        monkeypatch,
        server,
        lambda: delete_server(server=stored, actor=tenant.actor()),
        a_tool(description="Reads a note, or two."),
    )
    assert outcomes is None
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()


def a_grant(server: McpServer) -> OAuthGrant:
    issuer = "https://issuer.example.org"
    client = OAuthClient.objects.create(
        workspace_id=server.workspace_id,
        server=server,
        issuer=issuer,
        kind=ClientKind.REGISTERED,
        client_id="trellis",
        resource=server.url,
        metadata={
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "response_types_supported": ["code"],
        },
    )
    row: OAuthGrant = OAuthGrant.objects.create(
        workspace_id=server.workspace_id,
        server=server,
        client=client,
        issuer=issuer,
        granted_at=database_now(),
    )
    return row


def test_a_server_is_deleted_while_somebody_signs_in_to_it(
    tenant: Tenant, server: McpServer
) -> None:
    """REL-1550: a sign-in holds the server and then its grant, and so does the deletion. Neither waits for ever."""
    grant = a_grant(server)
    stored = McpServer.objects.for_workspace(server.workspace_id).get(pk=server.pk)
    with Threads(1) as threads:
        with transaction.atomic():
            hold(server)
            other = threads.submit(lambda: delete_server(server=stored, actor=tenant.actor()))
            until_somebody_waits(unless=other)
            hold(grant)
        assert other.exception(PATIENCE) is None
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()


def test_a_server_is_deleted_once(tenant: Tenant, server: McpServer) -> None:
    """REL-1550: whoever deletes it in another tab reads that it is gone, and the log has it once."""
    late = McpServer.objects.for_workspace(server.workspace_id).get(pk=server.pk)
    delete_server(server=server, actor=tenant.actor())
    with pytest.raises(NotFound):
        delete_server(server=late, actor=tenant.actor())


def test_a_program_that_its_owner_accepts_while_it_is_looked_at_stays_on_offer(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1550: reading a program's files takes a while."""
    program = StdioProgram.objects.create(
        slug="notes", title="Notes", command="python", file_hash="what it was"
    )
    read = version_pins.program_hash
    rows = StdioProgram.objects.filter(pk=program.pk)

    def accept_meanwhile(*given: Any) -> str:
        now = read(*given)
        rows.update(file_hash=now, updated_at=database_now())
        return now

    with monkeypatch.context() as patch:
        patch.setattr(version_pins, "program_hash", accept_meanwhile)
        assert check_programs() == []
    assert rows.get().is_enabled
    rows.update(file_hash="what it was")
    assert [one.pk for one in check_programs()] == [program.pk]
