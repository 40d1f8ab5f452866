"""Servers to talk to, and connections that end with each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcp_servers.client.connections import runtime
from mcp_servers.models import McpServer
from tests.factories import Tenant, make_tenant
from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.factories import http_server, looked_at


@pytest.fixture(autouse=True)
def closed_connections() -> Iterator[None]:
    """No test leaves a connection, a thread or a child to the next."""
    yield
    runtime.shutdown(2.0)


@pytest.fixture
def counting() -> Iterator[CountingServer]:
    """A server that counts what it does."""
    server = CountingServer()
    yield server
    server.stop()


@pytest.fixture
def tenant(transactional_db: None) -> Tenant:
    """A workspace with a person in each role."""
    return make_tenant("acme")


@pytest.fixture
def trusted(tenant: Tenant, counting: CountingServer) -> McpServer:
    """The counting server, discovered by an administrator who trusts what it says about its tools."""
    return looked_at(
        tenant, http_server(tenant, counting.url, name="counting", trusts_annotations=True)
    )
