"""From async code to the database: one synchronous function at a time, on a small pool of threads.

Transactions do not work in async Django, so what needs one is a synchronous function that is
crossed into once. asgiref's thread-sensitive mode would put all callers of a loop behind one
thread; these threads serve side by side, and each keeps its connection.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import close_old_connections, connection
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
    finally:
        close_old_connections()


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
