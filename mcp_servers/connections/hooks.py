"""Where connections tell the rest of the app something; set once at start, so that starting imports no SDK."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID


def _ignore(server_id: UUID) -> None:
    pass


class Hooks:
    """The callbacks. Each runs in a thread of its own and may use the database."""

    tools_changed: Callable[[UUID], None] = staticmethod(_ignore)
    """A server says that its tools changed; at most once per second and server."""


hooks = Hooks()
