"""Where connections tell the rest of the app something; set once at start, so that starting imports no SDK."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from mcp_servers.client.connections.tracing import TraceRecord


def _ignore(*_: object) -> None:
    pass


class Hooks:
    """The callbacks. Each runs in a thread of its own and may use the database."""

    tools_changed: Callable[[UUID], None] = staticmethod(_ignore)
    """A server says that its tools changed; at most once per second and server. So do the next two."""
    prompts_changed: Callable[[UUID], None] = staticmethod(_ignore)
    resources_changed: Callable[[UUID], None] = staticmethod(_ignore)
    resource_updated: Callable[[UUID, UUID, str], None] = staticmethod(_ignore)
    """Workspace, server, URI: the content of a watched resource changed; at most once per second and resource."""
    elicitation_completed: Callable[[UUID, str], None] = staticmethod(_ignore)
    """Server and elicitation id: what a person was sent to a URL for is done."""
    traced: Callable[[Sequence[TraceRecord]], None] | None = None
    """Messages and events of all connections, a batch about twice a second; None: nothing is kept."""


hooks = Hooks()
