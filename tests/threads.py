"""Threads of a test that use the database."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import connections

from workspaces.database.row_security import current_reach, reaching

P = ParamSpec("P")
R = TypeVar("R")


class Threads(ThreadPoolExecutor):
    """Gives connections back after each piece of work: those of a thread that ends are lost to the pool for good."""

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """As its base."""
        return super().submit(giving_back(fn), *args, **kwargs)


def giving_back(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, which reaches as far as its test, and closes its thread's connections at its end."""
    reach = current_reach()

    def work(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with reaching(reach):
                return function(*args, **kwargs)
        finally:
            connections.close_all()

    return work
