"""A transport is one entry: what people choose, lists of servers say and connections open is read from it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import pytest

from mcp_servers.client import transports
from mcp_servers.client.connections import streams
from mcp_servers.client.transports.targets import HttpSpec
from mcp_servers.pages.forms import AddServerForm
from mcp_servers.registry.files.file_format import read_server_list
from tests.factories import Tenant
from workspaces.outbound import parse_endpoint


@pytest.fixture
def pigeon(monkeypatch: pytest.MonkeyPatch) -> str:
    """Another transport, made known by its entry alone."""
    monkeypatch.setattr(transports, "_transports", dict(transports._transports))

    def open_streams(target: Any, opened: Any) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        return nullcontext((target, opened))

    return transports.register(
        transports.Transport(
            name="pigeon",
            label="Carrier pigeon",
            load=lambda: open_streams,
            schemes=("pigeon",),
            keywords=("coo",),
        )
    )


def test_an_entry_is_all_that_a_transport_takes(tenant: Tenant, pigeon: str) -> None:
    """Ours."""
    field = AddServerForm(workspace=tenant.workspace).fields["transport"]
    assert (pigeon, "Carrier pigeon") in list(field.choices)  # type: ignore[attr-defined]
    assert "pigeon:// is reached over Carrier pigeon" in transports.address_help()
    listed = read_server_list('{"mcpServers": {"loft": {"type": "coo", "url": "pigeon://loft"}}}')
    assert [entry.transport for entry in listed.entries] == [pigeon]
    assert transports.keyword_of(pigeon) == "coo"
    assert "pigeon" in transports.schemes_of(transports.AUTO)
    endpoint = parse_endpoint("https://loft.example")
    assert streams.kinds_for(HttpSpec(endpoint=endpoint, transport=pigeon)) == [pigeon]


async def test_connections_open_what_the_entry_gives(pigeon: str) -> None:
    """Ours."""
    target = HttpSpec(endpoint=parse_endpoint("https://loft.example"), transport=pigeon)
    async with streams.open_streams(target, pigeon, opened=None) as opened:  # type: ignore[arg-type]
        assert opened == (target, None)


def test_every_entry_has_its_opener() -> None:
    """Ours."""
    for name in [name for name, _ in transports.choices() if name != transports.AUTO]:
        assert callable(transports.transport_named(name).load())


@pytest.mark.parametrize("name", [name for name, _ in transports.choices()])
def test_what_a_list_says_goes_there_and_back(name: str) -> None:
    """Ours."""
    assert transports.by_keyword(transports.keyword_of(name)) == name


def test_an_address_may_leave_no_choice() -> None:
    """Ours."""
    assert transports.for_address(transports.AUTO, "wss") == transports.WEBSOCKET
    assert transports.for_address(transports.SSE, "https") == transports.SSE
    assert transports.for_address(transports.AUTO, "https") == transports.AUTO
