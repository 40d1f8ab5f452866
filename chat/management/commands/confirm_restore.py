"""``manage.py confirm_restore``: after a restore from a backup, let things be done by themselves again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from chat import restore_confirmation
from workspaces.command_arguments import person_at_machine


class Command(BaseCommand):
    """Says whether there was something to confirm."""

    help = "Lets what waits since a restore from a backup go on: mails, webhooks, streams, schedules, deletions."
    requires_system_checks: list[str] = []  # they load every page

    def handle(self, *args: Any, **options: Any) -> None:
        # Before the first start after a restore, nobody else has looked yet.
        restore_confirmation.look()
        if restore_confirmation.confirm(by=person_at_machine()):
            self.stdout.write(
                "Confirmed. What had waited goes on: mails, webhooks, streams, schedules and deletions."
            )
        else:
            self.stdout.write("Nothing to confirm: no restore was found.")
