"""The MCP SDK, loaded by whoever first needs a name of it.

It takes half a second and 23 MB, and most processes speak to no server: commands, schedulers, most workers. Import it
from here, and use its names within functions. Modules that are themselves loaded on use may import it as usual.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["load", "mcp", "mcp_types", "shapes"]

if TYPE_CHECKING:
    import mcp
    import mcp.shared.message
    import mcp_types
    import mcp_types.version

    from mcp_servers.client import shapes
else:

    class _Package:
        """Stands for a package, and keeps each name that was asked for."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self._name), name)
            setattr(self, name, value)
            return value

    mcp = _Package("mcp")
    mcp_types = _Package("mcp_types")
    shapes = _Package("mcp_servers.client.shapes")


def load() -> None:
    """Load it now, so that no call waits for it."""
    import_module("mcp_servers.client.shapes")
    import_module("mcp")
