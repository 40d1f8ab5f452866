"""``manage.py write_wire``: the web app's types and the page about the socket, printed from the code."""

from __future__ import annotations

import json
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.core.management.base import CommandParser

from config.env import ROOT
from config.wire.page import write_page
from config.wire.shapes import Wire
from config.wire.web import write_types


class Command(BaseCommand):
    """Writes the files, or says whether they are up to date."""

    help = "Write chat/web/src/wire.ts, docs/protocol.md and docs/protocol.json from the code."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="Only say whether they are up to date."
        )

    def handle(self, *_args: object, **options: Any) -> None:
        wire = Wire()
        files = {
            "docs/protocol.json": json.dumps(wire.as_json_schema(), indent=2) + "\n",
            "docs/protocol.md": write_page(wire),
            "chat/web/src/wire.ts": write_types(wire),
        }
        old = []
        for name, text in files.items():
            path = ROOT / name
            if not options["check"]:
                path.write_text(text)
            elif not path.exists() or path.read_text() != text:
                old.append(name)
        if old:
            raise CommandError(f"{', '.join(old)} is old: run manage.py write_wire")
