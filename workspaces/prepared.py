"""Queries that are asked all the time, compiled by Django once instead of each time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, models


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
