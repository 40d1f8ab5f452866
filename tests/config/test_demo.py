"""The demo workspace."""

from __future__ import annotations

import pytest

from chat.models import Bud
from config.demo import CONTENT, seed_demo
from config.workspace_files import WorkspaceTarget, apply_file
from mcp_servers.models import McpServer, ServerStatus
from tests.factories import Tenant
from workspaces.yaml_text import read_yaml

pytestmark = pytest.mark.django_db


def test_the_demo_is_made_of_a_file_and_made_whole_again() -> None:
    """REL-642: what is missing comes back, and what people changed stays as they changed it."""
    workspace = seed_demo()
    servers = McpServer.objects.for_workspace(workspace)
    assert {one.name: one.state.status for one in servers} == {
        "time": ServerStatus.CONNECTED,
        "notes": ServerStatus.CONNECTED,
    }
    buds = Bud.objects.for_workspace(workspace)
    assert set(buds.values_list("slug", flat=True)) == {"clock", "notes", "writer", "companion"}
    assert len(buds.get(slug="companion").mcp.servers) == 2
    buds.filter(slug="clock").update(name="Our clock")
    buds.filter(slug="writer").delete()
    seed_demo()
    assert buds.get(slug="clock").name == "Our clock"
    assert buds.get(slug="writer").makes_artifacts


def test_any_workspace_takes_the_demos_file(tenant: Tenant) -> None:
    """REL-642: its servers and buds are a workspace's file like any other."""
    seed_demo()
    target = WorkspaceTarget(tenant.workspace, tenant.actor("owner"))
    applied = apply_file(target, read_yaml(CONTENT.read_text()))
    assert "+- name: Companion" in applied.diff
    assert not applied.notes
