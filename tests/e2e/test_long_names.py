"""Names without a blank, as long as the protocol lets them be: pages stay as wide as the screen."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.accessibility import find_overflow, trying_others
from tests.e2e.conftest import RunningTrellis
from tests.e2e.people import ADMIN, enter

NAME = "list_" + "x" * 123
"""MCP specification, "Tools": Tool Names: up to 128 characters."""
MAKE = f"""
from django.utils import timezone
from mcp_servers.models import CallRule, McpPrompt, McpServer, McpTool
from workspaces.models import Workspace
workspace = Workspace.objects.get(slug="demo")
server, is_new = McpServer.unscoped.get_or_create(
    workspace=workspace,
    name="long names",
    defaults={{"transport": "streamable_http", "url": "https://a.example/mcp", "is_active": False}},
)
if is_new:
    both = {{"workspace": workspace, "server": server, "name": "{NAME}", "last_seen_at": timezone.now()}}
    McpTool.objects.create(**both, input_schema={{"type": "object"}}, definition_hash="a", approved_hash="a")
    McpPrompt.objects.create(**both)
    CallRule.objects.create(workspace=workspace, name="{NAME[:100]}", effect="confirm", is_enabled=False)
"""


def expect_fits_everywhere(page: Page) -> None:
    """On a desk and on a phone."""
    with trying_others(page):
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 844})
            assert find_overflow(page) == 0, f"{page.url} at {width} px"


def test_a_long_name_makes_no_page_wider(trellis: RunningTrellis, page: Page) -> None:
    """REL-2119: in the lists of a server, where its tool is tried, and among call rules."""
    trellis.shell(MAKE)
    enter(page, ADMIN, at="/w/demo/servers/")
    card = page.get_by_role("article").filter(has=page.get_by_role("heading", name="long names"))
    card.get_by_text("1 tool").click()
    expect(card.get_by_text(NAME, exact=True).first).to_be_visible()
    expect_fits_everywhere(page)
    address = card.get_by_role("link", name="Try").get_attribute("href")
    card.get_by_role("link", name="1 prompt").click()
    expect(page.get_by_text(NAME, exact=True).first).to_be_visible()
    expect_fits_everywhere(page)
    assert address is not None
    page.goto(address)
    expect(page.get_by_role("heading", name=f"Try {NAME}")).to_be_visible()
    expect_fits_everywhere(page)
    page.goto("/w/demo/servers/call-rules/")
    expect(page.get_by_text(NAME[:100], exact=True)).to_be_visible()
    expect_fits_everywhere(page)
    page.goto("/w/demo/")
    # Words that somebody chose as a bud's icon do not lie over what is beside it.
    expect(page.locator(".avatar-tile").first).to_have_css("overflow", "hidden")
