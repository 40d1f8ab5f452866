"""``manage.py conformance``: every client scenario of the official MCP suite against our connections, as a table."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mcp_servers.conformance import suite


class Command(BaseCommand):
    """Exit code 0 if all pass or are explained, 1 otherwise."""

    help = "Runs the official MCP conformance suite's client scenarios against this platform's connections."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--scenario", action="append", help="only this one; may be repeated")
        parser.add_argument("--results", type=Path, help="a folder that keeps what the suite saw")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            folder = suite.install()
        except suite.SuiteUnavailable as error:
            raise CommandError(str(error)) from error
        with tempfile.TemporaryDirectory() as scratch:
            ended = [
                one
                for release in suite.RELEASES
                for one in self._run(
                    folder, release, options["scenario"], options["results"] or Path(scratch)
                )
            ]
        bad = [one for one in ended if not one.is_good]
        self.stdout.write(
            f"{len(ended)} scenarios, {sum(one.passed for one in ended)} checks passed."
        )
        if bad:
            raise CommandError(f"{len(bad)} failed: {', '.join(one.scenario for one in bad)}")

    def _run(
        self, folder: Path, release: str, only: list[str] | None, results: Path
    ) -> list[suite.Ended]:
        wanted = [name for name in suite.scenarios(folder, release) if not only or name in only]
        self.stdout.write(f"\n{release} {suite.version_of(folder, release)}")
        ended = []
        for one in suite.run(folder, release, wanted, results):
            word = "pass" if one.is_good else "FAIL"
            counts = f"{one.passed:3} passed {one.failed:2} failed {one.warned:2} warned"
            note = suite.EXPLAINED.get(one.scenario, "") or one.note
            self.stdout.write(f"  {word}  {one.scenario:45} {counts}  {note}".rstrip())
            ended.append(one)
        return ended
