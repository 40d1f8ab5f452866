"""``manage.py restore``: bring a backup back, after all of it was checked."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.backups import BackupError, restore_backup
from config.doctor import FindingState, examine_part
from config.management.progress import progress_on
from workspaces.secrets import PUT_BACK, find_unreadable, unreadable_in_words


class Command(BaseCommand):
    """Changes nothing before the whole file was read and found in order."""

    help = "Bring back a file that 'manage.py backup' made. Stop every process first."
    requires_system_checks: list[str] = []  # there may be no database yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--replace",
            action="store_true",
            help="put it in the place of the database that is there",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            tell = progress_on(self.stderr)
            done = restore_backup(options["file"], replaces=options["replace"], tell=tell)
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Restored: the database as of {done.made_at}, and {done.files} files.")
        if done.old_database is not None:
            self.stdout.write(f"The database that was here is kept: {done.old_database}")
        if unreadable := find_unreadable():
            self.stdout.write(
                f"The keys here do not belong to it: {unreadable_in_words(unreadable)}. {PUT_BACK}"
            )
        files = examine_part("files")
        if files.state is not FindingState.OK:
            self.stdout.write(f"Files: {files.text}. {files.advice}")
        self.stdout.write(
            "Next: start one server. What was under way is marked as interrupted. Webhooks, streams of the log and scheduled work wait, "
            "until you have looked and run: python3 manage.py confirm_restore"
        )
