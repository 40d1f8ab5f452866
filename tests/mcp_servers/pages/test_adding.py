"""Servers are added on their page: by address, as a program, from a file."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from mcp_servers.models import McpServer, StdioProgram
from mcp_servers.registry import health, tasks
from tests.factories import Tenant
from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.factories import tool_of, zoo_program
from workspaces.models import Membership

BASE = "/w/acme/servers/"


def look_first(tenant: Tenant) -> None:
    """What the task does that adding a server has handed out."""
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    tasks.look_first(str(tenant.workspace.pk), str(server.pk), str(tenant.admin.pk))


def test_adding_looks_at_the_server(page: Client, tenant: Tenant, counting: CountingServer) -> None:
    """One form, and the card has its tools."""
    body = {
        "name": "garden",
        "url": counting.url,
        "auth_type": "api_key",
        "auth_name": "X-Key",
        "auth_secret": "key-123456",
        "headers": "X-Team: garden\nX-Other: a: b",
        "protocol": "auto",
    }
    response = page.post(f"{BASE}add/", body)
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert response.status_code == 302
    assert response["Location"] == f"{BASE}#server-{server.pk}"
    look_first(tenant)
    server.refresh_from_db()
    assert server.state.status == "connected"
    seen = counting.headers[-1]
    assert (seen["x-key"], seen["x-team"], seen["x-other"]) == ("key-123456", "garden", "a: b")
    assert "key-123456" not in page.get(BASE).content.decode()


def test_nobody_waits_for_a_server_that_is_added(
    page: Client, tenant: Tenant, counting: CountingServer
) -> None:
    """REL-3295: a program may be fetched first. The card says so meanwhile, and its first look is its adder's own."""
    body = {"name": "slow", "url": counting.url, "auth_type": "none", "protocol": "auto"}
    assert page.post(f"{BASE}add/", body).status_code == 302
    assert counting.headers == []
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    card = page.get(f"{BASE}{server.pk}/").content.decode()
    assert "Connecting" in card
    assert "Its tools show here once it answers." in card
    # A check would leave its tools for somebody to accept.
    assert health.due_servers() == []
    look_first(tenant)
    assert "Connecting" not in page.get(f"{BASE}{server.pk}/").content.decode()
    assert not tool_of(server, "echo").is_quarantined


def test_whoever_may_no_longer_add_servers_accepts_no_tools(
    page: Client, tenant: Tenant, counting: CountingServer
) -> None:
    """REL-3295: the server is checked as any other."""
    body = {"name": "slow", "url": counting.url, "auth_type": "none", "protocol": "auto"}
    page.post(f"{BASE}add/", body)
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.admin).delete()
    look_first(tenant)
    assert counting.headers == []
    assert len(health.due_servers()) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"url": "ftp://example.org"}, "not a plain"),
        ({"name": ""}, "required"),
        ({"headers": "no separator"}, "one name"),
        ({"auth_type": "bearer"}, "Bearer token is not complete. Enter the token."),
        ({"auth_type": "basic"}, "Enter the user name and the password."),
        ({"url": "https://user:pw@example.org/"}, "not a plain"),
    ],
)
def test_a_bad_form_comes_back_with_words(
    page: Client, tenant: Tenant, change: dict[str, str], words: str
) -> None:
    """Bad input gets a clear message in the right place."""
    body = {
        "name": "x",
        "url": "https://example.org/",
        "auth_type": "none",
        "protocol": "auto",
        "headers": "",
        **change,
    }
    response = page.post(f"{BASE}add/", body)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert McpServer.objects.for_workspace(tenant.workspace).count() == 0


def test_trying_before_saving(page: Client, tenant: Tenant, counting: CountingServer) -> None:
    """A report, and nothing kept; failures in plain words."""
    body = {"name": "x", "url": counting.url, "auth_type": "none", "protocol": "auto"}
    good = page.post(f"{BASE}try/", body).content.decode()
    assert "Connected" in good
    assert "7 tools" in good
    bad = page.post(f"{BASE}try/", {**body, "url": "http://127.0.0.1:9999/"}).content.decode()
    assert "could not reach the server" in bad
    odd = page.post(f"{BASE}try/", {**body, "url": "nonsense"}).content.decode()
    assert "not a plain" in odd
    assert McpServer.objects.for_workspace(tenant.workspace).count() == 0


def test_a_program_is_picked_from_the_catalogue(page: Client, tenant: Tenant) -> None:
    """SEC-37: the form knows the catalogue's entries and their parameters, nothing else."""
    zoo_program()
    choice = page.get(f"{BASE}catalogue/").content.decode()
    assert "?program=zoo" in choice
    assert "catalogue-zoo-mode" not in choice
    assert "catalogue-zoo-mode" in page.get(f"{BASE}catalogue/?program=zoo").content.decode()
    body = {
        "catalogue-name": "zoo",
        "catalogue-program": "zoo",
        "catalogue-zoo-mode": "probe",
        "command": "/bin/sh",
    }
    assert page.post(f"{BASE}catalogue/", body).status_code == 302
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert (server.state.status, server.parameters) == ("connecting", {"mode": "probe"})
    look_first(tenant)
    server.refresh_from_db()
    assert server.state.status == "connected"
    response = page.post(
        f"{BASE}catalogue/", {**body, "catalogue-name": "y", "catalogue-zoo-mode": "-c"}
    )
    assert response.status_code == 422


def test_a_parameter_that_a_program_needs_is_asked_for(page: Client, tenant: Tenant) -> None:
    """REL-1608: the form marks it, and tells of it beside its field."""
    StdioProgram.objects.create(
        slug="files",
        title="Files",
        command="/usr/bin/env",
        args=["{folder}", "{level}"],
        parameters=[
            {"name": "folder", "title": "Folder", "required": True},
            {"name": "level", "title": "Level", "required": True, "default": "low"},
        ],
    )
    form = page.get(f"{BASE}catalogue/?program=files").context["form"]
    assert form.fields["files-folder"].required
    assert not form.fields["files-level"].required
    body = {"catalogue-name": "files", "catalogue-program": "files"}
    answer = page.post(f"{BASE}catalogue/", body)
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == ["files-folder"]
    assert McpServer.objects.for_workspace(tenant.workspace).count() == 0


def test_an_imported_server_is_looked_at_when_it_is_switched_on(
    page: Client, tenant: Tenant, counting: CountingServer
) -> None:
    """REL-2253: Switching an imported server on tests it as adding does, so its tools are accepted."""
    listed = json.dumps({"mcpServers": {"counting": {"type": "http", "url": counting.url}}})
    body = {"servers": listed, "intent": "apply", "use": "every_bud"}
    assert page.post(f"{BASE}import/", body).status_code == 302
    imported = McpServer.objects.for_workspace(tenant.workspace).get()
    text = page.post(f"{BASE}{imported.pk}/active/", {"is_active": "on"}).content.decode()
    assert "Connected" in text
    assert not tool_of(imported, "echo").is_quarantined


def test_an_import_leads_the_platforms_owner_to_the_program_catalogue(tenant: Tenant) -> None:
    """REL-2254: Where an import refuses a program, the platform's owner has a link to the program catalogue."""
    listed = json.dumps({"mcpServers": {"thing": {"command": "npx", "args": ["-y", "thing"]}}})
    body = {"servers": listed, "intent": "preview"}
    link = 'href="/admin/mcp_servers/stdioprogram/">Program catalogue'
    text = tenant.client("admin").post(f"{BASE}import/", body).content.decode()
    assert "is not in the program catalogue" in text
    assert link not in text
    tenant.owner.is_superuser = True
    tenant.owner.save(update_fields=["is_superuser"])
    assert link in tenant.client("owner").post(f"{BASE}import/", body).content.decode()
