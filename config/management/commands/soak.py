"""manage.py soak: what grows while people and servers work for a long time."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

_OPTIONS = ("minutes", "servers", "people", "interval")


class Command(BaseCommand):
    help = "Have people and servers work for a time, and say whether memory, descriptors or tables grow."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--minutes", default="60", help="How long (60).")
        parser.add_argument("--servers", default="50", help="How many MCP servers (50).")
        parser.add_argument("--people", default="20", help="How many people write (20).")
        parser.add_argument("--interval", default="5", help="Seconds between two samples (5).")

    def handle(self, *args: Any, **options: Any) -> None:
        # A process of its own, with a database of its own: settings are read once.
        given = [part for name in _OPTIONS for part in (f"--{name}", str(options[name]))]
        command = [sys.executable, "-m", "bench.soak", *given]
        sys.exit(subprocess.run(command, check=False).returncode)  # noqa: S603
