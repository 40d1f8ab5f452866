"""How the product speaks to its database: threads, statements that are compiled once, and what each engine needs."""

from workspaces.database.commits import after_commit, once_after_commit
from workspaces.database.connections import (
    THREADS,
    commit_durably,
    database_now,
    drop_dead_connections,
    give_back_connections,
    hold_lock,
    in_database,
    is_database_thread,
    is_unavailable,
    leave_database,
    lock_until_commit,
    start_in_database,
    statement_cursor,
    wait_for,
)

__all__ = [
    "THREADS",
    "after_commit",
    "commit_durably",
    "database_now",
    "drop_dead_connections",
    "give_back_connections",
    "hold_lock",
    "in_database",
    "is_database_thread",
    "is_unavailable",
    "leave_database",
    "lock_until_commit",
    "once_after_commit",
    "start_in_database",
    "statement_cursor",
    "wait_for",
]
