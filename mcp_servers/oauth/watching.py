"""Closes this process's connections whose grant is gone: it may have been ended in any other process.

No request would be let through with it any more; this ends what is still open, such as the stream for a server's own
messages, within seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from django.db import DatabaseError

from mcp_servers.models import OAuthGrant
from workspaces.database import in_database

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 2.0

_task: asyncio.Task[None] | None = None


def watch() -> None:
    """Look after grants from now on, as long as there are connections that use one. On the connections' loop."""
    global _task
    loop = asyncio.get_running_loop()
    if _task is None or _task.done() or _task.get_loop() is not loop:
        _task = loop.create_task(_look_after())


async def _look_after() -> None:
    from mcp_servers.connections.pool import pool

    seen: set[tuple[UUID, str]] = set()
    while principals := pool.granted():
        try:
            live = await in_database(_live, [server_id for _, server_id, _ in principals])
        except DatabaseError:
            live = seen  # looked at again in a moment
        for _, server_id, principal in principals:
            # One that is only just being made is not gone.
            if (server_id, principal) in seen - live:
                await pool.drop(server_id, principal=principal)
        seen = live
        await asyncio.sleep(LOOK_SECONDS)


def _live(server_ids: list[UUID]) -> set[tuple[UUID, str]]:
    rows = OAuthGrant.objects.across_workspaces().filter(server_id__in=server_ids)
    found: Iterable[tuple[UUID, UUID | None]] = rows.exclude(tokens=None).values_list(
        "server_id", "user_id"
    )
    return {
        (server_id, f"user:{user_id}" if user_id is not None else "workspace")
        for server_id, user_id in found
    }
