"""Where tasks are: in each app's `tasks`, and in those of these parts of apps."""

from __future__ import annotations

from importlib import import_module
from typing import Final

PARTS: Final = ("mcp_servers.registry", "mcp_servers.endpoint")


def load_tasks() -> None:
    """Import all of them, as a worker does, so that each says when it runs."""
    from django.utils.module_loading import autodiscover_modules

    autodiscover_modules("tasks")
    for part in PARTS:
        import_module(f"{part}.tasks")
