"""``manage.py chaos``: people talk while processes and services are killed, and in the end everything has to be right."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Exit code 0 if nothing was lost, doubled, stuck or unrecorded, 1 if something was, 2 if it cannot run here."""

    help = "Starts an installation of its own, hurts it while conversations run, and checks what is stored."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--turns", type=int, default=200, help="how many turns are lived through"
        )
        parser.add_argument(
            "--seed", type=int, help="which faults, in which order; printed by each run"
        )
        parser.add_argument(
            "--short", action="store_true", help="about a minute, with short leases"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        # What hurts an installation is no part of the product, and starts one for itself.
        command = [sys.executable, "-m", "tests.chaos.run", "--turns", str(options["turns"])]
        if options["seed"] is not None:
            command += ["--seed", str(options["seed"])]
        if options["short"]:
            command.append("--short")
        sys.exit(subprocess.run(command, check=False).returncode)  # noqa: S603
