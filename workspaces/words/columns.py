"""What people call tables and their columns: in the admin, in errors, and where the log says what changed.

Each app has these names in its `labels.py`, and not in `Meta` or on the fields: migrations keep what stands there, so
each better word would need one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, override

from workspaces.words.formats import moment_and_zone

if TYPE_CHECKING:
    from workspaces.words.texts import Text

    Columns: TypeAlias = Mapping[str, Text]
    """Words for a column of this name in all tables of an app, or in one table as `Table.column`."""
    Tables: TypeAlias = Mapping[str, tuple[Text | None, Text]]
    """Words for one row of a table, or None where `Meta` has them, and for many rows."""

_NOTHING: Final = "–"


def name_tables(app: AppConfig, *, tables: Tables, columns: Columns) -> None:
    """Give an app's tables and columns their names in words.

    A word for all columns of a name leaves those alone that say their own.
    """
    for model in app.get_models():
        table, meta = model.__name__, model._meta
        if table in tables:
            one, many = tables[table]
            meta.verbose_name, meta.verbose_name_plural = one or meta.verbose_name, many
        for field in meta.local_fields:
            says_its_own = field._verbose_name is not None  # type: ignore[attr-defined]  # as it was given
            usual = None if says_its_own else columns.get(field.name)
            field.verbose_name = columns.get(f"{table}.{field.name}") or usual or field.verbose_name


def kind_of(model: type[models.Model]) -> str:
    """What the log calls a row of this table: in the platform's language, whoever changed it."""
    with override(settings.LANGUAGE_CODE):
        return str(model._meta.verbose_name)


def column_in_words(kind: str, column: str) -> str:
    """What people call a column; a name that is none, or one of long ago, with spaces.

    Args:
        kind: as `kind_of` has it.
    """
    field = _field_of(kind, column)
    return str(field.verbose_name) if field is not None else column.replace("_", " ")


def value_in_words(kind: str, column: str, value: object) -> str:
    """What a column held, as people read it; a value without words stays as it is, or becomes JSON."""
    field = _field_of(kind, column)
    match value:
        case None | "":
            return _NOTHING
        case bool():
            return gettext("yes") if value else gettext("no")
        case str() if isinstance(field, models.DateTimeField):
            return _moment_in_words(value) or value
        case str():
            choices = dict(field.flatchoices) if field is not None else {}
            return str(choices.get(value, value))
        case list() if value and all(isinstance(one, str) for one in value):
            return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


def _moment_in_words(text: str) -> str:
    try:
        at = parse_datetime(text)
        return moment_and_zone(at) if at is not None and at.tzinfo is not None else ""
    except (ValueError, OverflowError):  # whoever writes past the services may enter any
        return ""


def _field_of(kind: str, column: str) -> models.Field[object, object] | None:
    model = _models_by_kind().get(kind)
    try:
        field = model._meta.get_field(column) if model is not None else None
    except FieldDoesNotExist:
        return None
    return field if isinstance(field, models.Field) else None


@cache
def _models_by_kind() -> dict[str, type[models.Model]]:
    return {kind_of(model): model for model in apps.get_models()}
