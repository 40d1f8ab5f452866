"""Rows that are written all the time, by statements that are compiled once instead of each time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import getattr_static
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field
from django.db.models.base import ModelBase, ModelState
from django.db.models.signals import post_init, pre_init
from django.db.transaction import mark_for_rollback_on_error

from workspaces.database import statement_cursor
from workspaces.database.prepared import PLAIN_ATTRIBUTES

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


@dataclass(frozen=True, slots=True)
class _Beginning:
    """How a new row of a model begins, as `Model.__init__` of Django would have it."""

    names: frozenset[str]
    """Of the columns' values."""
    constants: dict[str, Any]
    made: tuple[tuple[str, Callable[[], Any]], ...]
    """Defaults that are made anew for each row."""
    guarded: tuple[str, ...]
    """Names whose fields do something of their own when they are given a value."""


class WrittenOften(models.Model):
    """A row that such statements add and change; all else Django does."""

    class Meta:
        abstract = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Django asks each field of the model, which takes as long as to write the row's values down.
        beginning = None if args or _is_heard() else _beginning(type(self))
        if beginning is None or not beginning.names.issuperset(kwargs):
            super().__init__(*args, **kwargs)
            return
        self._state = ModelState()
        own = self.__dict__
        own.update(beginning.constants)
        for name, make in beginning.made:
            if name not in kwargs:
                own[name] = make()
        own.update(kwargs)
        for name in beginning.guarded:
            setattr(self, name, own.pop(name))

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
        is_plain = using is None and not (force_insert or force_update)
        if is_plain and update_fields:
            update_fields = frozenset(update_fields)
            changed = _prepared(type(self)).change(self, update_fields)
            if changed == 0:
                raise DatabaseError("Save with update_fields did not affect any rows.")
            if changed:
                return
        if is_plain and update_fields is None and not self._state.adding:
            # What was not loaded is not written, as Django has it. A row that is gone, Django adds again.
            prepared = _prepared(type(self))
            if prepared.change(self, prepared.names - self.get_deferred_fields()):
                return
        super().save(
            force_insert=force_insert,
            force_update=force_update,
            using=using,
            update_fields=update_fields,
        )


def insert(rows: Sequence[WrittenOften]) -> None:
    """Add rows that are not stored yet, all of one model, in the caller's transaction."""
    if rows:
        _prepared(type(rows[0])).add(rows)


def update_if_there(row: WrittenOften, names: Iterable[str]) -> None:
    """Change these fields of a stored row; a row that has been deleted stays so. Their values are plain, no expressions."""
    changed = _prepared(type(row)).change(row, frozenset(names))
    assert changed is not None


def _is_heard() -> bool:
    """Whether somebody wants to hear of new instances."""
    return bool(pre_init.receivers or post_init.receivers)


@cache
def _beginning(model: type[models.Model]) -> _Beginning:
    constants: dict[str, Any] = {}
    made: list[tuple[str, Callable[[], Any]]] = []
    fields = [one for one in model._meta.concrete_fields if not getattr(one, "generated", False)]
    for field in fields:
        is_made = callable(field.default) if field.has_default() else field.has_db_default()
        if is_made:
            made.append((field.attname, field.get_default))
        else:
            constants[field.attname] = field.get_default()
    return _Beginning(
        names=frozenset(one.attname for one in fields),
        constants=constants,
        made=tuple(made),
        guarded=tuple(
            one.attname
            for one in fields
            if type(getattr_static(model, one.attname)) not in PLAIN_ATTRIBUTES
        ),
    )


@cache
def _prepared(model: type[models.Model]) -> PreparedWrites[Any]:
    return PreparedWrites(model)


class PreparedWrites(Generic[_Row]):
    """Writes rows of one model, with what the instance has. No signal is sent, and nothing is read back."""

    def __init__(self, model: type[_Row]) -> None:
        self._model = model
        self._columns = tuple(_column(field) for field in model._meta.local_concrete_fields)
        self.names = frozenset(one.name for one in self._columns if not one.field.primary_key)
        """All that can be changed."""
        self._changed: dict[frozenset[str], tuple[_Column, ...]] = {}
        self._statements: dict[tuple[str, frozenset[str] | None], str] = {}
        self._lock = threading.Lock()

    def add(self, rows: Sequence[_Row]) -> None:
        """Insert rows that are not stored yet."""
        # The connection itself: the proxy that stands for it looks it up for each of its names.
        connection = connections[DEFAULT_DB_ALIAS]
        filled = [one for row in rows if (one := self._filled(row, connection)) is not None]
        statement = self._statement(connection, None)
        with mark_for_rollback_on_error(connection.alias), statement_cursor(connection) as cursor:
            if len(filled) == 1:
                cursor.execute(statement, filled[0])
            elif filled:
                cursor.executemany(statement, filled)
        for row in rows:
            row._state.adding = False
            row._state.db = connection.alias

    def change(self, row: _Row, names: frozenset[str]) -> int | None:
        """Update these fields of a stored row.

        Returns:
            How many rows were changed: none, if it is gone. None: it is for Django to do, and nothing was done.
        """
        connection = connections[DEFAULT_DB_ALIAS]
        columns = self._columns_of(names)
        values = _values(row, columns, connection, is_new=False) if columns else None
        if values is None:
            return None
        statement = self._statement(connection, names)
        key: Any = self._model._meta.pk
        own = key.get_db_prep_value(row.pk, connection)
        with mark_for_rollback_on_error(connection.alias), statement_cursor(connection) as cursor:
            cursor.execute(statement, [*values, own])
            return int(cursor.rowcount)

    def _columns_of(self, names: frozenset[str]) -> tuple[_Column, ...]:
        """Their columns; none, if one of the names is of another kind."""
        columns = self._changed.get(names)
        if columns is None:
            columns = tuple(
                column
                for column in self._columns
                if not column.field.primary_key and names & {column.name, column.field.name}
            )
            known = {name for column in columns for name in (column.name, column.field.name)}
            columns = self._changed[names] = columns if names <= known else ()
        return columns

    def _filled(self, row: _Row, connection: BaseDatabaseWrapper) -> list[Any] | None:
        """A row's values; None: the database is to make one of them, so Django has added the row."""
        values = _values(row, self._columns, connection, is_new=True)
        if values is None:
            models.Model.save(row, force_insert=True)
        return values

    def _statement(self, connection: BaseDatabaseWrapper, names: frozenset[str] | None) -> str:
        """The one that changes these fields; None: the one that adds a row."""
        key = (connection.vendor, names)
        with self._lock:
            statement = self._statements.get(key)
            if statement is None:
                compiled = self._insertion if names is None else self._update
                columns = self._columns if names is None else self._columns_of(names)
                quoted = [connection.ops.quote_name(str(one.field.column)) for one in columns]
                statement = self._statements[key] = compiled(connection, quoted)
            return statement

    def _insertion(self, connection: BaseDatabaseWrapper, columns: list[str]) -> str:
        table = connection.ops.quote_name(self._model._meta.db_table)
        places = ", ".join(["%s"] * len(columns))
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608  our own columns

    def _update(self, connection: BaseDatabaseWrapper, columns: list[str]) -> str:
        quote = connection.ops.quote_name
        key: Any = self._model._meta.pk
        pairs = ", ".join(f"{name} = %s" for name in columns)
        table = quote(self._model._meta.db_table)
        return f"UPDATE {table} SET {pairs} WHERE {quote(key.column)} = %s"  # noqa: S608  our own columns


def _values(
    row: models.Model,
    columns: tuple[_Column, ...],
    connection: BaseDatabaseWrapper,
    *,
    is_new: bool,
) -> list[Any] | None:
    """What goes into a row's columns; None: the database is to make one of them."""
    values: list[Any] = []
    for column in columns:
        value = column.field.pre_save(row, is_new) if column.is_made else getattr(row, column.name)
        kind = type(value)
        if kind is UUID and column.is_uuid:
            value = value if connection.features.has_native_uuid_field else value.hex
        elif kind not in column.as_is:
            if hasattr(value, "resolve_expression"):
                return None
            value = column.field.get_db_prep_save(value, connection)
        values.append(value)
    return values


def _column(field: Field[Any, Any]) -> _Column:
    # On our databases, bytes stand in a statement like every other value.
    assert isinstance(field, models.BinaryField) or not hasattr(field, "get_placeholder")
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
    )
