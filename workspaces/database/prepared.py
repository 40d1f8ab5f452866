"""Queries that are asked all the time, compiled by Django once instead of each time."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from inspect import getattr_static
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.base import ModelState
from django.db.models.fields.related_descriptors import ForeignKeyDeferredAttribute
from django.db.models.query import ModelIterable, get_related_populators
from django.db.models.query_utils import DeferredAttribute
from django.db.models.sql import UpdateQuery
from django.db.transaction import mark_for_rollback_on_error

from workspaces.database import statement_cursor
from workspaces.database.row_security import everywhere

_Row = TypeVar("_Row", bound=models.Model)

PLAIN_ATTRIBUTES: Final[frozenset[type]] = frozenset(
    {DeferredAttribute, ForeignKeyDeferredAttribute}
)
"""Of fields that do nothing of their own when they are given a value."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """How rows become instances, as `ModelIterable` of Django would make them."""

    converters: tuple[tuple[int, tuple[Any, ...], Any], ...]
    """Column, what turns the driver's value into ours, and the column's expression."""
    names: tuple[str, ...]
    """Of the fields, in the order of their columns."""
    is_plain: bool
    """No field does anything of its own when it is given its value."""
    columns: slice
    related: tuple[Any, ...]
    annotations: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    sql: str
    params: tuple[Any, ...]
    places: tuple[tuple[int, int], ...]
    """Which parameter is which of the values."""
    shape: _Shape | None
    """None: the query asks for values, not for instances."""
    is_across: bool
    """It asks for rows of every tenant."""


class _Prepared(ABC):
    """A statement that differs only in ids, words and numbers, compiled once for each kind of database."""

    def __init__(self, *kinds: type[UUID] | type[str] | type[int]) -> None:
        self._kinds = kinds
        self._marks = [_mark(kind, number) for number, kind in enumerate(kinds)]
        self._statements: dict[str, _Statement] = {}
        self._lock = threading.Lock()

    @abstractmethod
    def _compile(self, own: BaseDatabaseWrapper) -> _Statement:
        """Have Django compile it, with the marks in the place of values."""

    def _statement(self, own: BaseDatabaseWrapper) -> _Statement:
        with self._lock:
            statement = self._statements.get(own.vendor)
            if statement is None:
                statement = self._statements[own.vendor] = self._compile(own)
            return statement

    def _params(
        self,
        statement: _Statement,
        values: tuple[UUID | str | int, ...],
        own: BaseDatabaseWrapper,
    ) -> list[Any]:
        assert len(values) == len(self._kinds)
        params = list(statement.params)
        for place, number in statement.places:
            params[place] = _as_param(values[number], own)
        return params

    def _compiled(
        self, compiler: Any, queryset: models.QuerySet[Any, Any], own: BaseDatabaseWrapper
    ) -> _Statement:
        # Rows of a tenant only through the door, here as everywhere.
        getattr(queryset, "_must_be_scoped", lambda: None)()
        sql, params = compiler.as_sql()
        marks = [_as_param(mark, own) for mark in self._marks]
        places = [
            (place, marks.index(param)) for place, param in enumerate(params) if param in marks
        ]
        gives_instances = issubclass(queryset._iterable_class, ModelIterable)
        shape = _shape_of(compiler, own) if gives_instances and compiler.select else None
        is_across = getattr(queryset, "is_across", False)
        return _Statement(sql, tuple(params), tuple(places), shape, is_across)


class PreparedRows(_Prepared, Generic[_Row]):
    """A queryset that differs only in ids and words, compiled once; its rows come as instances, with what it joins.

    Prefetched rows are not supported.

    Args:
        build: makes the queryset from a value of each kind; called once for each kind of database.
        kinds: UUID, str or int.
    """

    def __init__(
        self,
        build: Callable[..., models.QuerySet[_Row, Any]],
        *kinds: type[UUID] | type[str] | type[int],
    ) -> None:
        super().__init__(*kinds)
        self._build = build
        self._model: type[_Row]

    def all(self, *values: UUID | str | int) -> list[_Row]:
        """The rows; inside a transaction, if the queryset locks them."""
        own = _own_connection()
        statement = self._statement(own)
        return self._instances(statement, self._fetch(statement, values, own), own)

    def first(self, *values: UUID | str | int) -> _Row | None:
        """The first row, of a queryset that asks for few."""
        return next(iter(self.all(*values)), None)

    def all_values(self, *values: UUID | str | int) -> list[tuple[Any, ...]]:
        """The columns of the rows, as the driver gives them."""
        own = _own_connection()
        return self._fetch(self._statement(own), values, own)

    def first_values(self, *values: UUID | str | int) -> tuple[Any, ...] | None:
        """The columns of the first row, as the driver gives them."""
        return next(iter(self.all_values(*values)), None)

    def _fetch(
        self,
        statement: _Statement,
        values: tuple[UUID | str | int, ...],
        own: BaseDatabaseWrapper,
    ) -> list[tuple[Any, ...]]:
        params = self._params(statement, values, own)
        with _reaching(statement), statement_cursor(own) as cursor:
            cursor.execute(statement.sql, params)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows

    def _instances(
        self, statement: _Statement, found: Iterable[tuple[Any, ...]], own: BaseDatabaseWrapper
    ) -> list[_Row]:
        shape = statement.shape
        assert shape is not None
        make = self._made if shape.is_plain else self._model.from_db
        instances = []
        for row in map(list, found):
            for place, converters, expression in shape.converters:
                for convert in converters:
                    row[place] = convert(row[place], expression, own)
            instance = make(own.alias, shape.names, row[shape.columns])
            for populator in shape.related:
                populator.populate(row, instance)
            for name, place in shape.annotations:
                setattr(instance, name, row[place])
            instances.append(instance)
        return instances

    def _made(self, alias: str, names: Sequence[str], values: Sequence[Any]) -> _Row:
        """As `Model.from_db`, which asks each field of the model how it is set: most of the time that a row takes."""
        instance = self._model.__new__(self._model)
        state = instance._state = ModelState()
        state.adding, state.db = False, alias
        instance.__dict__.update(zip(names, values, strict=True))
        return instance

    def _compile(self, own: BaseDatabaseWrapper) -> _Statement:
        queryset = self._build(*self._marks)
        self._model = queryset.model
        return self._compiled(queryset.query.get_compiler(connection=own), queryset, own)


class Update(NamedTuple):
    """What a queryset's `update()` would be called with."""

    rows: models.QuerySet[Any, Any]
    values: Mapping[str, Any]


class PreparedUpdate(_Prepared):
    """An update that differs only in ids, words and numbers, compiled once.

    Args:
        build: makes it from a value of each kind; called once for each kind of database. It joins no table.
        kinds: UUID, str or int.
    """

    def __init__(
        self, build: Callable[..., Update], *kinds: type[UUID] | type[str] | type[int]
    ) -> None:
        super().__init__(*kinds)
        self._build = build

    def run(self, *values: UUID | str | int) -> int:
        """How many rows were changed."""
        own = _own_connection()
        statement = self._statement(own)
        params = self._params(statement, values, own)
        with (
            _reaching(statement),
            mark_for_rollback_on_error(own.alias),
            statement_cursor(own) as cursor,
        ):
            cursor.execute(statement.sql, params)
            return int(cursor.rowcount)

    def _compile(self, own: BaseDatabaseWrapper) -> _Statement:
        rows, values = self._build(*self._marks)
        query: Any = rows.query.chain(UpdateQuery)  # as QuerySet.update() does
        query.add_update_values(values)
        return self._compiled(query.get_compiler(connection=own), rows, own)


def _own_connection() -> BaseDatabaseWrapper:
    """This thread's connection: the proxy that stands for it looks it up for each of its names."""
    return connections[DEFAULT_DB_ALIAS]


def _as_param(value: UUID | str | int, own: BaseDatabaseWrapper) -> Any:
    if isinstance(value, UUID) and not own.features.has_native_uuid_field:
        return value.hex
    return value


def _reaching(statement: _Statement) -> Any:
    return everywhere() if statement.is_across else nullcontext()


def _shape_of(compiler: Any, own: BaseDatabaseWrapper) -> _Shape:
    info, select = compiler.klass_info, compiler.select
    fields = info["select_fields"]
    columns = slice(fields[0], fields[-1] + 1)
    found = compiler.get_converters([one[0] for one in select[: compiler.col_count]])
    names = tuple(one[0].target.attname for one in select[columns])
    return _Shape(
        converters=tuple(
            (place, tuple(converters), expression)
            for place, (converters, expression) in found.items()
        ),
        names=names,
        is_plain=_is_plain(info["model"], names),
        columns=columns,
        related=tuple(
            get_related_populators(info, select, own.alias)  # type: ignore[call-arg]  # the stubs are of a later Django
        ),
        annotations=tuple(compiler.annotation_col_map.items()),
    )


def _is_plain(model: type[models.Model], names: Iterable[str]) -> bool:
    kinds = {type(getattr_static(model, name)) for name in names}
    return kinds <= PLAIN_ATTRIBUTES


def _mark(kind: type[UUID] | type[str] | type[int], number: int) -> UUID | str | int:
    """A value that no query holds by itself."""
    mark = UUID(int=2**127 + number)
    if kind is int:
        return 2**31 - 1 - number  # as large as any field of a number takes
    return mark if kind is UUID else f"value {mark}"
