"""``manage.py write_configuration_docs``: the page of all settings, printed from their definitions."""

from __future__ import annotations

from typing import Any, get_args, get_origin

from django.core.management import BaseCommand, CommandError
from django.core.management.base import CommandParser
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from config.env import ROOT, Environment

PAGE = ROOT / "docs" / "configuration.md"
_INTRODUCTION = """# Configuration

<!-- Written by `manage.py write_configuration_docs`; change config/env.py, not this page. -->

Trellis reads its settings from the environment, once, at the start. A missing or bad one stops the start with exit code 2
and one line that names every variable at fault. An empty variable counts as absent.

Without `DATABASE_URL` Trellis runs **embedded**: SQLite and self-made keys in the data folder. With `DATABASE_URL` it runs in
**production mode**: `SECRET_KEY`, `TRELLIS_ENCRYPTION_KEYS`, `TRELLIS_AUDIT_KEY` and `TRELLIS_PUBLIC_ORIGINS` are required, and
weak or sample secrets are refused. `python3 manage.py generate_keys` prints fresh ones.

| variable | default | meaning |
|---|---|---|
"""


class Command(BaseCommand):
    """Writes the page, or says whether it is up to date."""

    help = "Write docs/configuration.md from the settings' definitions."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="Only say whether it is up to date."
        )

    def handle(self, *_args: object, **options: Any) -> None:
        text = _INTRODUCTION + "".join(_row(field) for field in Environment.model_fields.values())
        if not options["check"]:
            PAGE.parent.mkdir(exist_ok=True)
            PAGE.write_text(text)
        elif not PAGE.exists() or PAGE.read_text() != text:
            raise CommandError(
                "docs/configuration.md is old: run manage.py write_configuration_docs"
            )


def _row(field: FieldInfo) -> str:
    return f"| `{field.validation_alias}` | {_default(field)} | {field.description} |\n"


def _default(field: FieldInfo) -> str:
    value = field.default
    if isinstance(value, SecretStr) or value in (None, "", ()):
        return ""
    if str(value).startswith(str(ROOT)):
        return f"`{str(value).removeprefix(str(ROOT) + '/')}`"
    if isinstance(value, bool):
        return "`on`" if value else "`off`"
    choices = get_args(field.annotation) if get_origin(field.annotation) is not None else ()
    shown = f"`{value}`"
    others = [f"`{choice}`" for choice in choices if isinstance(choice, str) and choice != value]
    return shown + (f" (or {', '.join(others)})" if others else "")
