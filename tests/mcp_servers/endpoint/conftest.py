"""A server whose tools clients use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_servers.models import McpServer, McpTool
from mcp_servers.registry.demo.notes_server import Notebook, build_server
from tests.factories import Tenant
from tests.fakes.full_server import FullServer, full_server
from tests.fakes.mcp_server import Listening
from tests.mcp_servers.endpoint.leaving import runs_by_itself
from tests.mcp_servers.factories import http_server, looked_at, tool_of


@pytest.fixture
def notes(tenant: Tenant, tmp_path: Path) -> Iterator[McpServer]:
    """The demo's notes, used by every bud; over HTTP, since a program takes a second to start."""
    listening = Listening(build_server(Notebook(tmp_path)).streamable_http_app())
    server = http_server(
        tenant,
        f"{listening.origin}/mcp",
        name="notes",
        trusts_annotations=True,
        is_used_everywhere=True,
    )
    yield looked_at(tenant, server)
    listening.stop()


@pytest.fixture
def full() -> Iterator[tuple[FullServer, str]]:
    """A server one of whose tools says nothing for as long as one likes."""
    with full_server() as (server, listening):
        yield server, f"{listening.origin}/mcp"


@pytest.fixture
def silent(tenant: Tenant, full: tuple[FullServer, str]) -> McpTool:
    """That tool, which runs without asking."""
    server: McpServer = looked_at(
        tenant, http_server(tenant, full[1], name="full", is_used_everywhere=True)
    )
    return runs_by_itself(tool_of(server, "silent"))
