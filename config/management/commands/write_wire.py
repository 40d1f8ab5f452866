"""``manage.py write_wire``: the web app's types and the page about the socket, printed from the code."""

from __future__ import annotations

import json

from config.management.generated import GeneratingCommand
from config.wire.page import write_page
from config.wire.shapes import Wire
from config.wire.web import write_types


class Command(GeneratingCommand):
    """Writes what the wire is, for programs, people and the web app."""

    help = "Write chat/web/src/wire.ts, docs/protocol.md and docs/protocol.json from the code."

    def make_files(self) -> dict[str, str]:
        wire = Wire()
        return {
            "docs/protocol.json": json.dumps(wire.as_json_schema(), indent=2) + "\n",
            "docs/protocol.md": write_page(wire),
            "chat/web/src/wire.ts": write_types(wire),
        }
