"""How often one request goes out: each sending with an entry *requested* of its own, and none twice that may do harm."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from audit.errors import AuditUnavailable
from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.errors import ConnectionFailed
from mcp_servers.gate.recording import completed
from mcp_servers.gate.signing_in import CannotGoOn
from workspaces.database import in_database

T = TypeVar("T")


class Sendings:
    """The sendings of one request. The first one's *requested* was committed when the request was let through.

    Args:
        write: records another *requested*; told what the sending comes after.
        may_repeat: doing it twice does no more than doing it once.
    """

    def __init__(self, write: Callable[[str], None], *, may_repeat: bool) -> None:
        self._write = write
        self._may_repeat = may_repeat
        self._has_new_session = False
        self.was_sent = False
        self.after = ""
        """What the last sending came to, or what has happened since."""

    async def make(self, send: Callable[[], Awaitable[T]]) -> T:
        """Send it; once more if the server has forgotten the session, and the request may be repeated.

        Raises:
            CannotGoOn: another sending could not be recorded, so it was not made.
        Source: MCP 2025-11-25, "Transports": Session Management.
        """
        while True:
            was_sent = self.was_sent
            if was_sent:
                await self._record()
            self.was_sent = True
            try:
                return await send()
            except ConnectionFailed:
                self.was_sent = was_sent
                raise
            except CallFailed as error:
                self.after = error.kind
                if error.kind != "session_lost" or self._has_new_session or not self._may_repeat:
                    raise
                self._has_new_session = True

    async def _record(self) -> None:
        try:
            _, was_cancelled = await completed(in_database(self._write, self.after))
        except AuditUnavailable as error:
            words = "The audit log could not be written, so the request was not sent again."
            raise CannotGoOn(words, kind="audit_unavailable") from error
        if was_cancelled:
            raise asyncio.CancelledError
