"""What only the database can tell of sealed entries: how they are stored, and whether the log's pages find them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection, models
from django.db.models import Count, Exists, F, IntegerField, OuterRef, Subquery
from django.db.models.functions import Cast, Coalesce

from audit.actions import Action
from audit.models import PLATFORM_CHAIN, AuditEntry, AuditHead, AuditSeal, PendingSeal
from audit.sealing.declared_losses import DeclaredLosses
from audit.sealing.reading import entries_by_id

_MOST_NAMED: Final = 100
_TABLE: Final = AuditEntry._meta.db_table
_SPELLED: Final = tuple(
    field
    for field in AuditEntry._meta.concrete_fields
    if isinstance(field, models.UUIDField | models.DateTimeField | models.JSONField)
)
"""Columns that SQLite keeps as texts of which several are read as the same value; filters compare the texts."""


@dataclass(frozen=True, slots=True)
class EntryProblem:
    """What is wrong with an entry although its seal fits."""

    text: str
    chain: str | None = None
    seq: int | None = None


def misspelled(entries: Iterable[AuditEntry]) -> dict[UUID, str]:
    """Entries that are not stored as Trellis stores their values, with the first such column."""
    wanted = {entry.pk: entry for entry in entries}
    if connection.vendor != "sqlite" or not wanted:
        return {}  # other databases know these types, and each value has one form
    # The plus keeps the driver from converting what it reads.
    columns = ", ".join(f'+"{field.column}"' for field in _SPELLED)
    marks = ", ".join(["%s"] * len(wanted))
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT {columns} FROM "{_TABLE}" WHERE id IN ({marks})',  # noqa: S608 - names of ours
            [pk.hex for pk in wanted],
        )
        rows = cursor.fetchall()
    found = {}
    for row in rows:
        entry = wanted[UUID(row[0])]
        for field, stored in zip(_SPELLED, row, strict=True):
            value = field.get_db_prep_save(getattr(entry, field.attname), connection)
            if type(stored) is not type(value) or stored != value:
                found[entry.pk] = field.attname
                break
    return found


def spelling_doubts(chain: str, entries: dict[AuditEntry, int]) -> Iterator[EntryProblem]:
    """The same in words; entries with their places."""
    seqs = {entry.pk: seq for entry, seq in entries.items()}
    for pk, column in misspelled(entries).items():
        text = f"Entry {pk} is stored in another form than Trellis writes ({column}), so filters do not find it."
        yield EntryProblem(text, chain, seqs[pk])


def unsealed_entries(workspace_id: UUID | None) -> Iterator[EntryProblem]:
    """Entries that are neither sealed nor wait to be: they came in, or lost their seal, behind the log's back."""
    entries = AuditEntry.objects.across_workspaces()
    if workspace_id is not None:
        entries = AuditEntry.objects.for_workspace(workspace_id)
    found = entries.filter(
        ~Exists(AuditSeal.objects.filter(entry_id=OuterRef("pk"))),
        ~Exists(PendingSeal.objects.filter(entry_id=OuterRef("pk"))),
    )
    # As texts: what was written by hand need not be an id.
    names = found.order_by().values_list(_text("id"), _text("workspace_id"))
    declared = _declared_unsealed(workspace_id)
    count = 0
    for name, workspace in names.iterator():
        if _named(name) in declared:
            continue
        if (count := count + 1) > _MOST_NAMED:
            break
        text = f"Entry {_named(name)} has no seal and does not wait for one."
        yield EntryProblem(text, _named(workspace) if workspace else str(PLATFORM_CHAIN))


def _declared_unsealed(workspace_id: UUID | None) -> set[str]:
    """Of entries without a seal, those that were declared along with a lost key, and are as they were."""
    alarms = AuditEntry.objects.across_workspaces().filter(action=Action.LOG_KEY_LOST.value)
    if workspace_id is not None:
        alarms = alarms.filter(workspace_id=workspace_id)
    found: set[str] = set()
    for chain in set(alarms.order_by().values_list("workspace_id", flat=True)):
        losses = DeclaredLosses(chain or PLATFORM_CHAIN)
        entries = entries_by_id(losses.unsealed).values()
        found |= {str(one.pk) for one in entries if losses.is_as_declared(one)}
    return found


def hidden_entries(workspace_id: UUID | None) -> Iterator[EntryProblem]:
    """Sealed entries that the pages of their workspace do not count, each by its name, and how many those count."""
    entries = AuditEntry.unscoped.filter(pk=OuterRef("entry_id"))
    seals = AuditSeal.objects.all()
    heads = AuditHead.objects.all()
    if workspace_id is not None:
        seals, heads = (
            seals.filter(chain_id=workspace_id),
            heads.filter(chain_id=workspace_id),
        )
    own = seals.filter(chain_id=PLATFORM_CHAIN).filter(
        ~Exists(entries.filter(workspace_id=None)), Exists(entries)
    )
    others = seals.exclude(chain_id=PLATFORM_CHAIN).filter(
        ~Exists(entries.filter(workspace_id=OuterRef("chain_id"))), Exists(entries)
    )
    for rows in (own, others):
        for seal in rows.order_by("chain_id", "seq")[:_MOST_NAMED]:
            text = (
                f"Entry {seal.entry_id} is sealed, but the pages of its workspace do not show it."
            )
            yield EntryProblem(text, str(seal.chain_id), seal.seq)
    for head in _counted(heads):
        if head["counted"] < head["sealed"] + head["waiting"]:
            text = f"Pages count {head['counted']} entries here; {head['sealed'] + head['waiting']} are sealed or wait to be."
            yield EntryProblem(text, str(head["chain_id"]))


def _counted(heads: models.QuerySet[AuditHead]) -> Iterator[Mapping[str, Any]]:
    """How many entries each chain's pages count, and how many are sealed and wait: in one statement, so at one moment."""
    waits = Exists(PendingSeal.objects.filter(entry_id=OuterRef("pk")))
    # An entry that is gone altogether is missed in its place.
    there = Exists(AuditEntry.unscoped.filter(pk=OuterRef("entry_id")))
    seals = _number(AuditSeal.objects.filter(there, chain_id=OuterRef("chain_id")), "chain_id")
    for rows, entries in (
        (
            heads.exclude(chain_id=PLATFORM_CHAIN),
            AuditEntry.unscoped.filter(workspace_id=OuterRef("chain_id")),
        ),
        (heads.filter(chain_id=PLATFORM_CHAIN), AuditEntry.unscoped.filter(workspace_id=None)),
    ):
        yield from rows.annotate(
            counted=_number(entries, "workspace_id"),
            sealed=seals,
            waiting=_number(entries.filter(waits), "workspace_id"),
        ).values("chain_id", "counted", "sealed", "waiting")


def _number(rows: models.QuerySet[Any], by: str) -> Coalesce:
    counted = rows.order_by().values(by).annotate(number=Count(F("pk"))).values("number")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def _text(column: str) -> Cast:
    return Cast(column, models.CharField())


def _named(text: str) -> str:
    """An id as people know it; what was written by hand is quoted."""
    try:
        name = UUID(text)
    except ValueError:
        return ascii(text[:64])
    return str(name) if text in {name.hex, str(name)} else ascii(text[:64])
