"""``manage.py conformance``: every client scenario of the official MCP suite against our connections, as a table."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Exit code 0 if all pass or are explained, 1 if not, 2 if the suite cannot be had."""

    help = "Runs the official MCP conformance suite's client scenarios against this platform's connections."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--scenario", action="append", help="only this one; may be repeated")
        parser.add_argument(
            "--once", action="store_true", help="each scenario as the newest release has it"
        )
        parser.add_argument("--results", help="a folder that keeps what the suite saw")

    def handle(self, *args: Any, **options: Any) -> None:
        # The suite's client is no part of the product: it sends calls that passed no gate.
        command = [sys.executable, "-m", "tests.conformance.run"]
        for scenario in options["scenario"] or ():
            command += ["--scenario", scenario]
        if options["once"]:
            command.append("--once")
        if options["results"]:
            command += ["--results", options["results"]]
        sys.exit(subprocess.run(command, check=False).returncode)  # noqa: S603
