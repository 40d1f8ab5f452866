"""Queries that are asked all the time, compiled by Django once instead of each time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db import connection, models
from django.db.models.query import get_related_populators

_Row = TypeVar("_Row", bound=models.Model)


@dataclass(frozen=True, slots=True)
class _Statement:
    sql: str
    params: tuple[Any, ...]
    places: tuple[tuple[int, int], ...]
    """Which parameter is which of the ids."""


class PreparedQuery:
    """A queryset that differs only in ids, as one ready statement.

    Args:
        build: makes the queryset from ids; called once for each kind of database.
        ids: how many it takes.
    """

    def __init__(self, build: Callable[..., models.QuerySet[Any]], *, ids: int) -> None:
        self._build = build
        self._marks = [UUID(int=2**127 + number) for number in range(ids)]
        self._field: models.UUIDField[Any, Any] = models.UUIDField()
        self._statements: dict[str, _Statement] = {}
        self._lock = threading.Lock()

    def first_row(self, *ids: UUID) -> tuple[Any, ...] | None:
        """The first row: columns as in the queryset, values as the driver gives them."""
        statement = self._statement()
        params = list(statement.params)
        for place, number in statement.places:
            params[place] = self._as_param(ids[number])
        with connection.cursor() as cursor:
            cursor.execute(statement.sql, params)
            row: tuple[Any, ...] | None = cursor.fetchone()
        return row

    def _statement(self) -> _Statement:
        with self._lock:
            statement = self._statements.get(connection.vendor)
            if statement is None:
                statement = self._statements[connection.vendor] = self._compile()
            return statement

    def _compile(self) -> _Statement:
        marks = [self._as_param(mark) for mark in self._marks]
        sql, params = self._build(*self._marks).query.sql_with_params()
        places = tuple(
            (place, marks.index(param)) for place, param in enumerate(params) if param in marks
        )
        return _Statement(sql, tuple(params), places)

    def _as_param(self, value: UUID) -> Any:
        return self._field.get_db_prep_value(value, connection)


@dataclass(frozen=True, slots=True)
class _RowStatement:
    """A compiled query for model instances, as `ModelIterable` of Django would run it."""

    sql: str
    params: tuple[Any, ...]
    places: tuple[tuple[int, int], ...]
    """Which parameter is which of the values."""
    converters: tuple[tuple[int, tuple[Any, ...], Any], ...]
    """Column, what turns the driver's value into ours, and the column's expression."""
    names: tuple[str, ...]
    columns: slice
    related: tuple[Any, ...]


class PreparedRows(Generic[_Row]):
    """A queryset that differs only in ids and words, compiled once; its rows come as instances, with what it joins.

    Annotations and prefetched rows are not supported.

    Args:
        build: makes the queryset from a value of each kind; called once for each kind of database.
        kinds: UUID or str.
    """

    def __init__(
        self, build: Callable[..., models.QuerySet[_Row]], *kinds: type[UUID] | type[str]
    ) -> None:
        self._build = build
        self._kinds = kinds
        self._marks = [_mark(kind, number) for number, kind in enumerate(kinds)]
        self._uuid: models.UUIDField[Any, Any] = models.UUIDField()
        self._statements: dict[str, _RowStatement] = {}
        self._model: type[_Row]
        self._lock = threading.Lock()

    def all(self, *values: UUID | str) -> list[_Row]:
        """The rows; inside a transaction, if the queryset locks them."""
        assert len(values) == len(self._kinds)
        statement = self._statement()
        params = list(statement.params)
        for place, number in statement.places:
            params[place] = self._as_param(values[number])
        with connection.cursor() as cursor:
            cursor.execute(statement.sql, params)
            fetched = cursor.fetchall()
        return [self._instance(statement, list(row)) for row in fetched]

    def first(self, *values: UUID | str) -> _Row | None:
        """The first row, of a queryset that asks for few."""
        return next(iter(self.all(*values)), None)

    def _instance(self, statement: _RowStatement, row: list[Any]) -> _Row:
        for place, converters, expression in statement.converters:
            for convert in converters:
                row[place] = convert(row[place], expression, connection)
        instance = self._model.from_db(connection.alias, statement.names, row[statement.columns])
        for populator in statement.related:
            populator.populate(row, instance)
        return instance

    def _statement(self) -> _RowStatement:
        with self._lock:
            statement = self._statements.get(connection.vendor)
            if statement is None:
                statement = self._statements[connection.vendor] = self._compile()
            return statement

    def _compile(self) -> _RowStatement:
        queryset = self._build(*self._marks)
        # Rows of a tenant only through the door, here as everywhere.
        getattr(queryset, "_must_be_scoped", lambda: None)()
        self._model = queryset.model
        compiler = queryset.query.get_compiler(connection=connection)
        sql, params = compiler.as_sql()
        info: Any = compiler.klass_info
        select: Any = compiler.select
        if compiler.annotation_col_map:
            raise TypeError("annotations are not supported")
        fields = info["select_fields"]
        columns = slice(fields[0], fields[-1] + 1)
        marks = [self._as_param(mark) for mark in self._marks]
        found = compiler.get_converters([one[0] for one in select[: compiler.col_count]])
        return _RowStatement(
            sql=sql,
            params=tuple(params),
            places=tuple(
                (place, marks.index(param)) for place, param in enumerate(params) if param in marks
            ),
            converters=tuple(
                (place, tuple(converters), expression)
                for place, (converters, expression) in found.items()
            ),
            names=tuple(one[0].target.attname for one in select[columns]),
            columns=columns,
            related=tuple(
                get_related_populators(info, select, connection.alias)  # type: ignore[call-arg]  # the stubs are of a later Django
            ),
        )

    def _as_param(self, value: UUID | str) -> Any:
        if isinstance(value, str):
            return value
        return self._uuid.get_db_prep_value(value, connection)


def _mark(kind: type[UUID] | type[str], number: int) -> UUID | str:
    """A value that no query holds by itself."""
    mark = UUID(int=2**127 + number)
    return mark if kind is UUID else f"value {mark}"
