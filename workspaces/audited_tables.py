"""Which rows are configuration: changes of them that no service announces are noticed by the database itself.

Each app says so for its own models when it is ready. `workspaces.changes` announces; `audit.outside_writes` finds the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import models

from workspaces.secrets import EncryptedTextField


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedTable:
    """One table of configuration."""

    model: type[models.Model]
    fields: tuple[models.Field[object, object], ...]
    """Whose changes count: not those of state, such as when something was last seen."""
    verbs: tuple[str, ...]

    @property
    def table(self) -> str:
        """Its name in the database."""
        return self.model._meta.db_table

    @property
    def columns(self) -> tuple[str, ...]:
        """The watched columns."""
        return tuple(str(field.column) for field in self.fields)

    @property
    def secret_columns(self) -> frozenset[str]:
        """Those of which only the change is told."""
        return frozenset(
            str(field.column) for field in self.fields if isinstance(field, EncryptedTextField)
        )


_watched: dict[str, AuditedTable] = {}
ALL_VERBS = ("INSERT", "UPDATE", "DELETE")


def audit_table(
    model: type[models.Model], fields: Iterable[str], *, verbs: tuple[str, ...] = ALL_VERBS
) -> None:
    """From now on changes of these fields are configuration, and so are rows that come or go."""
    found = tuple(model._meta.get_field(name) for name in fields)
    _watched[model._meta.label] = AuditedTable(model=model, fields=found, verbs=verbs)  # type: ignore[arg-type]  # no relations from elsewhere


def audited_tables() -> list[AuditedTable]:
    """Every table of configuration, in the order of their names."""
    return [_watched[label] for label in sorted(_watched)]
