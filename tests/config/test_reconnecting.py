"""A database that was away is noticed soon after it is back."""

from __future__ import annotations

from time import monotonic

import pytest
from django.db import connection

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]


def test_tries_to_connect_stay_close_together() -> None:
    """REL-1592: requests wait for the next one, so that one must not be minutes away after minutes without a database."""
    from psycopg_pool.base import AttemptWithBackoff

    given = connection.settings_dict["OPTIONS"]["pool"]
    now = monotonic()
    attempt = AttemptWithBackoff(timeout=given["reconnect_timeout"])
    pauses = []
    while not attempt.time_to_give_up(now):
        attempt.update_delay(now)
        pauses.append(attempt.delay)
        now += attempt.delay
    assert max(pauses) < 6
    # Whoever asks after it gave up begins anew at once, so they must not have given up themselves before.
    assert given["reconnect_timeout"] <= given["timeout"]
