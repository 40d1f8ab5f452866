"""``manage.py doctor``: one line for each part of the installation, and what to do about those that are not well.

Exit status: 0 nothing has failed, 1 something has.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.doctor import DoctorFinding, FindingState, examine

_SIGNS = {FindingState.OK: "ok", FindingState.LOOK: "LOOK", FindingState.FAILED: "FAILED"}


class Command(BaseCommand):
    """Looks, and changes nothing."""

    help = "Check settings, keys, clocks, disk, triggers, queues and seals, and say what to do about each."
    requires_system_checks: list[str] = []  # they are one of the lines

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON list")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = examine()
        if options["json"]:
            self.stdout.write(json.dumps([asdict(one) for one in findings], indent=1))
        else:
            for one in findings:
                self._print(one)
        failed = [one.part for one in findings if one.state is FindingState.FAILED]
        if failed:
            raise CommandError(f"Not well: {', '.join(failed)}.", returncode=1)

    def _print(self, finding: DoctorFinding) -> None:
        self.stdout.write(f"{_SIGNS[finding.state]:<7} {finding.part:<10} {finding.text}")
        if finding.advice:
            self.stdout.write(f"{'':<18} → {finding.advice}")
