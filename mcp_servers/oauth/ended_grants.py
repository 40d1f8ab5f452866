"""Closes this process's connections whose grant is gone: it may have been ended in any other process.

No request would be let through with it any more; this ends what is still open, such as the stream for a server's own
messages, within seconds.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol, cast
from uuid import UUID

from django.db import DatabaseError

from mcp_servers.client.connections.pool import pool
from mcp_servers.models import OAuthGrant
from workspaces.database import in_database

if TYPE_CHECKING:
    from mcp_servers.client.connections.connection import Connection
    from mcp_servers.client.transports.targets import HttpSpec
    from mcp_servers.oauth.grants import Holder

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 2.0

_task: asyncio.Task[None] | None = None


class HasHolder(Protocol):
    """What puts tokens on requests, and whose they are."""

    holder: Holder
    is_client: bool


def watch() -> None:
    """Look after grants from now on, as long as there are connections that use one. On the connections' loop."""
    global _task
    loop = asyncio.get_running_loop()
    if _task is None or _task.done() or _task.get_loop() is not loop:
        _task = loop.create_task(_look_after())


async def _look_after() -> None:
    while connections := pool.granted():
        # A client of our own gets its next token without anybody, so its connections stay.
        watched = [one for one in connections if one.opened.done() and not _auth_of(one).is_client]
        try:
            live = await in_database(_live, [one.spec.server_id for one in watched])
        except DatabaseError:
            logger.info("grants_not_looked_at", exc_info=True)
        else:
            for one in watched:
                if _holder_of(one) not in live:
                    await pool.drop(one.spec.server_id, principal=one.spec.principal)
        await asyncio.sleep(LOOK_SECONDS)


def _holder_of(connection: Connection) -> tuple[UUID, UUID | None]:
    holder = _auth_of(connection).holder
    return (holder.server_id, holder.user_id)


def _auth_of(connection: Connection) -> HasHolder:
    return cast("HasHolder", cast("HttpSpec", connection.spec.target).auth)


def _live(server_ids: list[UUID]) -> set[tuple[UUID, UUID | None]]:
    rows = OAuthGrant.objects.across_workspaces().filter(server_id__in=server_ids)
    return set(rows.exclude(tokens=None).values_list("server_id", "user_id"))
