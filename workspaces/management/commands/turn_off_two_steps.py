"""manage.py turn_off_two_steps: let somebody who has lost phone and recovery codes sign in with their password."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from workspaces.command_arguments import bad_arguments, person_at_machine
from workspaces.errors import Conflict
from workspaces.models import User
from workspaces.people.two_step import turn_off_two_steps_at_machine


class Command(BaseCommand):
    """For the platform's owner themselves. For others, the owner does it in the admin, under Users."""

    help = "Turns off two-step verification for an account, and ends its passkeys: its password alone lets in."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the address that the account signs in with")

    def handle(self, *args: Any, **options: Any) -> None:
        account = User.objects.filter(email__iexact=options["email"]).first()
        if account is None:
            bad_arguments(f"There is no account “{options['email']}”.")
        try:
            turn_off_two_steps_at_machine(account=account, who=person_at_machine())
        except Conflict as error:
            raise CommandError(error.message, returncode=1) from error
        self.stdout.write(
            f"{account.email} signs in with the password alone, and gets a mail about it."
        )
