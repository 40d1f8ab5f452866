"""``manage.py write_configuration_docs``: the page of all settings, printed from their definitions."""

from __future__ import annotations

from typing import get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from config.env import ROOT, Environment
from config.management.generated import GeneratingCommand

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


class Command(GeneratingCommand):
    """Writes the page of settings."""

    help = "Write docs/configuration.md from the settings' definitions."

    def make_files(self) -> dict[str, str]:
        rows = "".join(_row(field) for field in Environment.model_fields.values())
        return {"docs/configuration.md": _INTRODUCTION + rows}


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
