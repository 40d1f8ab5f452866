"""``manage.py check_project``: what Django can check of the code itself, in one process instead of five."""

from __future__ import annotations

from typing import Any

from django.core.management import BaseCommand, CommandError, call_command

_CHECKS: dict[str, tuple[str, ...]] = {
    "system check": ("check", "--fail-level", "WARNING"),
    "migrations": ("makemigrations", "--check", "--dry-run"),
    "configuration page": ("write_configuration_docs", "--check"),
    "wire": ("write_wire", "--check"),
    "security page": ("write_security_docs", "--check"),
}


class Command(BaseCommand):
    """Runs all of them, also when one fails."""

    help = "Check settings, migrations, and the files that are generated from the code."
    requires_system_checks: list[str] = []  # the first of the checks

    def handle(self, *_args: Any, **_options: Any) -> None:
        failed = []
        for name, (command, *arguments) in _CHECKS.items():
            try:
                call_command(command, *arguments, stdout=self.stdout, stderr=self.stderr)
            except (CommandError, SystemExit) as error:
                failed.append(f"{name}: {error}")
        if failed:
            raise CommandError("\n".join(failed))
