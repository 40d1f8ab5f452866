"""manage.py seed_demo: the demo workspace, and who can sign in to it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from config.demo import PASSWORD, PEOPLE, seed_demo


class Command(BaseCommand):
    help = "Create the demo workspace, or what is missing of it."
    requires_system_checks: list[str] = []  # they load every page

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = seed_demo()
        self.stdout.write(f"\nDemo workspace “{workspace.name}”, password {PASSWORD}:")
        for person in PEOPLE:
            self.stdout.write(f"  {person.email:<22} {person.what}")
