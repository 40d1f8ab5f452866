"""``manage.py generate_keys``: fresh secrets for production mode, as environment variables."""

from __future__ import annotations

from django.core.management import BaseCommand

from config.keys import generate_keys


class Command(BaseCommand):
    """Prints new keys; stores nothing."""

    help = "Print a fresh SECRET_KEY, and the keys that encrypt, commit to and sign what is stored and sent."
    requires_system_checks: list[str] = []

    def handle(self, *_args: object, **_options: object) -> None:
        for name, value in generate_keys().items():
            self.stdout.write(f"{name}={value}")
