"""One-use permits for `tools/call`: what the gate decided is exactly what a connection sends, once.

The import rules let only the gate (through `calls`) mint a permit. A connection refuses to send a call without one, so
a caller that found its way round the gate would find no way to the wire.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID


class PermitRefused(RuntimeError):
    """A call without a permit, with a used one, or with another one's. Always a mistake in our own code."""


class CallPermit:
    """The right to send one call of one tool with one argument string."""

    __slots__ = ("_lock", "_spent", "arguments", "call_id", "server_id", "tool_name", "user_id")

    def __init__(
        self,
        *,
        call_id: UUID,
        server_id: UUID,
        tool_name: str,
        arguments: bytes,
        user_id: UUID | None = None,
    ) -> None:
        self.call_id = call_id
        self.server_id = server_id
        self.tool_name = tool_name
        self.arguments = arguments
        """Canonical JSON, as audited."""
        self.user_id = user_id
        """Whose call it is, for the trace."""
        self._spent = False
        self._lock = threading.Lock()

    def allows(self, tool_name: object) -> bool:
        """Whether it was spent for a call of this tool: what a connection asks before it sends one."""
        return self._spent and tool_name == self.tool_name

    def spend(self, *, server_id: UUID) -> None:
        """Use the permit up.

        Raises:
            PermitRefused: it was used before, or names another server.
        """
        with self._lock:
            if self._spent:
                raise PermitRefused("This permit has been used.")
            if server_id != self.server_id:
                raise PermitRefused("This permit is for another server.")
            self._spent = True
