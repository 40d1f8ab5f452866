"""Queries that are asked all the time, compiled by Django once instead of each time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db import connection, models
from django.db.models.query import ModelIterable, get_related_populators

from workspaces.database import statement_cursor
from workspaces.database.row_security import everywhere

_Row = TypeVar("_Row", bound=models.Model)


@dataclass(frozen=True, slots=True)
class _Shape:
    """How rows become instances, as `ModelIterable` of Django would make them."""

    converters: tuple[tuple[int, tuple[Any, ...], Any], ...]
    """Column, what turns the driver's value into ours, and the column's expression."""
    names: frozenset[str]
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


class PreparedRows(Generic[_Row]):
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
        self._build = build
        self._kinds = kinds
        self._marks = [_mark(kind, number) for number, kind in enumerate(kinds)]
        self._uuid: models.UUIDField[Any, Any] = models.UUIDField()
        self._statements: dict[str, _Statement] = {}
        self._model: type[_Row]
        self._lock = threading.Lock()

    def all(self, *values: UUID | str | int) -> list[_Row]:
        """The rows; inside a transaction, if the queryset locks them."""
        statement = self._statement()
        return [self._instance(statement, list(row)) for row in self._fetch(statement, values)]

    def first(self, *values: UUID | str | int) -> _Row | None:
        """The first row, of a queryset that asks for few."""
        return next(iter(self.all(*values)), None)

    def all_values(self, *values: UUID | str | int) -> list[tuple[Any, ...]]:
        """The columns of the rows, as the driver gives them."""
        return self._fetch(self._statement(), values)

    def first_values(self, *values: UUID | str | int) -> tuple[Any, ...] | None:
        """The columns of the first row, as the driver gives them."""
        return next(iter(self._fetch(self._statement(), values)), None)

    def _fetch(
        self, statement: _Statement, values: tuple[UUID | str | int, ...]
    ) -> list[tuple[Any, ...]]:
        assert len(values) == len(self._kinds)
        params = list(statement.params)
        for place, number in statement.places:
            params[place] = self._as_param(values[number])
        if statement.is_across:
            with everywhere():
                return _run(statement.sql, params)
        return _run(statement.sql, params)

    def _instance(self, statement: _Statement, row: list[Any]) -> _Row:
        shape = statement.shape
        assert shape is not None
        for place, converters, expression in shape.converters:
            for convert in converters:
                row[place] = convert(row[place], expression, connection)
        instance = self._model.from_db(connection.alias, shape.names, row[shape.columns])
        for populator in shape.related:
            populator.populate(row, instance)
        for name, place in shape.annotations:
            setattr(instance, name, row[place])
        return instance

    def _statement(self) -> _Statement:
        with self._lock:
            statement = self._statements.get(connection.vendor)
            if statement is None:
                statement = self._statements[connection.vendor] = self._compile()
            return statement

    def _compile(self) -> _Statement:
        queryset = self._build(*self._marks)
        # Rows of a tenant only through the door, here as everywhere.
        getattr(queryset, "_must_be_scoped", lambda: None)()
        self._model = queryset.model
        compiler = queryset.query.get_compiler(connection=connection)
        sql, params = compiler.as_sql()
        marks = [self._as_param(mark) for mark in self._marks]
        places = [
            (place, marks.index(param)) for place, param in enumerate(params) if param in marks
        ]
        gives_instances = issubclass(queryset._iterable_class, ModelIterable)
        shape = _shape_of(compiler) if gives_instances else None
        is_across = getattr(queryset, "is_across", False)
        return _Statement(sql, tuple(params), tuple(places), shape, is_across)

    def _as_param(self, value: UUID | str | int) -> Any:
        if isinstance(value, str | int):
            return value
        return self._uuid.get_db_prep_value(value, connection)


def _run(sql: str, params: list[Any]) -> list[tuple[Any, ...]]:
    with statement_cursor(connection) as cursor:
        cursor.execute(sql, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _shape_of(compiler: Any) -> _Shape:
    info, select = compiler.klass_info, compiler.select
    fields = info["select_fields"]
    columns = slice(fields[0], fields[-1] + 1)
    found = compiler.get_converters([one[0] for one in select[: compiler.col_count]])
    return _Shape(
        converters=tuple(
            (place, tuple(converters), expression)
            for place, (converters, expression) in found.items()
        ),
        names=frozenset(one[0].target.attname for one in select[columns]),
        columns=columns,
        related=tuple(
            get_related_populators(info, select, connection.alias)  # type: ignore[call-arg]  # the stubs are of a later Django
        ),
        annotations=tuple(compiler.annotation_col_map.items()),
    )


def _mark(kind: type[UUID] | type[str] | type[int], number: int) -> UUID | str | int:
    """A value that no query holds by itself."""
    mark = UUID(int=2**127 + number)
    if kind is int:
        return 2**62 + number
    return mark if kind is UUID else f"value {mark}"
