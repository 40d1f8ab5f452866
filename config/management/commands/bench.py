"""manage.py bench: what the product adds to the bare clients, as ratios."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Measure the product against the bare clients, in a database of its own."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--gateway", action="store_true", help="also measure another gateway, installed for it"
        )
        parser.add_argument(
            "--write", action="store_true", help="put the table into docs/performance.md"
        )
        parser.add_argument(
            "--cluster",
            action="store_true",
            help="instead measure two servers and a worker, also while they are replaced one by one",
        )
        parser.add_argument(
            "--growth",
            action="store_true",
            help="instead measure pages and turns of a large installation beside an empty one",
        )
        parser.add_argument(
            "--finding",
            action="store_true",
            help="instead measure search among a million messages, also the first one of a connection",
        )
        parser.add_argument(
            "--pages",
            action="store_true",
            help="instead measure in a browser what the chat weighs, and how soon and smoothly it works",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        # A process of its own: settings are read once, and these must not be the running product's.
        more = [f"--{name}" for name in ("gateway", "write") if options[name]]
        command = [sys.executable, "-m", "bench.run", *more]
        if options["cluster"]:
            command = [sys.executable, "-m", "bench.cluster", *more]
        if options["growth"]:
            command = [sys.executable, "-m", "bench.growth"]
        if options["finding"]:
            command = [sys.executable, "-m", "bench.finding"]
        if options["pages"]:
            command = [sys.executable, "-m", "bench.pages", *more]
        sys.exit(subprocess.run(command, check=False).returncode)  # noqa: S603
