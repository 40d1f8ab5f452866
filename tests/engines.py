"""Which tests run on SQLite and on PostgreSQL: those of code that speaks to each of them in its own way.

Here are the files of which all tests do. Of other files, single tests are marked with `both_engines`: those of leases,
claims, locks, idempotent requests and transactions.

All other tests run once, on PostgreSQL; the journeys in a browser run on SQLite, the embedded form. `manage.py test --full`
runs everything on both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

BOTH_ENGINES: Final = (
    # Triggers, their functions, and what is found when somebody went past them.
    "tests/audit/sealing/",
    "tests/audit/outside_writes/test_outside_writes.py",
    "tests/audit/services/test_recording.py",
    "tests/audit/verification/test_hidden.py",
    "tests/audit/verification/test_online.py",
    "tests/config/test_migrations.py",
    # Transactions that fail, are lost, or are restored.
    "tests/audit/services/test_spool.py",
    "tests/chat/engine/test_restore.py",
    "tests/mcp_servers/gate/test_gate_and_the_log.py",
    "tests/workspaces/database/test_backups.py",
    # SQL of each engine's own: search, percentiles, streamed reads, JSON, statements that are prepared or counted.
    "tests/audit/api/test_entries.py",
    "tests/audit/reports/test_calls.py",
    "tests/audit/exports/test_exports.py",
    "tests/audit/views/test_own_activity.py",
    "tests/audit/views/test_saved_views.py",
    "tests/audit/reports/test_searching.py",
    "tests/audit/retention/test_retention.py",
    "tests/audit/retention/test_settings_page.py",
    "tests/audit/rollups/test_rollups.py",
    "tests/bench/test_invented_log.py",
    "tests/bench/test_search.py",
    "tests/chat/engine/test_long_history.py",
    "tests/chat/live/test_streaming_text.py",
    "tests/chat/engine/test_price_of_a_turn.py",
    "tests/chat/engine/test_statements.py",
    "tests/workspaces/database/test_prepared.py",
    "tests/workspaces/test_secrets.py",
    # Leases, row locks and claims.
    "tests/chat/engine/test_queue.py",
    "tests/chat/engine/test_storm.py",
    "tests/chat/engine/test_together.py",
    "tests/mcp_servers/oauth/test_races.py",
    "tests/mcp_servers/registry/test_quotas.py",
)


def runs_on_both(path: str) -> bool:
    """Whether a file's tests run on both engines, by its path below the project's folder."""
    return path.startswith(BOTH_ENGINES)


def holds_some(file: Path, root: Path) -> bool:
    """Whether a file may hold a test that runs on SQLite too: all of its tests, or single ones that are marked."""
    marks = ("mark.both_engines", "mark.sqlite")
    text = file.read_text(encoding="utf-8")
    return runs_on_both(file.relative_to(root).as_posix()) or any(mark in text for mark in marks)


ENDLESS: Final = {
    "postgresql": "SELECT count(*) FROM generate_series(1, 10000000000)",
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
}
"""A statement of each engine that has to be broken off."""
