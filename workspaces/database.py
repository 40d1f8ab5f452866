"""From async code to the database: one synchronous function at a time, on a small pool of threads.

Transactions do not work in async Django, so what needs one is a synchronous function that is
crossed into once. asgiref's thread-sensitive mode would put all callers of a loop behind one
thread; these threads serve side by side, and each keeps its connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import (
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    close_old_connections,
    connection,
)
from django.utils import timezone

P = ParamSpec("P")
R = TypeVar("R")

_THREADS = 8
_pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="database")


async def in_database(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a synchronous function that uses the database, off the event loop.

    A cancelled caller leaves at once; the function still runs to its end.
    """
    context = contextvars.copy_context()
    work = partial(context.run, _with_fresh_connections, partial(function, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_pool, work)


def _with_fresh_connections(work: Callable[[], R]) -> R:
    close_old_connections()
    try:
        return work()
    except DatabaseError as error:
        if is_unavailable(error):
            drop_dead_connections()
        raise
    finally:
        close_old_connections()


_READ_ONLY = "25006"


def is_unavailable(error: BaseException | None) -> bool:
    """Whether the database was away, full, locked for too long, or takes no writes: asking again later may help."""
    if isinstance(error, OperationalError | InterfaceError):
        return True
    state = getattr(getattr(error, "__cause__", None), "sqlstate", None)
    return isinstance(error, InternalError) and state == _READ_ONLY


def drop_dead_connections() -> None:
    """After a connection broke: have the pool look at those that lie idle, or each would cost another failure."""
    pool = getattr(connection, "pool", None)
    if pool is not None:
        with contextlib.suppress(Exception):  # closed under us, or the database is still away
            pool.check()


def database_now() -> datetime:
    """The moment by the database's clock, which all processes share.

    On SQLite there is one machine, and so one clock.
    """
    if connection.vendor == "sqlite":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment
