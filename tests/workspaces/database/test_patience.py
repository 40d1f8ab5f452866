"""How long a connection waits for a database that says nothing any more."""

from __future__ import annotations

import pytest
from django.db import connection

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
