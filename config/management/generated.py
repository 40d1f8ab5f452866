"""Commands that write files of this repository from its code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.core.management.base import CommandParser

from config.env import ROOT


class GeneratingCommand(BaseCommand, ABC):
    """Writes its files, or says whether they are up to date."""

    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="Only say whether they are up to date."
        )

    def handle(self, *_args: object, **options: Any) -> None:
        old = []
        for name, text in self.make_files().items():
            path = ROOT / name
            if not options["check"]:
                path.write_text(text)
            elif not path.exists() or path.read_text() != text:
                old.append(name)
        if old:
            command = type(self).__module__.rpartition(".")[2]
            raise CommandError(f"{', '.join(old)} is old: run manage.py {command}")

    @abstractmethod
    def make_files(self) -> Mapping[str, str]:
        """Path below the root → what the file has to hold.

        Raises:
            CommandError: what it is made from has a fault.
        """
