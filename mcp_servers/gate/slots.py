"""The place among a server's requests that a running one holds, and gives back while people keep it waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_servers.client.connections import calls

if TYPE_CHECKING:
    from mcp_servers.client.spec import ConnectionSpec
    from mcp_servers.models import McpServer
    from workspaces.actors import Actor


class HeldSlot:
    """One request's slot: given back at its end, when it has become a task, and while it waits for a sign-in."""

    def __init__(self, spec: ConnectionSpec, server: McpServer, actor: Actor) -> None:
        self._slots = calls.slots_of(spec)
        self._group = str(actor.user_id or actor.label)
        self._wait_seconds = server.config.queue_seconds
        self._is_held = False

    def try_take(self) -> bool:
        """Take a free one, if nobody waits for it."""
        self._is_held = self._is_held or self._slots.try_take()
        return self._is_held

    async def take(self) -> None:
        """Wait for a free one.

        Raises:
            Busy: there was none in time.
        """
        await self._slots.take(self._group, wait_seconds=self._wait_seconds)
        self._is_held = True

    def give_back(self) -> None:
        """Let another request have it; harmless without one."""
        if self._is_held:
            self._is_held = False
            self._slots.give_back()
