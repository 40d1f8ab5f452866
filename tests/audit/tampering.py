"""What somebody can do who may switch the log's triggers off; and small logs to do it to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from audit.actions import Action, Outcome
from audit.models import AuditCheckpoint, AuditEntry
from audit.sealing.checkpoints import make_checkpoint
from audit.sealing.sealer import seal_pending
from audit.services import EntryDraft, record
from tests import plain_role
from tests.factories import Tenant


@contextmanager
def without_triggers() -> Iterator[None]:
    """As an attacker with the role that owns the tables."""
    saved: list[tuple[str, str]] = []
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            saved = cursor.fetchall()
            for name, _ in saved:
                cursor.execute(f'DROP TRIGGER "{name}"')
        else:
            cursor.execute("RESET ROLE; SET session_replication_role = replica")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            for _, sql in saved:
                cursor.execute(sql)
            if connection.vendor != "sqlite":
                cursor.execute("SET session_replication_role = DEFAULT")
                plain_role.assume(cursor)


def tamper(statement: str, *parameters: Any) -> int:
    """Run SQL past the triggers; how many rows it touched."""
    values = [
        value.hex if connection.vendor == "sqlite" and hasattr(value, "hex") else value
        for value in parameters
    ]
    with without_triggers(), connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)


def write_entries(tenant: Tenant, count: int, **changes: Any) -> list[AuditEntry]:
    """Entries that wait for their seal."""
    return [
        record(
            EntryDraft(
                action=Action.TOOL_CALL_FINISHED,
                actor=tenant.actor("member"),
                workspace_id=tenant.workspace.pk,
                outcome=Outcome.OK,
                **{"details": {"number": number or 0.5}, **changes},
            )
        )
        for number in range(count)
    ]


def sealed_log(tenant: Tenant, rounds: int = 3, each: int = 4) -> list[AuditCheckpoint]:
    """Entries, sealed and signed a few times."""
    made = []
    for _ in range(rounds):
        write_entries(tenant, each)
        seal_pending()
        checkpoint = make_checkpoint()
        assert checkpoint is not None
        made.append(checkpoint)
    return made
