"""The database itself lets nobody change, delete or empty what the log consists of."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, models, transaction

from audit.models import (
    AuditCheckpoint,
    AuditEntry,
    AuditSeal,
    AuditTombstone,
)
from audit.sealing.tombstones import make_tombstone
from tests.audit.tampering import sealed_log
from tests.factories import Tenant, make_tenant

pytestmark = pytest.mark.usefixtures("checkpoint_file")
MODELS: dict[str, type[models.Model]] = {
    "entry": AuditEntry,
    "seal": AuditSeal,
    "checkpoint": AuditCheckpoint,
    "tombstone": AuditTombstone,
}
FIELDS = {
    "entry": "actor_label",
    "seal": "hash",
    "checkpoint": "signature",
    "tombstone": "reason",
}


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


EMPTY = {"arguments_preview": "", "result_preview": ""}
WAYS: dict[str, Callable[[type[models.Model], str], Any]] = {
    "save": lambda model, field: model._base_manager.latest("pk").save(update_fields=[field]),
    "delete": lambda model, field: model._base_manager.latest("pk").delete(),
    "update of all": lambda model, field: model._base_manager.update(**{field: "x"}),
    "delete of all": lambda model, field: model._base_manager.all().delete(),
    "raw update": lambda model, field: _execute(f"UPDATE {model._meta.db_table} SET {field} = 'x'"),
    "raw delete": lambda model, field: _execute(f"DELETE FROM {model._meta.db_table}"),
}


@pytest.fixture
def log(tenant: Tenant) -> Tenant:
    """A sealed log with a statement of what is removed, and nothing removed yet."""
    sealed_log(tenant, rounds=1, each=6)
    make_tombstone(
        chain_id=tenant.workspace.pk,
        kind=AuditTombstone.Kind.BODIES,
        first_seq=2,
        last_seq=3,
        reason="asked for",
    )
    return tenant


def _state() -> list[Any]:
    return [list(model._base_manager.order_by("pk").values()) for model in MODELS.values()]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_no_row_of_the_log_changes_or_goes(log: Tenant, name: str, way: str) -> None:
    """SEC-100: through the ORM and in raw SQL, on entries, seals, checkpoints and tombstones."""
    before = _state()
    with pytest.raises(DatabaseError), transaction.atomic():
        WAYS[way](MODELS[name], FIELDS[name])
    assert _state() == before


@pytest.mark.parametrize("name", MODELS)
def test_no_table_is_emptied_and_no_row_replaced(log: Tenant, name: str) -> None:
    """SEC-100: TRUNCATE (PostgreSQL) and REPLACE (SQLite) pass no ordinary trigger."""
    table = MODELS[name]._meta.db_table
    statement = (
        f"REPLACE INTO {table} SELECT * FROM {table}"
        if connection.vendor == "sqlite"
        else f"TRUNCATE {table}"
    )
    before = _state()
    with pytest.raises(DatabaseError), transaction.atomic():
        _execute(statement)
    assert _state() == before


def test_the_end_of_a_workspace_takes_nothing_of_its_log(log: Tenant) -> None:
    """SEC-100: no key of the log points to anything that can be deleted."""
    before = _state()
    log.workspace.delete()
    assert _state() == before


def _seals(log: Tenant, first: int, last: int) -> Any:
    return AuditSeal.objects.filter(chain_id=log.workspace.pk, seq__range=(first, last))


def test_behind_a_statement_exactly_its_range_can_go(log: Tenant) -> None:
    """SEC-100: entries and seals that it covers, and nothing beside them."""
    make_tombstone(
        chain_id=log.workspace.pk,
        kind=AuditTombstone.Kind.ENTRIES,
        first_seq=1,
        last_seq=2,
        reason="kept for 1 day",
    )
    entries = AuditEntry.objects.for_workspace(log.workspace)
    beside = list(_seals(log, 2, 3).values_list("entry_id", flat=True))
    with pytest.raises(DatabaseError), transaction.atomic():
        entries.filter(pk__in=beside).delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        _seals(log, 2, 3).delete()
    covered = _seals(log, 1, 2)
    with pytest.raises(DatabaseError), transaction.atomic():
        entries.filter(pk__in=covered.values("entry_id")).update(rule="x")
    with pytest.raises(DatabaseError), transaction.atomic():
        covered.update(hash="x")
    (first,) = _seals(log, 1, 1).values_list("entry_id", flat=True)
    with pytest.raises(DatabaseError), transaction.atomic():
        entries.filter(pk=first).update(**EMPTY)
    entries.filter(pk__in=list(covered.values_list("entry_id", flat=True))).delete()
    covered.delete()
    assert AuditEntry.objects.for_workspace(log.workspace).count() == 4
    assert AuditSeal.objects.filter(chain_id=log.workspace.pk).count() == 4


def test_behind_a_statement_about_bodies_only_previews_are_emptied(log: Tenant) -> None:
    """SEC-100: nothing else of the entry, not with another text, and not beside the range."""
    entries = AuditEntry.objects.for_workspace(log.workspace)
    (inside,) = _seals(log, 2, 2).values_list("entry_id", flat=True)
    (outside,) = _seals(log, 4, 4).values_list("entry_id", flat=True)
    for pk, values in (
        (outside, EMPTY),
        (inside, {**EMPTY, "arguments_preview": "something else"}),
        (inside, {**EMPTY, "result_preview": "something else"}),
        (inside, {**EMPTY, "actor_label": "nobody"}),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            entries.filter(pk=pk).update(**values)
    assert entries.filter(pk=inside).update(**EMPTY) == 1
    with pytest.raises(DatabaseError), transaction.atomic():
        entries.filter(pk=inside).delete()


@pytest.mark.parametrize("kind", AuditTombstone.Kind)
def test_a_statement_about_one_chain_opens_no_other(log: Tenant, kind: str) -> None:
    """SEC-100: the log of another workspace has the same numbers."""
    other = make_tenant("other")
    sealed_log(other, rounds=1, each=3)
    make_tombstone(
        chain_id=log.workspace.pk,
        kind=AuditTombstone.Kind(kind),
        first_seq=1,
        last_seq=3,
        reason="asked for",
    )
    entries = AuditEntry.objects.for_workspace(other.workspace)
    sealed = entries.filter(pk__in=_seals(other, 1, 3).values("entry_id"))
    assert sealed.count() == 3
    for attempt in (
        lambda: sealed.update(**EMPTY),
        lambda: sealed._raw_delete("default"),
        lambda: _seals(other, 1, 3)._raw_delete("default"),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            attempt()


def test_only_what_is_sealed_can_be_stated_as_removed(log: Tenant) -> None:
    """Ours: a range beyond the chain, turned round, or of another chain."""
    for chain, first, last in (
        (log.workspace.pk, 5, 99),
        (log.workspace.pk, 4, 3),
        (uuid.uuid4(), 1, 1),
    ):
        with pytest.raises(ValueError, match="sealed"):
            make_tombstone(
                chain_id=chain,
                kind=AuditTombstone.Kind.ENTRIES,
                first_seq=first,
                last_seq=last,
                reason="",
            )
