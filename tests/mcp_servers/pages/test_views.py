"""The servers page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from config.admin import dashboard
from mcp_servers.client import transports
from mcp_servers.models import ApprovalOverride, McpServer, ServerScope, ServerStatus, StdioProgram
from mcp_servers.registry import discovery, services
from mcp_servers.registry.services import ServerDraft
from tests.factories import CANARY, Tenant, make_tenant
from tests.fakes.mcp_server import CountingServer, raw_tool
from tests.mcp_servers.factories import http_server, stored_tool, tool_of

BASE = "/w/acme/servers/"


def test_the_page_shows_servers_and_their_tools(page: Client, trusted: McpServer) -> None:
    """Status, revision, badges: what an administrator looks for."""
    text = page.get(BASE).content.decode()
    for words in (
        "counting",
        "Connected",
        "2026-07-28",
        "destroy",
        "Destructive",
        "Read-only",
        "Add a server",
    ):
        assert words in text


def test_whoever_manages_a_server_is_told_where_its_provider_has_moved_it(
    page: Client, tenant: Tenant
) -> None:
    """REL-982: with what the catalogue says of it; a member could do nothing about it."""
    asana = http_server(tenant, "https://mcp.asana.com/sse/", transport="sse")
    words = (
        "Asana no longer answers at this address. The new one is https://mcp.asana.com/v2/mcp, with"
        " the transport “Streamable HTTP”."
    )
    text = page.get(f"{BASE}{asana.pk}/").content.decode()
    assert words in text
    assert "create an MCP app in its developer console" in text
    assert words not in tenant.client("member").get(f"{BASE}{asana.pk}/").content.decode()
    McpServer.objects.for_workspace(tenant.workspace).update(url="https://mcp.asana.com/v2/mcp")
    assert "no longer answers" not in page.get(f"{BASE}{asana.pk}/").content.decode()


def test_whoever_manages_a_server_that_refuses_its_key_is_led_to_where_it_is_entered(
    page: Client, tenant: Tenant
) -> None:
    """REL-3141: nobody is sent to sign in at a server that has no sign-in, neither by its card nor by the overview.

    REL-3174: nor to a field that the settings of the platform's servers do not have.
    """
    server = http_server(tenant, "https://tools.example.org/mcp")
    server.state.write(status=ServerStatus.AUTH_REQUIRED, status_reason="It refused.")
    at = f'href="{BASE}{server.pk}/settings/#id_auth_type"'
    shown = {who: tenant.client(who).get(BASE).content.decode() for who in ("admin", "member")}
    for text in shown.values():
        assert "Needs credentials" in text
        assert "Needs sign-in" not in text
    assert at in shown["admin"]
    assert at not in shown["member"]
    assert 'id="id_auth_type"' in page.get(f"{BASE}{server.pk}/settings/").content.decode()
    tiles = dashboard.read(tenant.workspace, tenant.actor("admin")).tiles
    assert tiles[0].note == "1 needs credentials"
    server.scope = ServerScope.GLOBAL
    server.save()
    of_platform = tenant.client("admin").get(BASE).content.decode()
    assert "Needs credentials" in of_platform
    assert at not in of_platform
    assert 'id="id_auth_type"' not in page.get(f"{BASE}{server.pk}/settings/").content.decode()


def test_a_member_sees_and_cannot_change(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-24: the page without its controls; every POST is refused."""
    client = tenant.client("member")
    text = client.get(BASE).content.decode()
    assert "counting" in text
    assert "Add a server" not in text
    echo = tool_of(trusted, "echo")
    one = f"{BASE}{trusted.pk}/"
    for path, body in [
        (
            f"{BASE}add/",
            {"name": "x", "url": counting.url, "auth_type": "none", "protocol": "auto"},
        ),
        (f"{BASE}catalogue/", {"catalogue-name": "x"}),
        (
            f"{BASE}try/",
            {"name": "x", "url": counting.url, "auth_type": "none", "protocol": "auto"},
        ),
        (f"{BASE}try/", {}),
        (f"{one}test/", {}),
        (f"{one}refresh/", {}),
        (f"{one}active/", {"is_active": "off"}),
        (f"{one}delete/", {}),
        (f"{one}tools/{echo.pk}/enabled/", {"is_enabled": "off"}),
        (f"{one}tools/{echo.pk}/approval/", {"approval_override": "auto"}),
        (f"{one}tools/{echo.pk}/accept/", {}),
    ]:
        assert client.post(path, body).status_code == 403, path
    trusted.refresh_from_db()
    assert trusted.is_active
    assert counting.calls == []


def test_switches_answer_with_the_card(page: Client, trusted: McpServer) -> None:
    """Each change comes back as the server's article."""
    one = f"{BASE}{trusted.pk}/"
    echo = tool_of(trusted, "echo")
    posts: list[tuple[str, dict[str, Any]]] = [
        (f"{one}test/", {}),
        (f"{one}refresh/", {}),
        (f"{one}tools/{echo.pk}/enabled/", {"is_enabled": "off"}),
        (f"{one}tools/{echo.pk}/approval/", {"approval_override": "confirm"}),
        (f"{one}active/", {"is_active": "off"}),
    ]
    for path, body in posts:
        text = page.post(path, body).content.decode()
        assert f'id="server-{trusted.pk}"' in text
    echo.refresh_from_db()
    assert (echo.is_enabled, echo.approval_override) == (False, ApprovalOverride.CONFIRM)
    assert "Switched off" in page.get(one).content.decode()
    assert page.post(f"{one}active/", {"is_active": "maybe"}).status_code == 422
    assert (
        page.post(f"{one}tools/{echo.pk}/approval/", {"approval_override": "x"}).status_code == 422
    )


def test_a_failed_connection_is_explained_once(page: Client, tenant: Tenant) -> None:
    """The look that was asked for says why, and the card's own reason is the same."""
    program = StdioProgram.objects.create(slug="gone", title="Gone", command="/nowhere/program")
    draft = ServerDraft(name="gone", transport=transports.STDIO, program=program)
    server = services.add_server(
        workspace_id=tenant.workspace.pk, draft=draft, actor=tenant.actor("admin")
    )
    card = page.post(f"{BASE}{server.pk}/connect/").content.decode()
    assert card.count("<p>Trellis could not start the program.</p>") == 1
    later = page.get(f"{BASE}{server.pk}/").content.decode()
    assert later.count("<p>Trellis could not start the program.</p>") == 1


def test_deleting_goes_back_to_the_list(page: Client, tenant: Tenant, trusted: McpServer) -> None:
    """And the server is gone."""
    response = page.post(f"{BASE}{trusted.pk}/delete/")
    assert (response.status_code, response["Location"]) == (302, BASE)
    assert McpServer.objects.for_workspace(tenant.workspace).count() == 0


def test_nothing_of_another_workspace_shows(page: Client, tenant: Tenant) -> None:
    """SEC-01: the other workspace's servers are not on the page, and not behind its addresses."""
    other = make_tenant("other", CANARY)
    foreign = http_server(other, "https://example.org/mcp", name=CANARY)
    tool = stored_tool(foreign, CANARY)
    assert CANARY not in page.get(BASE).content.decode()
    one = f"{BASE}{foreign.pk}/"
    assert page.get(one).status_code == 404
    for path in (
        "test/",
        "refresh/",
        "active/",
        "delete/",
        f"tools/{tool.pk}/enabled/",
        f"tools/{tool.pk}/accept/",
    ):
        response = page.post(f"{one}{path}", {"is_active": "off", "is_enabled": "off"})
        assert response.status_code == 404
        assert CANARY not in response.content.decode()
    assert page.get("/w/other/servers/").status_code == 404


def test_text_of_servers_is_escaped(page: Client, tenant: Tenant) -> None:
    """SEC-81: names, descriptions and reasons are text."""
    attack = "<script>alert(1)</script>"
    server = http_server(tenant, "https://example.org/mcp")
    stored_tool(server, "x", description=attack, title=attack, problem=attack)
    server.state.write(status="error", status_reason=attack)
    text = page.get(BASE).content.decode()
    assert attack not in text
    assert "&lt;script&gt;alert(1)" in text


def test_a_visitor_is_sent_to_sign_in(tenant: Tenant) -> None:
    """Pages are for people of the workspace."""
    assert Client().get(BASE).status_code == 302


def test_what_a_server_writes_is_shown_and_never_obeyed(page: Client, tenant: Tenant) -> None:
    """SEC-67, SEC-73: escaped, hidden characters written out, flagged; icons and links are never loaded."""
    server = http_server(tenant, "https://example.org/mcp", name="shady")
    discovery.store_tools(server=server, raw_tools=[raw_tool("plain")], actor=tenant.actor())
    shady = raw_tool(
        "pla\u0456n",
        title="<b>bold</b>",
        description="Reads.\u202e <img src=https://evil.example/beacon.png>",
        icons=[{"src": "https://evil.example/beacon.svg"}],
    )
    discovery.store_tools(server=server, raw_tools=[raw_tool("plain"), shady], actor=tenant.actor())
    discovery.store_resources(
        server=server,
        raw=[{"uri": "https://evil.example/page", "name": "<script>", "icons": shady["icons"]}],
    )
    for address in (BASE, f"{BASE}{server.pk}/", f"{BASE}{server.pk}/offers/"):
        text = page.get(address).content.decode()
        for raw in ("<b>bold", "<img src=https://evil", "\u202e"):
            assert raw not in text
        for attribute in ("src", "href", "srcset", "style"):
            assert f'{attribute}="https://evil.example' not in text
    offers = page.get(f"{BASE}{server.pk}/offers/").content.decode()
    assert "&lt;script&gt;" in offers
    assert "beacon.svg" not in offers
    text = page.get(BASE).content.decode()
    assert "‹U+202E›" in text
    assert "&lt;img" in text
    assert "alphabets" in text


def test_a_tool_says_that_its_results_go_unchecked(page: Client, tenant: Tenant) -> None:
    """REL-2091: on the card, in the admin and over REST; it is not held for that."""
    server = http_server(tenant, "https://example.org/mcp", name="places")
    wide = {"type": "object", "description": "x" * 75_000}
    raw = [raw_tool("find", outputSchema=wide), raw_tool("plain", outputSchema={"type": "object"})]
    discovery.store_tools(server=server, raw_tools=raw, actor=tenant.actor())
    why = "its output schema has 74 KiB, more than 64 KiB."
    sentence = f"Trellis does not check this tool&#x27;s structured results: {why}"
    find, plain = tool_of(server, "find"), tool_of(server, "plain")
    assert not find.is_quarantined
    text = page.get(f"{BASE}{server.pk}/").content.decode()
    assert text.count(sentence) == 1
    admin = "/admin/mcp_servers/mcptool/{}/change/"
    assert sentence in page.get(admin.format(find.pk)).content.decode()
    of_plain = page.get(admin.format(plain.pk)).content.decode()
    assert "Checked against the output schema." in of_plain
    assert page.get(f"/api/tools/{find.pk}/").json()["output_problem"] == why
    assert page.get(f"/api/tools/{plain.pk}/").json()["output_problem"] == ""
    # Tools that were stored before this was known learn it at the next look; one that was mended forgets it.
    find.output_problem = ""
    find.save(update_fields=["output_problem"])
    discovery.store_tools(server=server, raw_tools=raw, actor=tenant.actor())
    assert tool_of(server, "find").output_problem == why
    raw[0] = raw_tool("find", outputSchema={"type": "object"})
    discovery.store_tools(server=server, raw_tools=raw, actor=tenant.actor())
    assert tool_of(server, "find").output_problem == ""


def test_settings_change_what_applies_to_the_server(page: Client, tenant: Tenant) -> None:
    """And say what is wrong on the form."""
    server = http_server(tenant, "https://example.org/mcp", name="garden")
    address = f"{BASE}{server.pk}/settings/"
    assert "https://example.org/mcp" in page.get(address).content.decode()
    values = {
        "name": "garden",
        "transport": "sse",
        "url": "https://example.org/mcp",
        "protocol": "legacy",
        "auth_type": "none",
        "sampling": "ask",
        "sampling_daily_tokens": "500",
        "log_level": "warning",
        "roots": "R = file:///srv",
        "connect_seconds": "5",
        "queue_seconds": "1",
        "idle_seconds": "60",
        "max_concurrent_calls": "2",
        "max_queued_calls": "3",
        "max_attempts": "4",
        "result_bytes": "2048",
        "answers_elicitation": "on",
    }
    assert page.post(address, {**values, "roots": "/etc"}).status_code == 422
    assert page.post(address, {**values, "transport": "websocket"}).status_code == 422
    assert page.post(address, values).status_code == 302
    server.refresh_from_db()
    assert (server.transport, server.protocol, server.sampling) == ("sse", "legacy", "ask")
    assert server.roots == [{"uri": "file:///srv", "name": "R"}]
    assert server.config.max_attempts == 4


def test_owners_set_the_rules_and_nobody_else(tenant: Tenant) -> None:
    """Whether members may have servers of their own is the owner's word."""
    for role, status in (("admin", 403), ("member", 403), ("owner", 302)):
        answer = tenant.client(role).post(
            f"{BASE}rules/", {"rule": "allows_personal_servers", "is_on": "on"}
        )
        assert answer.status_code == status
    tenant.workspace.refresh_from_db()
    assert tenant.workspace.allows_personal_servers
    owner = tenant.client("owner")
    assert owner.post(f"{BASE}rules/", {"rule": "is_active", "is_on": "off"}).status_code == 422


def test_many_servers_are_rows_that_are_found_and_paged(page: Client, tenant: Tenant) -> None:
    """REL-641: groups by state, search by name, address and tool, and a page at a time."""
    servers = [
        http_server(tenant, "https://example.org/mcp", name=f"server {number:03}")
        for number in range(60)
    ]
    servers[7].state.write(status="error")
    servers[8].state.write(status="connected")
    stored_tool(servers[9], "water_the_plants")
    text = page.get(BASE).content.decode()
    assert text.count('class="panel server"') == 25
    assert text.index("server 007") < text.index("server 008") < text.index("server 000")
    assert 'All <span class="quiet">60</span>' in text
    assert "Needs attention" in text
    (address,) = re.findall(r'hx-get="([^"]+after=[^"]+)"', text)
    rest = page.get(address.replace("&amp;", "&"), headers={"HX-Request": "true"}).content.decode()
    assert rest.count('class="panel server"') == 25
    assert "<html" not in rest
    for query, count in (
        ("q=server+01", 11),
        ("q=water_the", 1),
        ("state=attention", 1),
        ("state=connected", 1),
        ("from=platform", 0),
        ("from=workspace&q=server", 25),
        ("state=nonsense&after=nonsense", 25),
    ):
        found = page.get(f"{BASE}?{query}").content.decode()
        assert found.count('class="panel server"') == count, query
    one = page.get(f"{BASE}{servers[9].pk}/").content.decode()
    row = page.get(f"{BASE}{servers[9].pk}/?as=row").content.decode()
    assert "water_the_plants" in one
    assert "water_the_plants" not in row
    assert "1 tool" in row


def test_a_page_of_servers_takes_as_many_statements_for_200_as_for_20(
    page: Client, tenant: Tenant
) -> None:
    """REL-641: no statement for each server or tool."""

    def statements() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert page.get(BASE).status_code == 200
        return len(asked)

    for number in range(20):
        http_server(tenant, "https://example.org/mcp", name=f"first {number}")
    statements()
    few = statements()
    for number in range(180):
        http_server(tenant, "https://example.org/mcp", name=f"more {number}")
    assert statements() <= few


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("stat=x", "There is no filter “stat”."),
        ("state=gone", "There is no state “gone”."),
        ("from=moon", "Servers cannot come from “moon”."),
    ],
)
def test_a_filter_of_the_servers_with_a_typo_is_told_at_the_field(
    tenant: Tenant, query: str, message: str
) -> None:
    """REL-764."""
    url = f"/w/{tenant.workspace.slug}/servers/"
    page = tenant.client("admin").get(f"{url}?{query}").content.decode()
    assert f'id="server-fault" role="alert">{message}</p>' in page
    assert "server-fault" not in tenant.client("admin").get(f"{url}?q=x").content.decode()
