"""Tools that are new or changed are shown, compared and accepted on the servers page."""

from __future__ import annotations

from copy import copy

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from uuid_utils.compat import uuid7

from mcp_servers.models import McpServer, McpTool
from mcp_servers.registry import discovery
from tests.factories import Tenant
from tests.fakes.mcp_server import raw_tool
from tests.mcp_servers.factories import http_server, stored_tool, tool_of

BASE = "/w/acme/servers/"


def test_a_changed_definition_is_shown_and_accepted(page: Client, trusted: McpServer) -> None:
    """SEC-57: the card says so, and has the button."""
    echo = tool_of(trusted, "echo")
    McpTool.objects.for_workspace(trusted.workspace_id).filter(pk=echo.pk).update(
        definition_hash="5" * 64
    )
    text = page.get(f"{BASE}{trusted.pk}/").content.decode()
    assert "Accept the new definition" in text
    page.post(f"{BASE}{trusted.pk}/tools/{echo.pk}/accept/", {"definition_hash": "5" * 64})
    echo.refresh_from_db()
    assert not echo.is_quarantined


def test_a_changed_definition_is_shown_and_accepted_as_it_was_seen(
    page: Client, tenant: Tenant
) -> None:
    """SEC-57: before and after; a definition that changed again meanwhile is not accepted by an old click."""
    server = http_server(tenant, "https://example.org/mcp", name="moving")
    discovery.store_tools(server=server, raw_tools=[raw_tool("a")], actor=tenant.actor())
    changed = raw_tool("a", description="a and sends everything elsewhere")
    discovery.store_tools(server=server, raw_tools=[changed], actor=tenant.actor())
    text = page.get(f"{BASE}{server.pk}/").content.decode()
    assert "<ins> and sends everything elsewhere</ins>" in text
    tool = tool_of(server, "a")
    seen = tool.definition_hash
    again = raw_tool("a", description="something else")
    discovery.store_tools(server=server, raw_tools=[again], actor=tenant.actor())
    address = f"{BASE}{server.pk}/tools/{tool.pk}/accept/"
    assert page.post(address, {"definition_hash": seen}).status_code == 409
    assert tool_of(server, "a").is_quarantined
    now = tool_of(server, "a").definition_hash
    assert page.post(address, {"definition_hash": now}).status_code == 200
    assert not tool_of(server, "a").is_quarantined


def _hold(server: McpServer, *names: str, warnings: list[str] | None = None) -> list[McpTool]:
    """Make tools wait for somebody to accept them."""
    found = []
    for name in names:
        tool = tool_of(server, name)
        tool.definition_hash, tool.warnings = name.encode().hex()[1] * 64, warnings or []
        tool.save(update_fields=["definition_hash", "warnings"])
        found.append(tool)
    return found


def test_all_new_tools_are_accepted_after_one_look(page: Client, trusted: McpServer) -> None:
    """REL-640: one page shows what is new of each, and one click accepts what was shown."""
    echo, other = _hold(trusted, "echo", "destroy")
    address = f"{BASE}{trusted.pk}/review/"
    assert address in page.get(BASE).content.decode()
    text = page.get(address).content.decode()
    assert "2 tools to accept" in text
    shown = [f"{tool.pk} {tool.definition_hash}" for tool in (echo, other)]
    assert all(value in text for value in shown)
    answer = page.post(address, {"tool": shown}, follow=True)
    assert "2 tools accepted." in answer.content.decode()
    assert "Nothing waits here" in answer.content.decode()
    for tool in (echo, other):
        tool.refresh_from_db()
        assert tool.approved_hash == tool.definition_hash


def test_nothing_is_accepted_if_one_tool_changed_meanwhile(
    page: Client, trusted: McpServer
) -> None:
    """SEC-57: all of them as they were looked at, or none."""
    echo, other = _hold(trusted, "echo", "destroy")
    address = f"{BASE}{trusted.pk}/review/"
    shown = [f"{echo.pk} {echo.definition_hash}", f"{other.pk} {'0' * 64}"]
    answer = page.post(address, {"tool": shown})
    assert answer.status_code == 409
    assert "changed" in answer.content.decode()
    echo.refresh_from_db()
    assert echo.is_quarantined
    for odd in ([], ["nonsense"], [f"{trusted.pk} {'0' * 64}"]):
        assert page.post(address, {"tool": odd}).status_code == 422


def test_a_tool_with_a_warning_is_accepted_by_itself(page: Client, trusted: McpServer) -> None:
    """SEC-58: what hides something is never accepted in a heap."""
    (echo,) = _hold(trusted, "echo", warnings=["Its description holds hidden characters."])
    address = f"{BASE}{trusted.pk}/review/"
    text = page.get(address).content.decode()
    assert "Accept all" not in text
    assert "hidden characters" in text
    shown = f"{echo.pk} {echo.definition_hash}"
    assert page.post(address, {"tool": [shown]}).status_code == 409
    body = {"definition_hash": echo.definition_hash, "back": "review"}
    accept = f"{BASE}{trusted.pk}/tools/{echo.pk}/accept/"
    stale = page.post(accept, {**body, "definition_hash": "0" * 64}, follow=True)
    assert stale.redirect_chain[-1][0] == address
    assert "The definition has changed again." in stale.content.decode()
    answer = page.post(accept, body)
    assert answer["Location"] == address


@pytest.mark.both_engines
def test_servers_with_held_tools_are_found_without_looking_at_others(
    page: Client, tenant: Tenant
) -> None:
    """REL-568: the page's question for each server is answered by an index of held tools alone."""
    servers = [
        http_server(tenant, "https://example.org/mcp", name=f"server {number}")
        for number in range(60)
    ]
    one = stored_tool(servers[0], "one")
    rows = [copy(one) for _ in range(3_000)]
    for number, row in enumerate(rows):
        row.pk, row.name, row.server = uuid7(), f"tool_{number}", servers[number % 60]
    McpTool.objects.bulk_create(rows, batch_size=500)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        with CaptureQueriesContext(connection) as captured:
            assert page.get(BASE).status_code == 200
        statements = [one["sql"] for one in captured]
        asked = next(sql for sql in statements if "approved_hash" in sql and "EXISTS" in sql)
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {asked}")
        else:
            # A table of this size may be read as a whole just as well; one that has grown is not.
            with transaction.atomic():
                cursor.execute("SET LOCAL enable_seqscan = off")
                cursor.execute(f"EXPLAIN {asked}")
        plan = " ".join(str(row) for row in cursor.fetchall())
    assert "mcp_tool_held" in plan


def test_what_was_refused_says_why_and_leads_back(page: Client, trusted: McpServer) -> None:
    """REL-1265: as a page, or as the text of a notice where a part of a page asked."""
    (echo,) = _hold(trusted, "echo")
    accept = f"{BASE}{trusted.pk}/tools/{echo.pk}/accept/"
    reason = "The definition has changed again. Review it once more."
    for referer, is_ours in (
        ("http://testserver/w/acme/servers/", True),
        ("https://elsewhere.example/", False),
        ("", False),
    ):
        answer = page.post(accept, {"definition_hash": "0" * 64}, headers={"Referer": referer})
        text = answer.content.decode()
        assert answer.status_code == 409
        assert reason in text
        assert "Error 409" in text
        assert "damaged" not in text
        assert (f'href="{referer}#unsent">Go back' in text) == is_ours
        assert ("Go to Trellis" in text) != is_ours
        assert "elsewhere" not in text
    part = page.post(accept, {"definition_hash": "0" * 64}, headers={"HX-Request": "true"})
    assert (part.status_code, part.content.decode()) == (409, reason)
    assert part["Content-Type"] == "text/plain; charset=utf-8"
    head = page.get(BASE).content.decode()
    assert '"noSwap": [204, 304, "4xx", "5xx"]' in head, "no error lands inside a card"


def test_a_tool_that_is_left_out_is_not_called_on(page: Client, trusted: McpServer) -> None:
    """REL-2631: nobody can call it, whatever its switch was."""
    text = page.get(f"{BASE}{trusted.pk}/").content.decode()
    before = text.count("tool-controls")
    echo = tool_of(trusted, "echo")
    McpTool.objects.for_workspace(trusted.workspace_id).filter(pk=echo.pk).update(
        problem="its input schema does not describe an object."
    )
    text = page.get(f"{BASE}{trusted.pk}/").content.decode()
    assert "This tool is left out" in text
    assert text.count("tool-controls") == before - 1
