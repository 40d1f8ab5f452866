"""A server whose tools clients use."""

from __future__ import annotations

import pytest

from mcp_servers.models import McpServer
from tests.factories import Tenant
from tests.mcp_servers.factories import demo_server, looked_at


@pytest.fixture
def notes(tenant: Tenant) -> McpServer:
    """The demo's notes, used by every bud."""
    server = demo_server(tenant, "notes", trusts_annotations=True, is_used_everywhere=True)
    return looked_at(tenant, server)
