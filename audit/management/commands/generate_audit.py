"""`manage.py generate_audit`: an invented workspace's log of any length, to measure with."""

from __future__ import annotations

from datetime import timedelta
from time import monotonic
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from audit.generating import generate
from audit.models import AuditHead
from workspaces.models import Workspace


class Command(BaseCommand):
    """Write invented entries with their seals and counters, into a workspace that holds nothing else."""

    help = "Fill an invented workspace's log with entries, to measure with."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--entries", type=int, required=True, help="How many.")
        parser.add_argument(
            "--workspace",
            required=True,
            help="Its slug. It is made if there is none; one with a log of its own is left alone.",
        )
        parser.add_argument("--days", type=int, default=90, help="Over how many days, up to now.")

    def handle(self, *args: Any, **options: Any) -> None:
        slug, number, days = options["workspace"], options["entries"], options["days"]
        if number < 1 or days < 1:
            raise CommandError("Entries and days are at least 1.", returncode=2)
        workspace, _ = Workspace.objects.get_or_create(slug=slug, defaults={"name": slug})
        if AuditHead.objects.filter(chain_id=workspace.pk, seq__gt=0).exists():
            raise CommandError("This workspace has a log already.", returncode=2)
        begin = monotonic()
        until = timezone.now()
        for written in generate(
            workspace.pk, number, since=until - timedelta(days=days), until=until
        ):
            rate = written / (monotonic() - begin)
            self.stdout.write(f"{written} of {number} entries, {rate:.0f} a second")
