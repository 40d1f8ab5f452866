"""What happened: entries that are only ever added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from audit.retention.periods import RetentionPeriod


class AuditConfig(AppConfig):
    name = "audit"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from audit import metrics, receivers  # noqa: F401 - connects the receivers
        from audit.alerts.notices import notify
        from audit.membership_end import end_rows_of
        from audit.models import (
            AlertRule,
            AuditBody,
            AuditEntry,
            AuditPolicy,
            AuditStream,
            LegalHold,
            OutsideWrite,
            ReportSchedule,
        )
        from audit.models.labels import COLUMNS, TABLES
        from audit.retention.periods import register_kept
        from workspaces.audited_tables import audit_table
        from workspaces.database.postgresql.policies import also_allow, keep_for_platform
        from workspaces.delivery.bell import tell_with
        from workspaces.labels import EVERYWHERE
        from workspaces.people.memberships import listen_to_leaving
        from workspaces.words.columns import name_tables

        name_tables(self, tables=TABLES, columns={**EVERYWHERE, **COLUMNS})
        audit_table(
            AuditPolicy,
            (
                *("keep_days", "keep_entries", "keep_bodies_days", "body_bytes"),
                *("masked_paths", "detectors"),
            ),
        )
        audit_table(LegalHold, ("reason", "placed_by", "released_by", "released_at"))
        audit_table(
            AuditStream,
            (
                *("name", "kind", "target", "secret", "headers", "is_paused"),
                *("ca_certificates", "client_certificate", "client_key"),
            ),
        )
        audit_table(
            ReportSchedule,
            (
                *("name", "query", "format", "cadence", "hour", "time_zone", "covers"),
                *("delivery", "recipients", "is_active"),
            ),
        )
        audit_table(
            AlertRule,
            (
                *("name", "condition", "threshold", "window_minutes", "is_active", "tells_bell"),
                *("server_name", "tool_name", "emails", "webhook_url", "webhook_secret"),
            ),
        )
        # Whoever acts may add what the log says of the platform, and only the platform's jobs read it.
        for model in (AuditEntry, AuditBody):
            also_allow(model, "INSERT", "workspace_id IS NULL")
        keep_for_platform(OutsideWrite)
        # A trigger notes what is written, and another one takes the note back when the change is announced.
        also_allow(OutsideWrite, "ALL", "xact = pg_current_xact_id()::text")
        listen_to_leaving(parted=end_rows_of)
        tell_with(notify)
        register_kept(_kept)
        metrics.register()


def _kept() -> Sequence[RetentionPeriod]:
    from audit.retention_periods import list_periods

    return list_periods()
