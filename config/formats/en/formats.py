"""Shapes that Django asks for anew each time, so that they are those of whoever reads. What people type stays ISO 8601."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from workspaces.words.formats import clock_shape, day_shape, moment_shape


class _Shape(str):
    """The usual shape as a value, as programs get it; the reader's where it is written out."""

    _of_reader: Callable[[], str]

    def __new__(cls, of_reader: Callable[[], str]) -> Self:
        shape = super().__new__(cls, of_reader())
        shape._of_reader = of_reader
        return shape

    def __str__(self) -> str:
        return self._of_reader()


DATE_FORMAT = SHORT_DATE_FORMAT = _Shape(day_shape)
TIME_FORMAT = _Shape(clock_shape)
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = _Shape(moment_shape)
