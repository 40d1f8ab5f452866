"""A tool whose arguments hold themselves: an admin fills in a tree of folders, and tries the tool."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import NewContext, RunningTrellis
from tests.e2e.looks import look_at
from tests.e2e.people import ADMIN, enter

ADD = """
from django.utils import timezone
from mcp_servers.models import McpServer, McpTool
from mcp_servers.registry.services import ServerDraft, add_server
from workspaces.actors import Source
from workspaces.middleware import actor_for
from workspaces.models import User, Workspace
demo = Workspace.objects.get(slug="demo")
actor = actor_for(User.objects.get(email="admin@demo.example"), demo, source=Source.COMMAND)
draft = ServerDraft(name="tree", transport="streamable_http", url="https://tree.example/mcp")
server = add_server(workspace_id=demo.pk, draft=draft, actor=actor)
folder = {"type": "object", "required": ["name"], "properties": {
    "name": {"$ref": "#/$defs/name"},
    "folders": {"type": "array", "title": "Folders", "items": {"$ref": "#/$defs/folder"}},
}}
schema = {"$ref": "#/$defs/folder", "type": "object", "$defs": {
    "folder": folder, "name": {"type": "string", "title": "Folder name"},
}}
tool = McpTool.objects.create(workspace=demo, server=server, name="make_tree", input_schema=schema,
    definition_hash="h", approved_hash="h", last_seen_at=timezone.now())
print(f"/w/demo/servers/{server.pk}/tools/{tool.pk}/try/")
"""
REMOVE = """
from mcp_servers.models import McpServer
McpServer.objects.across_workspaces().filter(name="tree").delete()
"""


@pytest.fixture
def address(trellis: RunningTrellis) -> Iterator[str]:
    """Of the page on which the tool is tried."""
    yield trellis.shell(ADD).strip().splitlines()[-1]
    trellis.shell(REMOVE)


@pytest.mark.screens("1280-light", reason="goes through widths and themes itself")
def test_a_tree_of_arguments_is_filled_in(new_context: NewContext, address: str) -> None:
    """REL-1643: fields for some levels, JSON below them, in both themes and on a phone."""
    page = new_context(viewport={"width": 1280, "height": 1000}, bypass_csp=True).new_page()
    enter(page, ADMIN, at=address)
    page.get_by_label("Folder name").fill("Plants")
    page.get_by_role("button", name=re.compile("Add")).first.click()
    page.get_by_label("Folder name").nth(1).fill("Roses")
    look_at(page, "nested-arguments", always_all=True)
    page.get_by_role("button", name="Write JSON").click()
    expect(page.get_by_label("Arguments, as JSON")).to_have_value(
        re.compile(r'"name": "Plants",\s+"folders": \[\s+\{\s+"name": "Roses"')
    )
