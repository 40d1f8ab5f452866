"""Rows that are added all the time, by statements that are compiled once instead of each time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field
from django.db.models.base import ModelBase
from django.db.models.sql import InsertQuery

from workspaces.database import statement_cursor

_Row = TypeVar("_Row", bound=models.Model)
_PLAIN_FIELDS = (models.CharField, models.TextField, models.IntegerField, models.BooleanField)
_PLAIN_VALUES: frozenset[type] = frozenset({str, int, bool, type(None)})
"""Which of these fields' values every driver takes as they are. Not their subclasses, such as choices."""
_NONE: frozenset[type] = frozenset({type(None)})
_NOTHING: frozenset[type] = frozenset()


@dataclass(frozen=True, slots=True)
class _Column:
    field: Field[Any, Any]
    name: str
    as_is: frozenset[type]
    """Kinds of values that every driver takes as they are."""
    is_uuid: bool
    is_made: bool
    """The field itself makes the value when a row is saved."""
    has_placeholder: bool


class InsertedOften(models.Model):
    """A row that is added by such a statement; saved in any other way, Django does it."""

    class Meta:
        abstract = True

    def save(
        self,
        *,
        force_insert: bool | tuple[ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        if force_insert is True and using is None:
            _prepared(type(self)).add([self])
            return
        super().save(
            force_insert=force_insert,
            force_update=force_update,
            using=using,
            update_fields=update_fields,
        )


def insert(rows: Sequence[InsertedOften]) -> None:
    """Add rows that are not stored yet, all of one model, in the caller's transaction."""
    if rows:
        _prepared(type(rows[0])).add(rows)


@cache
def _prepared(model: type[models.Model]) -> PreparedInsert[Any]:
    return PreparedInsert(model)


class PreparedInsert(Generic[_Row]):
    """Adds rows of one model, with every column as the instance has it. No signal is sent, and nothing is read back."""

    def __init__(self, model: type[_Row]) -> None:
        self._model = model
        self._columns = [_column(field) for field in model._meta.local_concrete_fields]
        self._statements: dict[tuple[str, tuple[str, ...]], str] = {}
        self._lock = threading.Lock()

    def add(self, rows: Sequence[_Row]) -> None:
        """Insert rows that are not stored yet."""
        # The connection itself: the proxy that stands for it looks it up for each of its names.
        connection = connections[DEFAULT_DB_ALIAS]
        filled = [one for row in rows if (one := self._filled(row, connection)) is not None]
        with statement_cursor(connection) as cursor:
            for statement, group in groupby(filled, itemgetter(0)):
                values = [each for _, each in group]
                if len(values) == 1:
                    cursor.execute(statement, values[0])
                else:
                    cursor.executemany(statement, values)
        for row in rows:
            row._state.adding = False
            row._state.db = connection.alias

    def _filled(self, row: _Row, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]] | None:
        """A row's statement and values; None: the database is to make one of them, so Django has added the row."""
        values: list[Any] = []
        marks: list[str] = []
        for column in self._columns:
            value = (
                column.field.pre_save(row, True) if column.is_made else getattr(row, column.name)
            )
            kind = type(value)
            if kind is UUID and column.is_uuid:
                value = value if connection.features.has_native_uuid_field else value.hex
            elif kind not in column.as_is:
                if hasattr(value, "resolve_expression"):
                    models.Model.save(row, force_insert=True)
                    return None
                value = column.field.get_db_prep_save(value, connection)
            if column.has_placeholder:
                field: Any = column.field  # few kinds of fields have this method
                marks.append(field.get_placeholder(value, self._compiler(connection), connection))
            values.append(value)
        return self._statement(connection, tuple(marks)), values

    def _statement(self, connection: BaseDatabaseWrapper, marks: tuple[str, ...]) -> str:
        key = (connection.vendor, marks)
        with self._lock:
            statement = self._statements.get(key)
            if statement is None:
                statement = self._statements[key] = self._compile(connection, marks)
            return statement

    def _compile(self, connection: BaseDatabaseWrapper, marks: tuple[str, ...]) -> str:
        quote = connection.ops.quote_name
        own = iter(marks)
        names = ", ".join(quote(str(column.field.column)) for column in self._columns)
        places = ", ".join(
            next(own) if column.has_placeholder else "%s" for column in self._columns
        )
        table = quote(self._model._meta.db_table)
        return f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608  names of our own columns

    def _compiler(self, connection: BaseDatabaseWrapper) -> Any:
        return InsertQuery(self._model).get_compiler(connection=connection)


def _column(field: Field[Any, Any]) -> _Column:
    is_plain = (
        isinstance(field, _PLAIN_FIELDS)
        and type(field).get_db_prep_save is Field.get_db_prep_save
        and type(field).get_db_prep_value is Field.get_db_prep_value
    )
    keeps_none = type(field).__module__.startswith("django.db.models.")
    target: Any = field.target_field if isinstance(field, models.ForeignKey) else field
    return _Column(
        field=field,
        name=field.attname,
        as_is=_PLAIN_VALUES if is_plain else _NONE if keeps_none else _NOTHING,
        is_uuid=keeps_none and type(target) is models.UUIDField,
        is_made=type(field).pre_save is not Field.pre_save,
        has_placeholder=hasattr(field, "get_placeholder"),
    )
