"""Servers, tools and the catalogue in the admin."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.forms import JSONField
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcp_servers.models import (
    HealthCheck,
    McpPrompt,
    McpResource,
    McpServer,
    McpTool,
    StdioProgram,
)
from mcp_servers.registry import health, tasks
from tests.factories import CANARY, Tenant, UserFactory, make_tenant, signed_in
from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.factories import (
    http_server,
    looked_at,
    stored_tool,
    tool_of,
    zoo_server,
)
from tests.row_actions import act, notices

SERVERS = "/admin/mcp_servers/mcpserver/"
TOOLS = "/admin/mcp_servers/mcptool/"
PROGRAMS = "/admin/mcp_servers/stdioprogram/"


def form(**changes: Any) -> dict[str, Any]:
    values = {
        "name": "garden",
        "is_active": "on",
        "transport": "streamable_http",
        "url": "https://example.org/mcp",
        "program": "",
        "parameters": "",
        "protocol": "auto",
        "auth_type": "none",
        "auth_name": "",
        "auth_secret": "",
        "headers": "",
        "env": "",
        "answers_elicitation": "on",
        "sampling": "off",
        "sampling_daily_tokens": "1000",
        "sampling_model": "",
        "roots": "",
        "log_level": "info",
    }
    return {**values, **changes}


@pytest.fixture
def admin(tenant: Tenant) -> Client:
    """A workspace's administrator, no superuser."""
    return tenant.client("admin")


@pytest.fixture
def owner(tenant: Tenant) -> Client:
    """The platform's owner."""
    person = UserFactory.create(is_superuser=True)
    return signed_in(person)


def test_a_server_is_added_with_secrets_that_are_never_shown(admin: Client, tenant: Tenant) -> None:
    """SEC-93: write-only headers and credentials; saving the empty field keeps them."""
    body = form(
        headers="X-Key: canary-1a2b-key", auth_type="bearer", auth_secret="canary-1a2b-token"
    )
    response = admin.post(f"{SERVERS}add/", body)
    assert response.status_code == 302, response.content.decode()[:2000]
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    change = f"{SERVERS}{server.pk}/change/"
    text = admin.get(change).content.decode()
    assert "canary-1a2b" not in text
    assert "headers, credentials" in text
    assert admin.post(change, form(name="renamed", auth_type="bearer")).status_code == 302
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert server.name == "renamed"
    assert server.headers.reveal_json("test") == {"X-Key": "canary-1a2b-key"}
    assert server.auth_config.reveal_json("test") == {"token": "canary-1a2b-token"}
    assert "canary-1a2b" not in admin.get(f"{SERVERS}{server.pk}/history/").content.decode()
    assert admin.post(change, form(clears_secrets="on")).status_code == 302
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert not server.headers
    assert not server.auth_config


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"url": "nonsense"}, "not a plain"),
        ({"url": ""}, "Enter a URL."),
        ({"headers": "X-Key"}, "one name"),
        ({"headers": "Host: x"}, "set by the platform"),
        ({"call_seconds": "0"}, "or more"),
        ({"auth_type": "bearer"}, "Bearer token is not complete. Enter the token."),
        ({"auth_type": "basic"}, "Enter the user name and the password."),
        ({"transport": "stdio"}, "has no URL"),
        ({"transport": "stdio", "url": ""}, "catalogue"),
    ],
)
def test_a_bad_form_says_what_is_wrong(
    admin: Client, tenant: Tenant, change: dict[str, str], words: str
) -> None:
    """A bad configuration is a form error, never a crash."""
    response = admin.post(f"{SERVERS}add/", form(**change))
    assert response.status_code == 200
    assert words in response.content.decode()
    assert McpServer.objects.for_workspace(tenant.workspace).count() == 0


def test_a_new_server_is_asked_only_what_it_has(
    admin: Client, tenant: Tenant, counting: CountingServer
) -> None:
    """REL-3327: nothing is stored of it, and nobody has connected. Later its transport is named in words."""
    of_stored = (
        "Leave empty to keep the current one",
        "Delete all stored",
        "Register at the issuer",
    )
    of_state = ("Consecutive failures", "Resolved transport", "Stored</")
    text = admin.get(f"{SERVERS}add/").content.decode()
    assert not [words for words in (*of_stored, *of_state) if words in text]
    server = looked_at(tenant, http_server(tenant, counting.url, name="counting"))
    text = admin.get(f"{SERVERS}{server.pk}/change/").content.decode()
    assert not [words for words in of_stored if words not in text]
    assert "Resolved transport" in text
    # Among the choices of the transport, and where it says what works.
    assert re.sub(r"\s+", "", text).count(">StreamableHTTP<") == 2


@pytest.mark.parametrize("way", ["added", "switched on in the list", "switched on in the form"])
def test_a_new_server_is_looked_at_for_whoever_brings_it(
    admin: Client,
    tenant: Tenant,
    counting: CountingServer,
    django_capture_on_commit_callbacks: Any,
    way: str,
) -> None:
    """REL-3319: as on the page of servers. A check would leave its tools for somebody to accept."""
    body = form(url=counting.url)
    if way != "added":
        admin.post(f"{SERVERS}add/", {key: body[key] for key in body if key != "is_active"})
        assert health.due_servers() == []
    with django_capture_on_commit_callbacks(execute=True):
        if way == "added":
            admin.post(f"{SERVERS}add/", body)
        else:
            server = McpServer.objects.for_workspace(tenant.workspace).get()
            chosen = {"action": "switch_on", "_selected_action": [str(server.pk)]}
            is_listed = way == "switched on in the list"
            page = SERVERS if is_listed else f"{SERVERS}{server.pk}/change/"
            admin.post(page, chosen if is_listed else body)
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert (server.is_active, server.state.status) == (True, "connecting")
    # No check comes before.
    assert health.due_servers() == []
    tasks.look_first(str(tenant.workspace.pk), str(server.pk), str(tenant.admin.pk))
    assert not tool_of(server, "echo").is_quarantined
    # Once somebody has looked, switching it on again is no first look.
    with django_capture_on_commit_callbacks(execute=True):
        for action in ("switch_off", "switch_on"):
            admin.post(SERVERS, {"action": action, "_selected_action": [str(server.pk)]})
    server.refresh_from_db()
    assert server.state.status != "connecting"


def test_a_connection_test_tells_what_to_do(admin: Client, tenant: Tenant) -> None:
    """REL-3320: as the page of servers does; and one tool is one tool."""
    rows = [zoo_server(tenant, "probe"), zoo_server(tenant, "exit_at_once", name="ends")]
    ends, works = notices(act(admin, SERVERS, "test_connections", *rows))
    assert works.endswith(", 1 tool.")
    assert "Often a variable, a path or an argument is missing or wrong." in ends
    assert ends.endswith("The program said: configuration missing: SECRET_THING")


def test_a_connection_test_tells_what_was_found(
    admin: Client, tenant: Tenant, counting: CountingServer
) -> None:
    """Status, latency, revision, tools."""
    server = http_server(tenant, counting.url, name="counting")
    body = {"action": "test_connections", "_selected_action": [str(server.pk)]}
    text = admin.post(SERVERS, body, follow=True).content.decode()
    assert "protocol 2026-07-28, 7 tools" in text
    server.refresh_from_db()
    assert server.state.status == "connected"
    text = admin.get(f"{SERVERS}{server.pk}/change/").content.decode()
    assert "destroy" in text
    assert "counting 1.0" in text
    for status, is_shown in (("connected", True), ("error", False)):
        listed = admin.get(SERVERS, {"status": status, "o": "6.7"}).content.decode()
        assert (f"{server.pk}/change/" in listed) is is_shown
    for action, is_active in (("switch_off", False), ("switch_on", True)):
        admin.post(SERVERS, {"action": action, "_selected_action": [str(server.pk)]})
        server.refresh_from_db()
        assert server.is_active is is_active


def test_tools_are_switched(admin: Client, tenant: Tenant, trusted: McpServer) -> None:
    """A tool's switches, and its badges."""
    echo = tool_of(trusted, "echo")
    assert "Read-only" in admin.get(TOOLS).content.decode()
    admin.post(TOOLS, {"action": "switch_off", "_selected_action": [str(echo.pk)]})
    echo.refresh_from_db()
    assert not echo.is_enabled
    response = admin.post(
        f"{TOOLS}{echo.pk}/change/", {"is_enabled": "on", "approval_override": "deny"}
    )
    assert response.status_code == 302
    echo.refresh_from_db()
    assert (echo.is_enabled, echo.approval_override) == (True, "deny")
    assert admin.get(f"{TOOLS}add/").status_code == 403


def test_what_servers_offer_is_found_by_their_name(admin: Client, tenant: Tenant) -> None:
    """REL-3328: tools, resources and prompts; the lists show it beside each."""
    for name in ("garden", "kitchen"):
        server = http_server(tenant, f"https://{name}.example.org/mcp", name=name)
        stored_tool(server, f"dig_{server.name[0]}")
        both = {"workspace": tenant.workspace, "server": server, "last_seen_at": timezone.now()}
        McpResource.objects.create(**both, uri=f"note://{name[0]}")
        McpPrompt.objects.create(**both, name=f"ask_{name[0]}")
    for kind in ("mcptool", "mcpresource", "mcpprompt"):
        listed = admin.get(f"/admin/mcp_servers/{kind}/", {"q": "garden"}).context["cl"]
        assert [row.server.name for row in listed.queryset] == ["garden"]


def test_prompts_and_checks_are_told_in_words(admin: Client, tenant: Tenant) -> None:
    """REL-3329: what a prompt takes was JSON; the head of a check had a code, and another time than the page."""
    server = http_server(tenant, "https://example.org/mcp", name="garden")
    both = {"workspace": tenant.workspace, "server": server}
    argument = {"name": "plant", "required": True, "title": "", "description": ""}
    prompt = McpPrompt.objects.create(
        **both, name="ask", arguments=[argument], last_seen_at=timezone.now()
    )
    text = admin.get(f"/admin/mcp_servers/mcpprompt/{prompt.pk}/change/").content.decode()
    assert "Takes plant (required)" in text
    assert "&quot;required&quot;" not in text
    for is_ok, words in ((True, "garden answered"), (False, "garden did not answer")):
        check = HealthCheck.objects.create(**both, checked_at=timezone.now(), is_ok=is_ok)
        page = admin.get(f"/admin/mcp_servers/healthcheck/{check.pk}/change/").content.decode()
        assert words in page


def test_tools_are_accepted_where_they_are_shown(
    admin: Client, tenant: Tenant, trusted: McpServer
) -> None:
    """REL-3318: the admin's pages show a part of a tool at most. They lead to the page that shows all of it."""
    echo = tool_of(trusted, "echo")
    review = f'<a href="/w/{tenant.workspace.slug}/servers/{trusted.pk}/review/">'
    pages = (TOOLS, f"{TOOLS}{echo.pk}/change/")
    assert all(review not in admin.get(page).content.decode() for page in pages)
    McpTool.objects.for_workspace(tenant.workspace).filter(pk=echo.pk).update(
        definition_hash="6" * 64, warnings=["Its name looks like another.", "It hides something."]
    )
    for page in pages:
        text = admin.get(page).content.decode()
        assert f"{review}changed; to be accepted</a>" in text
    # Warnings are sentences, one on each line, and no JSON.
    assert "Its name looks like another.<br>It hides something." in text
    chosen = {"action": "accept_definitions", "_selected_action": [str(echo.pk)]}
    admin.post(TOOLS, chosen)
    assert tool_of(trusted, "echo").is_quarantined


def test_the_catalogue_is_the_platform_owners_alone(
    admin: Client, owner: Client, tenant: Tenant
) -> None:
    """SEC-37: not a workspace's administrator, not its owner."""
    entry = {
        "title": "Probe",
        "slug": "probe",
        "description": "",
        "command": "/usr/bin/true",
        "args": "{mode}",
        "parameters-0-name": "mode",
        "env_names": "",
        "is_enabled": "on",
    }
    for client in (admin, tenant.client("owner"), tenant.client("member")):
        assert client.get(PROGRAMS).status_code in (302, 403)
        assert client.post(f"{PROGRAMS}add/", entry).status_code in (302, 403)
        assert StdioProgram.objects.count() == 0
    assert owner.post(f"{PROGRAMS}add/", {**entry, "command": "npx"}).status_code == 200
    # What it is for, and where it goes on; what will be found out about it is nothing to read yet.
    assert "Workspaces choose among those that you add here" in owner.get(PROGRAMS).content.decode()
    assert "Problem" not in owner.get(f"{PROGRAMS}add/").content.decode()
    added = owner.post(f"{PROGRAMS}add/", entry, follow=True).content.decode()
    assert "open Servers in a workspace" in added
    assert StdioProgram.objects.get().slug == "probe"


def test_a_program_that_is_not_on_this_machine_is_told(owner: Client) -> None:
    """REL-1608, REL-2544: it is kept, because other machines may have it; whoever entered it learns that this one has not."""
    body = {"title": "Files", "slug": "files", "command": "/nowhere/files", "args": ""}
    answer = owner.post(f"{PROGRAMS}add/", body, follow=True)
    assert "/nowhere/files is not on this machine" in answer.content.decode()
    program = StdioProgram.objects.get()
    change = f"{PROGRAMS}{program.pk}/change/"
    for command, args, missing in (
        ("/usr/bin/env", "/nowhere/files/index.js", "/nowhere/files/index.js is not"),
        ("python", "-m\nno_such_module_here", "no_such_module_here is not"),
    ):
        answer = owner.post(change, {**body, "command": command, "args": args}, follow=True)
        assert f"{missing} on this machine" in answer.content.decode()
    there = {**body, "command": "/usr/bin/env", "args": "/nowhere/{file}.js\n/nowhere/folder"}
    answer = owner.post(change, there, follow=True)
    assert "is not on this machine" not in answer.content.decode()


def test_a_program_is_entered_without_json(owner: Client) -> None:
    """REL-670: a text on each line and a row for each parameter; what is wrong is told beside its field."""
    body = {
        "title": "Files",
        "slug": "files",
        "description": "",
        "command": "/usr/bin/true",
        "args": "--root={folder}\n  --level={level}\n\n",
        "parameters-0-name": "folder",
        "parameters-0-title": "Folder",
        "parameters-0-type": "word",
        "parameters-0-required": "on",
        "parameters-1-name": "level",
        "parameters-1-type": "choice",
        "parameters-1-choices": "low, high",
        "parameters-1-default": "low",
        "parameters-2-name": "",
        "env_names": "API_KEY",
        "is_enabled": "on",
    }
    bad = {
        "parameters-0-name": "Not a name",
        "parameters-1-choices": "",
        "parameters-1-maximum": "many",
        "args": "{nothing}",
        "env_names": "PATH",
    }
    for name, value in bad.items():
        answer = owner.post(f"{PROGRAMS}add/", {**body, name: value})
        assert answer.status_code == 200, name
        assert answer.context["adminform"].form.errors, name
    assert owner.post(f"{PROGRAMS}add/", body).status_code == 302
    program = StdioProgram.objects.get()
    assert program.args == ["--root={folder}", "--level={level}"]
    folder, level = program.typed_parameters()
    assert (folder.title, folder.required) == ("Folder", True)
    assert (level.title, level.choices, level.default) == ("level", ("low", "high"), "low")
    assert program.env_names == ["API_KEY"]
    page = owner.get(f"{PROGRAMS}{program.pk}/change/").content.decode()
    assert 'value="low, high"' in page
    assert "--root={folder}\n--level={level}</textarea>" in page
    for shown in (page, owner.get(PROGRAMS).content.decode()):
        assert "On offer" in shown
        assert "Is enabled" not in shown
    gone = {**body, "args": "", "parameters-0-name": "", "parameters-0-title": ""}
    gone |= {"parameters-1-name": "", "parameters-1-choices": "", "parameters-1-default": ""}
    assert owner.post(f"{PROGRAMS}{program.pk}/change/", gone).status_code == 302
    program.refresh_from_db()
    assert (program.args, program.parameters) == ([], [])


def test_no_form_of_the_admin_asks_for_json(admin: Client, owner: Client, tenant: Tenant) -> None:
    """REL-670: limits have a field each, folders and parameters a line each; they come back as they were."""
    body = form(call_seconds="90", calls_per_day="", roots="Reports = file:///srv/reports")
    assert admin.post(f"{SERVERS}add/", body).status_code == 302
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert server.config.call_seconds == 90
    assert server.roots == [{"name": "Reports", "uri": "file:///srv/reports"}]
    pages = [admin.get(f"{SERVERS}{server.pk}/change/"), owner.get(f"{PROGRAMS}add/")]
    pages.append(admin.get(f"{SERVERS}add/"))
    for page in pages:
        fields = page.context["adminform"].form.fields.values()
        assert not [one for one in fields if isinstance(one, JSONField)]
    assert "Reports = file:///srv/reports" in pages[0].content.decode()
    assert admin.post(f"{SERVERS}{server.pk}/change/", form(roots="nonsense")).status_code == 200


def test_nothing_of_another_workspace_shows(admin: Client, tenant: Tenant) -> None:
    """SEC-04: lists, pages, choices and actions are of this workspace."""
    other = make_tenant("other", CANARY)
    foreign = http_server(other, "https://example.org/mcp", name=CANARY)
    tool = stored_tool(foreign, CANARY)
    for path in (SERVERS, TOOLS, "/admin/mcp_servers/healthcheck/", f"{SERVERS}add/"):
        assert CANARY not in admin.get(path).content.decode()
    for path in (
        f"{SERVERS}{foreign.pk}/change/",
        f"{TOOLS}{tool.pk}/change/",
        f"{SERVERS}{foreign.pk}/delete/",
    ):
        response = admin.get(path, follow=True)
        assert CANARY not in response.content.decode()
    admin.post(SERVERS, {"action": "switch_off", "_selected_action": [str(foreign.pk)]})
    foreign.refresh_from_db()
    assert foreign.is_active


def test_a_server_is_deleted_with_its_tools(
    admin: Client, tenant: Tenant, counting: CountingServer
) -> None:
    """Through the service, so that connections close and the log knows."""
    server = looked_at(tenant, http_server(tenant, counting.url))
    assert admin.post(f"{SERVERS}{server.pk}/delete/", {"post": "yes"}).status_code == 302
    assert McpServer.objects.for_workspace(tenant.workspace).count() == 0
    assert McpTool.objects.for_workspace(tenant.workspace).count() == 0


def test_members_have_no_admin(tenant: Tenant) -> None:
    """SEC-24: not even to look."""
    assert tenant.client("member").get(SERVERS).status_code in (302, 403)


def test_that_the_list_counts_tools_with_few_queries(admin: Client, tenant: Tenant) -> None:
    """As many for three servers as for one."""
    counts = []
    for number in range(3):
        server = http_server(tenant, f"https://{number}.example.org/mcp")
        for name in ("one", "two", "three")[: number + 1]:
            stored_tool(server, name, is_enabled=name == "one")
        with CaptureQueriesContext(connection) as captured:
            page = admin.get(SERVERS).content.decode()
        counts.append(len(captured))
        assert f"1 of {number + 1}" in page
    assert counts[1] == counts[2]
