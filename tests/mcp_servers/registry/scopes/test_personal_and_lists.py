"""People's own servers, and lists of servers in and out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core import serializers
from django.utils import timezone

from audit.models import AuditEntry
from mcp_servers.client import transports
from mcp_servers.client.connections import runtime
from mcp_servers.models import ApprovalOverride, AuthType, McpServer, SamplingPolicy, StdioProgram
from mcp_servers.registry import services
from mcp_servers.registry.demo.programs import TIME_SERVER
from mcp_servers.registry.files.file_format import MalformedServerList
from mcp_servers.registry.scopes import lists
from mcp_servers.registry.services import ServerDraft
from mcp_servers.registry.specs import connection_spec
from tests.factories import Tenant, make_tenant
from tests.mcp_servers.factories import http_server, stored_tool
from workspaces.actors import Actor, Source
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.models import Membership
from workspaces.people.services import remove_member

pytestmark = pytest.mark.django_db
SECRET = "s3cret-of-the-list"


@pytest.fixture
def open_tenant(tenant: Tenant) -> Tenant:
    """A workspace that allows servers of people's own."""
    tenant.allow_personal_servers()
    return tenant


def mine(tenant: Tenant, role: str = "member", **fields: Any) -> McpServer:
    """Somebody's own server."""
    draft = ServerDraft(
        **{
            "name": "mine",
            "transport": transports.AUTO,
            "url": "https://mine.example.org/private/mcp",
            **fields,
        }
    )
    return services.add_personal_server(
        workspace=tenant.workspace, draft=draft, actor=tenant.actor(role)
    )


def test_that_a_person_adds_a_server_only_where_the_workspace_allows_it(tenant: Tenant) -> None:
    """And the same name may be used by two people, and by the workspace."""
    with pytest.raises(PermissionDenied):
        mine(tenant)
    tenant.allow_personal_servers()
    mine(tenant)
    mine(tenant, "auditor")
    with pytest.raises(InvalidInput, match="already"):
        mine(tenant)


def test_that_a_server_of_ones_own_is_remote_and_loosens_nothing(open_tenant: Tenant) -> None:
    """No program, no trust in its hints, no tokens of the workspace, no tool that runs by itself."""
    platform = Actor.system(source=Source.COMMAND, workspace_id=None)
    program = services.ensure_program(seed=TIME_SERVER, actor=platform)
    for fields in (
        {"transport": transports.STDIO, "url": None, "program": program},
        {"trusts_annotations": True},
        {"sampling": SamplingPolicy.AUTO},
    ):
        with pytest.raises(InvalidInput):
            mine(open_tenant, **fields)
    server = mine(open_tenant)
    with pytest.raises(InvalidInput):
        services.update_server(
            server=server,
            draft=ServerDraft(transport=transports.STDIO, program=program),
            actor=open_tenant.actor("member"),
        )
    with pytest.raises(InvalidInput):
        services.set_approval_override(
            tool=stored_tool(server),
            override=ApprovalOverride.AUTO,
            actor=open_tenant.actor("member"),
        )


def test_that_nobody_else_sees_uses_or_changes_it(open_tenant: Tenant) -> None:
    """SEC-01, SEC-10: not on pages, not over REST, not by services; its connections are its owner's."""
    server = mine(open_tenant, name="canary-of-the-member")
    tool = stored_tool(server, name="canary_tool")
    assert connection_spec(server).principal == f"user:{open_tenant.member.pk}"
    base = f"/w/{open_tenant.workspace.slug}/servers/"
    for role in ("owner", "admin", "auditor"):
        client = open_tenant.client(role)
        assert "canary" not in client.get(base).content.decode()
        assert client.get(f"{base}{server.pk}/").status_code == 404
        assert client.get(f"{base}{server.pk}/settings/").status_code == 404
        assert client.get(f"{base}{server.pk}/trace/").status_code == 404
        headers = {"X-Workspace": open_tenant.workspace.slug}
        for path in ("servers", "tools", "resources", "prompts"):
            assert "canary" not in client.get(f"/api/{path}/", headers=headers).content.decode()
        for attempt in (
            lambda actor: services.test_connection(server=server, actor=actor),
            lambda actor: services.set_tool_enabled(tool=tool, is_enabled=False, actor=actor),
            lambda actor: services.update_server(
                server=server, draft=ServerDraft(name="x"), actor=actor
            ),
        ):
            with pytest.raises(PermissionDenied):
                attempt(open_tenant.actor(role))
    own = open_tenant.client("member").get(base).content.decode()
    assert "canary-of-the-member" in own


def test_that_an_administrator_switches_it_off_for_good(open_tenant: Tenant) -> None:
    """The owner cannot switch it on again; deleting it is open to both."""
    server = mine(open_tenant)
    services.set_server_active(server=server, is_active=False, actor=open_tenant.actor("admin"))
    server.refresh_from_db()
    assert (server.is_active, server.is_blocked) == (False, True)
    with pytest.raises(PermissionDenied, match="administrator"):
        services.set_server_active(server=server, is_active=True, actor=open_tenant.actor("member"))
    services.set_server_active(server=server, is_active=True, actor=open_tenant.actor("admin"))
    server.refresh_from_db()
    assert (server.is_active, server.is_blocked) == (True, False)
    services.delete_server(server=server, actor=open_tenant.actor("admin"))


def test_that_the_admin_shows_that_it_exists_and_nothing_secret(open_tenant: Tenant) -> None:
    """Name, owner, host and state; neither its path nor a form to change it."""
    server = mine(open_tenant, name="garden", headers={"X-Key": SECRET})
    page = open_tenant.client("admin").get(f"/admin/mcp_servers/mcpserver/{server.pk}/change/")
    text = page.content.decode()
    assert "garden" in text
    assert "https://mine.example.org" in text
    for hidden in ("/private/mcp", SECRET, 'name="url"', 'name="headers"'):
        assert hidden not in text


def test_that_one_person_has_a_bounded_number(
    open_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that nobody fills the platform with connections."""
    monkeypatch.setattr("mcp_servers.registry.services.servers.MAX_PERSONAL_SERVERS", 1)
    mine(open_tenant)
    with pytest.raises(Conflict):
        mine(open_tenant, name="another")


def test_that_it_goes_with_the_membership(open_tenant: Tenant) -> None:
    """Of the person who leaves, in this workspace, and nobody else's."""
    gone, stays = mine(open_tenant), mine(open_tenant, "auditor")
    membership = Membership.objects.for_workspace(open_tenant.workspace).get(
        user=open_tenant.member
    )
    remove_member(membership=membership, actor=open_tenant.actor("owner"))
    left = McpServer.objects.for_workspace(open_tenant.workspace)
    assert [server.pk for server in left] == [stays.pk]
    assert AuditEntry.unscoped.filter(details__before__name=gone.name).exists()


def listed(**servers: Any) -> str:
    """A list in the format."""
    return json.dumps({"mcpServers": servers})


def test_that_an_import_shows_what_will_happen_and_does_nothing(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-116: programs outside the catalogue are refused, secrets are named and never shown, nothing is started."""

    def no_connections() -> None:
        raise AssertionError("an import connects to nothing")

    monkeypatch.setattr(runtime, "current", no_connections)
    platform = Actor.system(source=Source.COMMAND, workspace_id=None)
    services.ensure_program(seed=TIME_SERVER, actor=platform)
    text = listed(
        weather={"url": f"https://w.example/mcp?key={SECRET}", "headers": {"X-Key": SECRET}},
        shell={"command": "npx", "args": ["-y", "thing"]},
        line={"command": "npx -y thing"},
        clock={"command": "python", "args": ["-m", "mcp_server_time", "--local-timezone=UTC"]},
        almost={"command": "python", "args": ["-m", "mcp_server_time", "-c", "evil"]},
        inside={"url": "http://user:pass@w.example/"},
        foreign={"url": "https://f.example/", "id": str(make_tenant("b").workspace.pk)},
        later={"url": "https://l.example/", "headers": {"A": "${TOKEN}"}},
    )
    planned = {
        one.name: one
        for one in lists.preview_import(
            workspace_id=tenant.workspace.pk, text=text, actor=tenant.actor()
        )
    }
    assert {name for name, one in planned.items() if one.plan == "refuse"} == {
        "shell",
        "line",
        "almost",
        "inside",
    }
    assert "“args”" in planned["line"].reason
    assert planned["weather"].secrets == ("X-Key",)
    assert (planned["later"].plan, planned["later"].placeholders) == ("ask", ("TOKEN",))
    assert SECRET not in str([one.as_json() for one in planned.values()])
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()

    added = lists.apply_import(
        workspace_id=tenant.workspace.pk,
        text=text,
        values={"TOKEN": SECRET},
        actor=tenant.actor(),
    )
    assert {row.name for row in added} == {"weather", "clock", "foreign", "later"}
    assert all(row.workspace_id == tenant.workspace.pk and not row.is_active for row in added)
    assert SECRET not in serializers.serialize("json", AuditEntry.unscoped.all())


def test_that_variables_of_a_list_are_asked_for(tenant: Tenant) -> None:
    """REL-2852: in all its parts. Their names would be sent as if they were the values."""
    text = listed(
        github={
            "url": "https://${DATABASE_URL}/${PATH:-mcp}",
            "headers": {"Authorization": "Bearer ${input:key}"},
        },
        plain={"url": "https://p.example/"},
    )
    workspace_id, actor = tenant.workspace.pk, tenant.actor()
    given = {"input:key": SECRET}
    for values, missing in (({}, "DATABASE_URL, input:key"), (given, "DATABASE_URL")):
        github, plain = lists.preview_import(
            workspace_id=workspace_id, text=text, values=values, actor=actor
        )
        assert (github.plan, plain.plan) == ("ask", "add")
        assert github.reason == f"Enter a value for {missing}."
        assert github.placeholders == ("DATABASE_URL", "PATH", "input:key")
        with pytest.raises(InvalidInput, match=f"github: .*{missing}"):
            lists.apply_import(workspace_id=workspace_id, text=text, values=values, actor=actor)
    values = {**given, "DATABASE_URL": "g.example"}
    added = lists.apply_import(workspace_id=workspace_id, text=text, values=values, actor=actor)
    row = {row.name: row for row in added}["github"]
    assert row.url == "https://g.example/mcp"
    assert row.headers is not None
    assert row.headers.reveal_json("a test") == {"Authorization": f"Bearer {SECRET}"}


def test_that_a_value_which_stands_often_makes_no_long_text(tenant: Tenant) -> None:
    """REL-2852: a kilobyte of a list could become gigabytes. What would be refused anyway is not asked for first."""
    text = listed(
        often={"url": "https://p.example/", "headers": {"X-Key": "${A}" * 2000}},
        taken={"url": "https://p.example/", "headers": {"X-Key": "${A}"}},
    )
    http_server(tenant, "https://g.example/", name="taken")
    workspace_id, actor = tenant.workspace.pk, tenant.actor()
    for values, plans in (({}, ("ask", "refuse")), ({"A": "x" * 8192}, ("refuse", "refuse"))):
        planned = lists.preview_import(
            workspace_id=workspace_id, text=text, values=values, actor=actor
        )
        assert tuple(one.plan for one in planned) == plans
    assert "8,192 characters" in planned[0].reason


def test_that_pages_show_no_value_of_a_variable(tenant: Tenant) -> None:
    """REL-2852, SEC-93: it is entered again, as in every other form."""
    text = listed(one={"url": "https://p.example/", "headers": {"X-Key": "${A}"}}, bad={"url": 1})
    page = tenant.client("admin").post(
        f"/w/{tenant.workspace.slug}/servers/import/", {"servers": text, "value-A": SECRET}
    )
    assert SECRET not in page.content.decode()
    assert "Enter this again." in page.content.decode()


def test_that_what_is_typed_into_a_form_is_no_variable(tenant: Tenant) -> None:
    """REL-2991: a password may look like one."""
    row = http_server(tenant, "https://g.example/", is_active=False)
    draft = ServerDraft(headers={"X-Key": "pass${word}"})
    row = services.update_server(server=row, draft=draft, actor=tenant.actor())
    assert services.set_server_active(server=row, is_active=True, actor=tenant.actor()).is_active


def test_that_a_placeholder_instead_of_a_value_is_pointed_out(tenant: Tenant) -> None:
    """REL-3131: for whoever manages the server, until it has listed its tools. Nothing of the value is shown."""
    row = http_server(tenant, "https://g.example/", is_active=False)
    draft = ServerDraft(
        headers={
            "X-One": "Key ${input:key_one}",
            "X-Two": "$KEY_TWO",
            "X-Plain": "pa$$word",
            "X-3": "{env:KEY_THREE}",
        },
        auth_type=AuthType.BEARER,
        auth={"token": "${KEY_FOUR:-}"},
    )
    row = services.update_server(server=row, draft=draft, actor=tenant.actor())
    address = f"/w/{tenant.workspace.slug}/servers/{row.pk}/"
    names = ["X-3", "X-One", "X-Two", "Authorization"]

    def unfilled(role: str) -> tuple[list[str], bool]:
        client = tenant.client(role)
        api = client.get(f"/api/servers/{row.pk}/", headers={"X-Workspace": tenant.workspace.slug})
        page = client.get(address).content.decode()
        assert not any(value in page for value in ("key_one", "KEY_TWO", "KEY_THREE", "KEY_FOUR"))
        return api.json()["unfilled"], f"instead of its value: {', '.join(names)}." in page

    assert (unfilled("admin"), unfilled("member")) == ((names, True), ([], False))
    row.state.write(tools_listed_at=timezone.now())
    assert unfilled("admin") == ([], False)


def test_that_a_parameter_used_twice_has_one_value(tenant: Tenant) -> None:
    """An argument of the catalogue may name a parameter twice; both places have to agree."""
    StdioProgram.objects.create(
        slug="copy",
        title="Copy",
        command="/usr/bin/copy",
        args=["--map={place}:{place}"],
        parameters=[{"name": "place", "title": "Place", "required": True}],
    )
    text = listed(
        same={"command": "/usr/bin/copy", "args": ["--map=/data:/data"]},
        other={"command": "/usr/bin/copy", "args": ["--map=/data:/etc"]},
    )
    planned = lists.preview_import(
        workspace_id=tenant.workspace.pk, text=text, actor=tenant.actor()
    )
    assert {one.name: one.plan for one in planned} == {"same": "add", "other": "refuse"}
    draft = next(one.draft for one in planned if one.draft is not None)
    assert draft.parameters == {"place": "/data"}


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": %s}',
        '{"servers": %s}',
        '{"mcp": {"servers": %s}}',
        "%s",
        '"mcpServers": %s',
    ],
)
def test_that_the_snippet_of_a_readme_runs_as_the_owner_set_it_up(
    tenant: Tenant, text: str
) -> None:
    """REL-1607, SEC-116: the owner's command and version are what runs; another package is refused."""
    for runner, package, extra in (
        ("npx", "@acme/files@1.2.3", ["{folder}"]),
        ("uvx", "acme-git==2026.1", ["--repository", "{folder}"]),
    ):
        StdioProgram.objects.create(
            slug=runner,
            title=runner,
            command=f"/usr/bin/{runner}",
            args=[*(["-y"] if runner == "npx" else []), package, *extra],
            parameters=[{"name": "folder", "title": "Folder"}],
            env_names=["API_KEY"],
        )
    servers = {
        "files": {"command": "npx", "args": ["-y", "@acme/files", "/srv"], "env": {"API_KEY": "k"}},
        "newest": {"command": "npx", "args": ["--yes", "@acme/files@latest", "/srv"]},
        "git": {"command": "uvx", "args": ["acme-git", "--repository", "/srv"]},
        "other": {"command": "npx", "args": ["-y", "@acme/file", "/srv"]},
        "older": {"command": "npx", "args": ["-y", "@acme/files@1.2.2", "/srv"]},
        "elsewhere": {"command": "/tmp/npx", "args": ["-y", "@acme/files", "/srv"]},
        "keyed": {
            "command": "uvx",
            "args": ["acme-git", "--repository", "/srv"],
            "env": {"TOKEN": "t"},
        },
    }
    planned = {
        one.name: one
        for one in lists.preview_import(
            workspace_id=tenant.workspace.pk, text=text % json.dumps(servers), actor=tenant.actor()
        )
    }
    refused = {name for name, one in planned.items() if one.plan == "refuse"}
    assert refused == {"other", "older", "elsewhere", "keyed"}
    assert "TOKEN" in planned["keyed"].reason
    assert "owner" in planned["other"].reason
    draft = planned["files"].draft
    assert draft is not None
    assert (draft.parameters, draft.env) == ({"folder": "/srv"}, {"API_KEY": "k"})
    added = lists.apply_import(
        workspace_id=tenant.workspace.pk, text=text % json.dumps(servers), actor=tenant.actor()
    )
    argv = {row.name: row.program.args for row in added if row.program is not None}
    assert argv["newest"] == ["-y", "@acme/files@1.2.3", "{folder}"]


def test_that_ten_megabytes_are_refused(tenant: Tenant) -> None:
    """SEC-116: before anything of them is read."""
    with pytest.raises(MalformedServerList, match="at most"):
        lists.preview_import(
            workspace_id=tenant.workspace.pk, text=b" " * 10_000_000, actor=tenant.actor()
        )


def test_that_only_administrators_import_and_export(tenant: Tenant) -> None:
    """A member may neither."""
    for attempt in (lists.preview_import, lists.apply_import):
        with pytest.raises(PermissionDenied):
            attempt(workspace_id=tenant.workspace.pk, text=listed(), actor=tenant.actor("member"))
    with pytest.raises(PermissionDenied):
        lists.export_servers(workspace_id=tenant.workspace.pk, actor=tenant.actor("member"))


def test_that_an_export_has_no_secrets_and_can_be_imported(tenant: Tenant) -> None:
    """Where something secret stands, a variable's name stands instead."""
    draft = ServerDraft(
        name="weather",
        transport=transports.STREAMABLE_HTTP,
        url=f"https://w.example/mcp?key={SECRET}",
        headers={"X-Key": SECRET},
    )
    services.add_server(workspace_id=tenant.workspace.pk, draft=draft, actor=tenant.actor())
    exported = lists.export_servers(workspace_id=tenant.workspace.pk, actor=tenant.actor())
    assert SECRET not in json.dumps(exported)
    assert exported["mcpServers"]["weather"]["headers"] == {"X-Key": "${WEATHER_X_KEY}"}
    other = make_tenant("other")
    (planned,) = lists.preview_import(
        workspace_id=other.workspace.pk, text=json.dumps(exported), actor=other.actor()
    )
    assert planned.placeholders == ("WEATHER_QUERY", "WEATHER_X_KEY")
