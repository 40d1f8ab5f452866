"""How long a connection waits for a database that says nothing any more."""

from __future__ import annotations

import time

import pytest
from django.db import OperationalError, connection, connections
from django.test import Client

from config import health
from config.telemetry import metrics
from tests.patience import wait_until
from tests.threads import Threads
from workspaces.database import in_database
from workspaces.database.patience import (
    REQUEST_SECONDS,
    current_patience,
    patience,
    shared_patience,
)

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]


def test_a_database_that_is_gone_without_a_word_is_found_out_soon() -> None:
    """REL-1425, REL-27: the system would wait a quarter of an hour for what was sent, and two hours for an answer."""
    connection.ensure_connection()
    used = {one.keyword: one.val for one in connection.connection.pgconn.info}
    listed = [
        used[name] for name in (b"keepalives_idle", b"keepalives_interval", b"keepalives_count")
    ]
    idle, interval, count = (int(value or 0) for value in listed)
    assert 0 < idle + interval * count <= 25
    assert 0 < int(used[b"tcp_user_timeout"] or 0) <= 25_000
    assert 0 < int(used[b"connect_timeout"] or 0) <= 10


def test_a_statement_without_an_answer_ends_with_its_callers_patience() -> None:
    """REL-2651: it is left and ended, its connection is not used again, and the pool has not lost one."""
    sleepy = connections.create_connection("default")
    began = time.monotonic()
    with patience(0.1), pytest.raises(OperationalError, match=r"no answer within 0\.1"):
        sleepy.cursor().execute("SELECT pg_sleep(20)")
    assert time.monotonic() - began < 10
    assert sleepy.connection.closed
    sleepy.close()
    wait_until(lambda: not _is_asleep(), what="the end of the statement")


async def test_work_beside_the_loop_has_the_patience_of_a_request() -> None:
    """REL-2651: what a page's socket asks for ends, too."""
    assert await in_database(current_patience) == REQUEST_SECONDS


def _is_asleep() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(20)' AND state = 'active'"
        )
        return cursor.fetchone() is not None


def test_statements_can_share_their_patience() -> None:
    """REL-3041: whoever has used it up waits for no connection either."""
    with shared_patience(0):
        assert current_patience() == 0
        sleepy = connections.create_connection("default")
        with pytest.raises(OperationalError):
            sleepy.cursor().execute("SELECT pg_sleep(20)")
        sleepy.close()


def test_metrics_answer_while_the_database_gives_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-3041: without what stands in the database, and before Prometheus gives the reading up."""
    monkeypatch.setattr(metrics, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(metrics, "_may_read", lambda _request: True)
    holder = connections.create_connection("default")
    holder.set_autocommit(False)
    began = time.monotonic()
    try:
        holder.cursor().execute(
            "LOCK TABLE audit_auditcheckpoint, chat_turn IN ACCESS EXCLUSIVE MODE"
        )
        with Threads(1) as pool:
            [answer] = pool.map(lambda _: Client().get("/metrics"), [None])
    finally:
        holder.rollback()
        holder.close()
    # One gauge that waits by itself takes as long.
    assert time.monotonic() - began < REQUEST_SECONDS
    assert answer.status_code == 200
    samples = answer.content.decode().splitlines()
    names = {line.partition(" ")[0].partition("{")[0] for line in samples if line[0] != "#"}
    assert "trellis_spool_files" in names
    assert names.isdisjoint({"trellis_log_checkpoint_age_seconds", "trellis_turns"})


def test_readiness_names_the_part_of_the_database_that_gives_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """REL-2651: a write that does not end is no reason to doubt what was read, and who asks next waits no longer."""
    monkeypatch.setattr(health, "ANSWER_SECONDS", 0.5)
    health.database_writes.forget()
    holder = connections.create_connection("default")
    holder.set_autocommit(False)
    try:
        holder.cursor().execute("LOCK TABLE django_session IN EXCLUSIVE MODE")
        with Threads(2) as pool:
            answers = list(pool.map(lambda _: Client().get("/readyz"), range(2)))
    finally:
        holder.rollback()
        holder.close()
        health.database_writes.forget()
    for answer in answers:
        assert answer.status_code == 503
        checks = answer.json()["checks"]
        assert [name for name, result in checks.items() if result == "failed"] == [
            "database_writes"
        ]
