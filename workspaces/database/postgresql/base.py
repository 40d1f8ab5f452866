"""Django's backend for PostgreSQL, with lanes in front of the pool of connections.

Each request is served in a thread of its own, so more of them can ask for a connection than the pool has. The threads
of `in_database` commit what the gate records, within seconds, so a part of the pool is theirs alone. All other threads
share lanes, and wait for one longer than the pool would let them.

Where row-level security is on, each statement on rows goes together with how far its transaction reaches, in one message.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, Final

from django.conf import settings
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base, operations
from django.utils.asyncio import async_unsafe
from psycopg import ClientCursor, Connection, Cursor, OperationalError, sql
from psycopg.errors import FeatureNotSupported
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from workspaces.database import THREADS, is_database_thread
from workspaces.database.patience import current_patience
from workspaces.database.row_security import NOTHING, SETTING, NoReach, current_reach, is_on

PATIENCE_SECONDS: Final = 25.0
"""How long a thread waits for a lane; below the 30 seconds within which a request fails clearly."""

_CANCEL_SECONDS: Final = 1.0
_PLANNED_ANEW: Final = 2
"""So often a connection's statement is planned before PostgreSQL keeps it."""
_ON_ROWS: Final = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "MERGE", "EXPLAIN"})
_FIRST_WORD: Final = re.compile(r"[\s(]*([A-Za-z]+)")

_lanes: dict[tuple[int, str], threading.Semaphore] = {}
_lock = threading.Lock()


class PatientConnection(Connection[Any]):
    """A connection that waits for a statement's answer for as long as its thread has patience."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """As its base.

        Raises:
            OperationalError: no answer came in time. The connection is closed: what it sends next is no answer to
                what is asked next.
        """
        seconds = current_patience()
        if timeout is not None or seconds is None:
            return super().wait(gen, interval, timeout)
        began = time.monotonic()
        try:
            return super().wait(gen, interval, seconds)
        except OperationalError as error:
            if time.monotonic() - began < seconds:
                raise
            # A server that only takes long need not go on.
            with contextlib.suppress(Exception):
                self.cancel_safe(timeout=_CANCEL_SECONDS)
            self.close()
            raise OperationalError(f"no answer within {seconds:g} seconds") from error


class PatientPool(ConnectionPool[PatientConnection]):
    """A pool that a thread waits for no longer than it has patience."""

    def getconn(self, timeout: float | None = None) -> PatientConnection:
        """As its base."""
        seconds = current_patience()
        if timeout is None and seconds is not None:
            timeout = min(seconds, self.timeout)
        return super().getconn(timeout)


class ReachingCursor(ClientCursor[Any]):
    """A cursor that tells the database how far its transaction reaches."""

    wrapper: DatabaseWrapper | None = None
    """None: the pool itself asks something."""

    def execute(self, query: Any, params: Any = None, **kwargs: Any) -> Any:
        """As its base; the reach goes ahead in the same message, and holds for the same transaction."""
        wrapper = self.wrapper
        telling = wrapper.telling_for(query) if wrapper is not None else None
        if wrapper is None or telling is None:
            return super().execute(query, params, **kwargs)
        wrapper.told_reach = None
        # Several statements in one message are one transaction, also where none was begun.
        super().execute(f"SET LOCAL {SETTING} = '{telling}'; {query}", params, **kwargs)
        self.nextset()
        wrapper.told_reach = telling
        return self

    def executemany(self, query: Any, params_seq: Iterable[Any], **kwargs: Any) -> None:
        """As its base, one by one: only single statements take others with them in a message."""
        for params in params_seq:
            self.execute(query, params)


class KeptCursor(Cursor[Any]):
    """A cursor for statements that come again and again: PostgreSQL parses and plans each once for a connection.

    The driver counts statements on such a connection, and keeps their texts; with all of them it would keep what people
    write. So it counts for the time of this one.
    """

    def execute(self, query: Any, params: Any = None, **kwargs: Any) -> Any:
        """As its base; a plan that no longer fits its table is made anew.

        Raises:
            OperationalError: it was found in the middle of a transaction, which has to begin again.
        """
        run = partial(super().execute, query, params, **kwargs)
        try:
            return self._counted(run)
        except FeatureNotSupported as error:
            # A migration gave a column another type, so PostgreSQL refuses its plan. Nothing ran.
            if self.connection.info.transaction_status is not TransactionStatus.IDLE:
                # The driver drops its statements with the rollback.
                raise OperationalError(
                    "A table has changed. Begin the transaction again."
                ) from error
        self._counted(partial(super().execute, "DEALLOCATE ALL"))
        return self._counted(run)

    def executemany(self, query: Any, params_seq: Iterable[Any], **kwargs: Any) -> None:
        """As its base, in one round trip. Plans of statements that give no rows always fit their table."""
        self._counted(partial(super().executemany, query, params_seq, **kwargs))

    def _counted(self, run: Callable[[], Any]) -> Any:
        self.connection.prepare_threshold = _PLANNED_ANEW
        try:
            return run()
        finally:
            self.connection.prepare_threshold = None


class DatabaseOperations(operations.DatabaseOperations):
    """As its base, where statements are looked at: a kept one and its values travel apart."""

    def last_executed_query(self, cursor: Any, sql: Any, params: Any) -> Any:
        """The statement with its values in it, for whoever debugs or counts."""
        if isinstance(cursor, KeptCursor):
            return self.compose_sql(sql, params)
        return super().last_executed_query(cursor, sql, params)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that holds a lane from when it is taken out of the pool until it is given back."""

    ops_class = DatabaseOperations
    _leave_lane: Callable[[], object] | None = None
    told_reach: str | None = None
    """What the transaction that is open was told last; None: nothing that still holds for sure."""

    @property
    def pool(self) -> Any:
        """As its base; of connections with patience."""
        options = self.settings_dict["OPTIONS"].get("pool")
        pools: dict[str, PatientPool] = self._connection_pools  # type: ignore[attr-defined]  # the stubs leave it out
        if options and self.alias not in pools and self.alias != NO_DB_ALIAS:
            made = PatientPool(
                kwargs={**self.get_connection_params(), "autocommit": True},
                connection_class=PatientConnection,
                configure=self._configure_connection,  # type: ignore[attr-defined]
                open=False,
                **options,
            )
            pools.setdefault(self.alias, made)
        return super().pool

    def get_connection_params(self) -> dict[str, Any]:
        """As its base; with row-level security, its cursors tell how far they reach."""
        params: dict[str, Any] = super().get_connection_params()
        if is_on():
            params["cursor_factory"] = ReachingCursor
        return params

    def _configure_role(self, connection: Any) -> bool:
        """Take the role that the address names (`assume_role`). Django's asks the pool, which waits for this connection."""
        role = self.settings_dict["OPTIONS"].get("assume_role")
        if role:
            with connection.cursor() as cursor:
                cursor.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        return bool(role)

    def create_cursor(self, name: str | None = None) -> Any:
        """As its base."""
        cursor = super().create_cursor(name)
        if isinstance(cursor, ReachingCursor):
            cursor.wrapper = self
        return cursor

    @async_unsafe
    def prepared_cursor(self) -> Any:
        """A cursor for a statement of few kinds of values, which the database may keep.

        A pooler gives the next transaction another connection, and the reach has to go in the statement's own message:
        there it is an ordinary cursor.
        """
        if is_on() or settings.TRELLIS.database_pooler == "transaction":
            return self.cursor()
        self.ensure_connection()
        with self.wrap_database_errors:
            return self._prepare_cursor(KeptCursor(self.connection))  # type: ignore[attr-defined]  # the stubs leave it out

    def telling_for(self, query: Any) -> str | None:
        """The reach that has to go ahead of a statement; None: it needs none, or the transaction knows.

        Raises:
            NoReach: the statement is on tenants' rows, and nobody said whose.
        """
        reach = current_reach()
        if reach == self.told_reach and not self.autocommit:
            return None
        word = _FIRST_WORD.match(query) if isinstance(query, str) else None
        if word is None or word[1].upper() not in _ON_ROWS:
            return None
        # What is added is refused by the policies themselves; what is not found is missed by nobody.
        if (
            reach == NOTHING
            and word[1].upper() != "INSERT"
            and (found := _tables_pattern().search(query))
        ):
            raise NoReach(f"a statement on {found[0]} where nobody said whose rows")
        if reach == NOTHING and self.autocommit:
            return None
        return reach

    def _set_autocommit(self, autocommit: bool) -> None:
        self.told_reach = None
        super()._set_autocommit(autocommit)  # type: ignore[misc]  # the stubs leave it out

    def _commit(self) -> Any:
        self.told_reach = None
        return super()._commit()  # type: ignore[misc]

    def _rollback(self) -> Any:
        self.told_reach = None
        return super()._rollback()  # type: ignore[misc]

    def _savepoint_rollback(self, sid: str) -> None:
        # What was told since that savepoint is undone with it.
        self.told_reach = None
        super()._savepoint_rollback(sid)  # type: ignore[misc]

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """As its base; other threads than those of `in_database` take a lane first."""
        if self.pool and not is_database_thread():
            lanes = _lanes_of(self.alias, self.pool.max_size)
            patience = current_patience()
            seconds = PATIENCE_SECONDS if patience is None else min(PATIENCE_SECONDS, patience)
            if not lanes.acquire(timeout=seconds):
                raise PoolTimeout(f"no lane became free in {seconds:g} seconds")
            # Once only, and also if the thread ends without giving its connection back.
            self._leave_lane = weakref.finalize(self, lanes.release)
        try:
            return super().get_new_connection(conn_params)
        except BaseException:
            self._leave()
            raise

    def _close(self) -> None:
        self.told_reach = None
        try:
            super()._close()  # type: ignore[misc]  # the stubs leave it out
        finally:
            self._leave()

    def _leave(self) -> None:
        leave, self._leave_lane = self._leave_lane, None
        if leave is not None:
            leave()


@cache
def _tables_pattern() -> re.Pattern[str]:
    """Finds a table of tenants in a statement."""
    from workspaces.database.postgresql.policies import (
        protected_tables,
    )  # needs models, which need this backend

    return re.compile("|".join(rf"\b{table}\b" for table in protected_tables()))


def _lanes_of(alias: str, pool_size: int) -> threading.Semaphore:
    # A forked child begins with its own: nobody there gives back what the parent's threads hold.
    key = os.getpid(), alias
    with _lock:
        if key not in _lanes:
            _lanes[key] = threading.Semaphore(max(1, pool_size - THREADS))
        return _lanes[key]
