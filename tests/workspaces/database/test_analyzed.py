"""What the planner of the database knows of its tables."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.factories import make_tenant
from workspaces.tasks import analyze_tables


@pytest.mark.both_engines
def test_the_planner_learns_how_large_tables_are(db: None) -> None:
    """REL-568: SQLite is told by a task; PostgreSQL does so by itself, and nothing happens."""
    make_tenant("acme")
    analyze_tables()
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("SELECT stat FROM sqlite_stat1 WHERE tbl = 'workspaces_membership'")
            assert cursor.fetchall()
