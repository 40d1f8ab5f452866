"""The catalogue entries that come with the platform. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcp_servers.models.programs import OWN_INTERPRETER


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSeed:
    """A catalogue entry to be."""

    slug: str
    title: str
    description: str
    command: str = OWN_INTERPRETER
    args: tuple[str, ...]
    parameters: tuple[Mapping[str, Any], ...] = field(default=())


TIME_SERVER: Final = ProgramSeed(
    slug="time",
    title="Time",
    description="Tells the time anywhere, and converts between time zones.",
    args=("-m", "mcp_server_time", "--local-timezone={timezone}"),
    parameters=(
        {
            "name": "timezone",
            "title": "Local time zone",
            "help": "As in the IANA database, such as Europe/Berlin.",
            "type": "word",
            "default": "UTC",
        },
    ),
)

NOTES_SERVER: Final = ProgramSeed(
    slug="notes",
    title="Notes",
    description="Keeps short notes; shows what reading, writing, deleting and slow tools are like.",
    args=(str(Path(__file__).with_name("notes_server.py")),),
)

PROGRAMS: Final = (TIME_SERVER, NOTES_SERVER)
