"""The groups of the admin's pages. Each admin class names its own."""

from __future__ import annotations

from enum import StrEnum


class AdminSection(StrEnum):
    """What people come to a page for."""

    PEOPLE = "people"
    BUDS = "buds"
    TOOLS = "tools"
    RULES = "rules"
    LOG = "log"
    PLATFORM = "platform"
    """The platform owner's."""
