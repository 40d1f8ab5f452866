"""``manage.py backup``: database and files of conversations in one checked file, while people work."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.backups import BackupError, default_folder, make_backup
from config.management.progress import progress_on
from workspaces.words.formats import file_size


class Command(BaseCommand):
    """Says what is in the file and what is not."""

    help = "Copy the database and the files of conversations into one checked file."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", nargs="?", type=Path, help="a new file (in backups/ of the data folder)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        path = options["file"] or default_folder() / f"trellis-{stamp}.tar.gz"
        try:
            made = make_backup(path, progress_on(self.stderr))
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{made.path}  {file_size(made.size)}")
        self.stdout.write(f"In it: the database, and {made.files} files. Checked: it can be read.")
        self.stdout.write("Not in it:")
        for sentence in made.left_out:
            self.stdout.write(f"  - {sentence}")
