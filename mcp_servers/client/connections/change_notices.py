"""News of servers, handed to the hooks at a bounded pace: a storm becomes one call a second, and the last is never lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp_servers.client.connections.hooks import hooks
from mcp_servers.client.sdk import mcp_types

if TYPE_CHECKING:
    from mcp_servers.client.spec import ConnectionSpec

logger = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 1.0
"""Between two hook calls about the same thing."""
MAX_SUBJECTS: Final = 10_000
"""Things that may be waited for at a time; a server cannot make us remember more by inventing addresses."""


class ChangeNotices:
    """Calls hooks in threads. Used on the runtime's loop only."""

    def __init__(self) -> None:
        self._told_at: dict[Hashable, float] = {}
        self._waiting: dict[Hashable, asyncio.TimerHandle] = {}

    def hear(self, spec: ConnectionSpec, message: object) -> None:
        """Hand on what a server says by itself, if anybody wants to know."""
        server = spec.server_id
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self.tell(("tools", server), "tools_changed", server)
        elif isinstance(message, mcp_types.PromptListChangedNotification):
            self.tell(("prompts", server), "prompts_changed", server)
        elif isinstance(message, mcp_types.ResourceListChangedNotification):
            self.tell(("resources", server), "resources_changed", server)
        elif isinstance(message, mcp_types.ResourceUpdatedNotification):
            uri = str(message.params.uri)
            subject = ("resource", server, uri)
            self.tell(subject, "resource_updated", spec.workspace_id, server, uri)
        elif isinstance(message, mcp_types.ElicitCompleteNotification):
            elicitation_id = message.params.elicitation_id
            self.tell(
                ("elicited", server, elicitation_id),
                "elicitation_completed",
                server,
                elicitation_id,
            )

    def tell(self, subject: Hashable, hook: str, *facts: Any) -> None:
        """Call a hook, by its name, now or as soon as a second has passed since it was last called about this subject."""
        loop = asyncio.get_running_loop()
        if subject in self._waiting:
            return
        wait = self._told_at.get(subject, -PAUSE_SECONDS) + PAUSE_SECONDS - loop.time()
        if wait <= 0:
            self._tell(subject, hook, *facts)
        elif len(self._waiting) < MAX_SUBJECTS:
            self._waiting[subject] = loop.call_later(
                wait, partial(self._tell, subject, hook, *facts)
            )

    def forget(self) -> None:
        """Drop what waits; the loop ends."""
        for handle in self._waiting.values():
            handle.cancel()
        self._waiting.clear()
        self._told_at.clear()

    def _tell(self, subject: Hashable, hook: str, *facts: Any) -> None:
        loop = asyncio.get_running_loop()
        self._waiting.pop(subject, None)
        if len(self._told_at) >= MAX_SUBJECTS:
            limit = loop.time() - PAUSE_SECONDS
            self._told_at = {key: at for key, at in self._told_at.items() if at > limit}
        self._told_at[subject] = loop.time()
        loop.run_in_executor(None, _call, hook, *facts)


def _call(hook: str, *facts: Any) -> None:
    try:
        getattr(hooks, hook)(*facts)
    except Exception:
        logger.exception("news of a server could not be handed on")
