"""Parameters of programs that hold secrets: many programs take the address of a database, with its password."""

from __future__ import annotations

import json

import pytest

from audit.models import AuditEntry
from config.workspace_files import WorkspaceTarget, apply_file, write_workspace
from mcp_servers.client import transports
from mcp_servers.models import McpServer, StdioProgram
from mcp_servers.registry import services
from mcp_servers.registry.scopes import lists
from mcp_servers.registry.services import ServerDraft
from mcp_servers.registry.specs import connection_spec
from tests.factories import Tenant, make_tenant
from workspaces.errors import InvalidInput
from workspaces.redaction import redact_known
from workspaces.yaml_text import read_yaml

pytestmark = pytest.mark.django_db
PASSWORD = "hunter2-9f8e7d6c"
KEY = "9f8e7d6c5b4a3f2e1d"
DATABASE = f"postgresql://app:{PASSWORD}@db.example.org:5432/shop"


@pytest.fixture
def server(tenant: Tenant) -> McpServer:
    """A program that reads a database, as its README says to run it."""
    program = StdioProgram.objects.create(
        slug="postgres",
        title="Postgres",
        command="python",
        args=["{database}", "--key={api_key}", "--schema={schema}"],
        parameters=[
            {"name": "database", "title": "Database"},
            {"name": "api_key", "title": "Key"},
            {"name": "schema", "title": "Schema"},
        ],
    )
    draft = ServerDraft(
        name="postgres",
        transport=transports.STDIO,
        program=program,
        parameters={"database": DATABASE, "api_key": KEY, "schema": "public"},
    )
    return services.add_server(
        workspace_id=tenant.workspace.pk, draft=draft, actor=tenant.actor("admin")
    )


@pytest.mark.parametrize("path", ["/api/servers/", "/api/servers/{pk}/"])
def test_only_who_manages_servers_reads_their_parameters(
    tenant: Tenant, server: McpServer, path: str
) -> None:
    """SEC-761: over REST, as on the pages; like the query of an address."""
    address = path.format(pk=server.pk)
    for role in ("member", "auditor"):
        answer = tenant.client(role).get(address)
        assert answer.status_code == 200
        assert PASSWORD not in answer.content.decode()
        assert KEY not in answer.content.decode()
    shown = tenant.client("admin").get(address).json()
    row = shown["results"][0] if "results" in shown else shown
    assert row["parameters"]["database"] == DATABASE


def test_secrets_in_parameters_are_in_no_file(tenant: Tenant, server: McpServer) -> None:
    """SEC-762, SEC-360: not in the workspace's file, nor in a list of servers. Applied again, they stay."""
    place = WorkspaceTarget(tenant.workspace, tenant.actor("owner"))
    written = write_workspace(place)
    listed = json.dumps(
        lists.export_servers(workspace_id=tenant.workspace.pk, actor=tenant.actor("admin"))
    )
    for text in (written, listed):
        assert PASSWORD not in text
        assert KEY not in text
        assert "db.example.org" in text
    document = read_yaml(written)
    document["servers"][0]["parameters"]["schema"] = "sales"
    apply_file(place, document)
    server.refresh_from_db()
    assert server.parameters == {"database": DATABASE, "api_key": KEY, "schema": "sales"}
    # Elsewhere, and at another address, the mask says nothing of what to use.
    other = make_tenant("other")
    with pytest.raises(InvalidInput):
        apply_file(WorkspaceTarget(other.workspace, other.actor("owner")), read_yaml(written))
    document["servers"][0]["parameters"]["database"] = document["servers"][0]["parameters"][
        "database"
    ].replace("db.example.org", "evil.example.org")
    with pytest.raises(InvalidInput) as refused:
        apply_file(place, document)
    assert "servers.postgres.parameters.database" in refused.value.fields


def test_secrets_in_parameters_are_masked(tenant: Tenant, server: McpServer) -> None:
    """SEC-763: in the log, and in whatever the program says of its own address."""
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    assert PASSWORD not in json.dumps(list(entries.values("details")))
    assert KEY not in json.dumps(list(entries.values("details")))
    spec = connection_spec(server)
    masked = redact_known(f"no {PASSWORD} with {KEY} for app", workspace_id=tenant.workspace.pk)
    assert PASSWORD not in masked
    assert KEY not in masked
    assert spec.secrets is not None
