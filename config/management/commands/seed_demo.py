"""manage.py seed_demo: the demo workspace, and who can sign in to it."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import BaseCommand

from config.demo import PASSWORD, PEOPLE, seed_demo
from workspaces.database import hold_lock

_LOCK: Final = 0x7472_6D64
"""Number of the advisory lock under which the demo is made: two servers may start at once."""


class Command(BaseCommand):
    help = "Create the demo workspace, or what is missing of it."
    requires_system_checks: list[str] = []  # they load every page

    def handle(self, *args: Any, **options: Any) -> None:
        with hold_lock(_LOCK):
            workspace = seed_demo()
        self.stdout.write(f"\nDemo workspace “{workspace.name}”, password {PASSWORD}:")
        for person in PEOPLE:
            self.stdout.write(f"  {person.email:<22} {person.what}")
