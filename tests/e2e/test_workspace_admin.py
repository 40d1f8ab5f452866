"""A workspace admin: their rooms in the admin, servers, tools, secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import RunningTrellis, screenshot
from tests.e2e.people import ADMIN, MEMBER, enter
from tests.fakes.mcp_server import CountingServer

CANARY = "canary-header-value-5417"


@pytest.fixture
def counting() -> Iterator[CountingServer]:
    server = CountingServer()
    yield server
    server.stop()


def test_the_admin_shows_the_workspaces_rooms_and_no_others(page: Page) -> None:
    """Journey 2: members, invitations, buds, servers, tools, audit; nothing of the platform's."""
    enter(page, ADMIN)
    page.goto("/admin/")
    for name in ("Buds", "MCP servers", "Tools", "Memberships", "Invitations", "Audit entries"):
        expect(page.get_by_role("link", name=name).first).to_be_visible()
    for name in ("Users", "Stdio programs"):
        expect(page.get_by_role("link", name=name)).to_have_count(0)
    screenshot(page, "admin")
    page.goto("/admin/workspaces/user/")
    expect(page.get_by_role("heading", name=re.compile("users to", re.I))).to_have_count(0)


def test_a_member_does_not_enter_the_admin(page: Page) -> None:
    """SEC-01: the admin is for admins."""
    enter(page, MEMBER)
    page.goto("/admin/")
    expect(page.get_by_role("link", name="Memberships")).to_have_count(0)


def test_an_http_server_with_a_secret_header_is_added_tested_and_used(
    page: Page, trellis: RunningTrellis, counting: CountingServer
) -> None:
    """Journey 2: added on the servers page; status, latency, revision, badges; its secret is never shown again."""
    enter(page, ADMIN)
    page.goto("/w/demo/servers/")
    page.get_by_role("link", name="Add a server").click()
    form = page.locator("#add-server")
    form.locator("input[name=name]").fill("counting")
    form.locator("input[name=url]").fill(counting.url)
    form.locator("textarea[name=headers], input[name=headers]").first.fill(f"X-Secret: {CANARY}")
    form.get_by_role("button", name=re.compile("^Add")).last.click()
    card = page.locator("article.server", has_text="counting").first
    expect(card).to_be_visible()
    card.get_by_role("button", name=re.compile("Test connection")).click()
    expect(card).to_contain_text("Connected")
    expect(card).to_contain_text(re.compile(r"\d+ ms"))
    expect(card).to_contain_text(re.compile(r"20\d\d-\d\d-\d\d"))
    card.locator("summary.tools-summary").click()
    expect(card).to_contain_text("destroy")
    expect(card).to_contain_text(re.compile("destructive", re.I))
    screenshot(page, "servers")
    assert any(headers.get("x-secret") == CANARY for headers in counting.headers)
    for path in ("/w/demo/servers/", "/admin/mcp_servers/mcpserver/", "/api/servers/"):
        page.goto(path)
        assert CANARY not in page.content()


def test_a_tool_that_is_switched_off_is_gone_at_once(page: Page, trellis: RunningTrellis) -> None:
    """Journey 2: buds lose it at once, and have it back at once."""
    enter(page, ADMIN)
    page.goto("/w/demo/servers/")
    card = page.locator("article.server", has_text="mcp-time").first
    card.locator("summary.tools-summary").click()

    def calls() -> list[str]:
        done = trellis.manage(
            "ask", "--workspace", "demo", "--bud", "clock", "What time is it in Rome?"
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return [e["tool_call"]["tool"]["name"] for e in events if e["type"] == "tool_call.changed"]

    switch = card.get_by_role("switch", name=re.compile("get_current_time"))
    switch.click()
    expect(card).to_contain_text("1 switched on")
    assert "get_current_time" not in calls()
    switch.click()
    expect(card).to_contain_text("2 switched on")
    assert "get_current_time" in calls()
