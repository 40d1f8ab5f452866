"""How many calls a day a server may be sent."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import close_old_connections, transaction

from mcp_servers.models import CallCount, McpServer
from mcp_servers.registry.quotas import KEPT_DAYS, take_from_quota, trim_counts
from tests.factories import make_tenant
from tests.threads import Threads
from workspaces.database import database_now

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server() -> McpServer:
    tenant = make_tenant("acme")
    return McpServer.objects.create(
        workspace=tenant.workspace,
        name="counted",
        url="https://mcp.example.org/",
        connection_config={"calls_per_day": 10},
    )


def used(server: McpServer) -> list[int]:
    return [row.used for row in CallCount.objects.for_workspace(server.workspace_id)]


def test_a_hundred_at_once_get_exactly_ten(server: McpServer) -> None:
    """SEC-79: on many connections side by side, also where the day's first count is made by all of them."""

    def take(_: int) -> bool:
        try:
            with transaction.atomic():
                return take_from_quota(server, server.workspace_id)
        finally:
            close_old_connections()

    with Threads(8) as pool:
        taken = list(pool.map(take, range(100)))
    assert sum(taken) == 10
    assert used(server) == [10]


def test_what_is_rolled_back_is_not_counted(server: McpServer) -> None:
    """SEC-79: the count is part of the call's own transaction."""
    with pytest.raises(RuntimeError), transaction.atomic():
        assert take_from_quota(server, server.workspace_id)
        raise RuntimeError
    assert used(server) == []


def test_each_day_and_each_server_has_its_own_count(server: McpServer) -> None:
    """And without a limit nothing is counted at all."""
    CallCount.objects.create(
        workspace_id=server.workspace_id,
        server_id=server.pk,
        day=database_now().date() - timedelta(days=1),
        used=10,
    )
    assert take_from_quota(server, server.workspace_id)
    other = McpServer(id=uuid4(), workspace_id=server.workspace_id, name="free")
    assert take_from_quota(other, server.workspace_id)
    assert sorted(used(server)) == [1, 10]


def test_old_counts_are_forgotten(server: McpServer) -> None:
    """After a month."""
    CallCount.objects.create(
        workspace_id=server.workspace_id,
        server_id=server.pk,
        day=database_now().date() - timedelta(days=KEPT_DAYS + 1),
        used=3,
    )
    assert trim_counts() == 1
