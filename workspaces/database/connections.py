"""Between async code and the database, both ways.

From async code to the database: one synchronous function at a time, on a small pool of threads.
Transactions do not work in async Django, so what needs one is a synchronous function that is
crossed into once. asgiref's thread-sensitive mode would put all callers of a loop behind one
thread; these threads serve side by side.

From a thread into async code: `wait_for`. A thread that waits for something other than the database
gives its connection back first. Otherwise waiting requests take all connections of the process, and
what they wait for finds none.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from asgiref.sync import async_to_sync
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
)
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from workspaces.database.patience import REQUEST_SECONDS, patience
from workspaces.database.threads import DatabaseThreads

P = ParamSpec("P")
R = TypeVar("R")

THREADS: Final = 8
_LOOK_SECONDS: Final = 1.0
"""For a connection to show that it works."""
_LOCK_SECONDS: Final = 0.2
"""Between two looks whether another process still has a lock."""
_marks = threading.local()


def _mark_thread() -> None:
    _marks.is_ours = True


_pool = DatabaseThreads(THREADS, begin=_mark_thread)


def is_database_thread() -> bool:
    """Whether this thread works for `in_database`: it holds a connection briefly, and others wait for it."""
    return getattr(_marks, "is_ours", False)


async def in_database(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a synchronous function that uses the database, off the event loop.

    A cancelled caller leaves at once; the function still runs to its end.
    """
    return await start_in_database(function, *args, **kwargs)


def start_in_database(
    function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> asyncio.Future[R]:
    """As `in_database`, for whoever waits in a way of their own: it has begun, and needs no task."""
    context = contextvars.copy_context()
    work = partial(context.run, _with_fresh_connections, partial(function, *args, **kwargs))
    return _pool.start(work)


def leave_database() -> None:
    """Give this thread's connections back, before it waits for a gate, a server, a model or a person.

    Raises:
        RuntimeError: a transaction is open; it would stay open, and hold its locks, for as long.
    """
    if any(not block._from_testcase for block in connection.atomic_blocks):  # type: ignore[attr-defined]  # as Django does for durable blocks
        raise RuntimeError("A transaction is open: commit it before you wait for something else.")
    give_back_connections()


def give_back_connections() -> None:
    """Give this thread's connections back, unless a transaction is open. The next query takes one again."""
    if not connection.in_atomic_block:
        close_old_connections()


def wait_for(function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a coroutine function from a thread and wait for it, without holding a connection meanwhile.

    Raises:
        RuntimeError: a transaction is open.
    """
    leave_database()
    return async_to_sync(function)(*args, **kwargs)


def _with_fresh_connections(work: Callable[[], R]) -> R:
    close_old_connections()
    try:
        with patience(REQUEST_SECONDS):
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


def statement_cursor(connection: BaseDatabaseWrapper) -> Any:
    """A cursor for a statement that comes again and again. PostgreSQL keeps it, with its plan."""
    return getattr(connection, "prepared_cursor", connection.cursor)()


def drop_dead_connections() -> None:
    """After a connection broke: have the pool look at those that lie idle, or each would cost another failure."""
    pool = getattr(connection, "pool", None)
    if pool is not None:
        # Suppressed: closed under us, or the database is still away.
        with contextlib.suppress(Exception), patience(_LOOK_SECONDS):
            pool.check()


def commit_durably() -> None:
    """Have the transaction that is open on the disk when its commit returns, whatever the server's default is.

    For what a file outside of the database speaks of: after a crash that file must not be ahead.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('synchronous_commit', 'on', true)"
                " WHERE current_setting('synchronous_commit') = 'off'"
            )


def lock_until_commit(number: int) -> None:
    """Wait for a lock of all processes and hold it to the end of the transaction. SQLite's transactions are such a lock.

    Args:
        number: names the lock; one constant beside whatever it guards.
    """
    if connection.vendor == "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])


@contextlib.contextmanager
def hold_lock(number: int, *, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold a lock of all processes for what takes many transactions, by a connection of its own.

    On SQLite nothing is locked: the data folder's one server is alone.

    Args:
        number: names the lock; one constant beside whatever it guards.
        waiting: called once if another process has it.

    Raises:
        OperationalError: the session that held it ended before the block did, so another process may have had it, too.
    """
    if connection.vendor == "sqlite":
        yield
        return
    holder = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        holder.set_autocommit(False)
        if not _take_lock(holder, number):
            waiting()
            while not _take_lock(holder, number):
                time.sleep(_LOCK_SECONDS)
        yield
        with holder.cursor() as cursor:
            cursor.execute("SELECT 1")  # fails if the lock went with the session
    finally:
        with contextlib.suppress(DatabaseError):
            holder.rollback()
        holder.close()


def _take_lock(holder: BaseDatabaseWrapper, number: int) -> bool:
    """Try once. Who waits inside of a transaction keeps a snapshot, for which some migrations of the other wait."""
    with holder.cursor() as cursor:
        for name in ("lock", "statement", "idle_in_transaction_session"):
            cursor.execute(f"SET LOCAL {name}_timeout = 0")
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        (has_lock,) = cursor.fetchone()
    if not has_lock:
        holder.rollback()
    return bool(has_lock)


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
