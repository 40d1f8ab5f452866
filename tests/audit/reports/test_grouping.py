"""What reports group by is what Python and Django would give, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.db.models import IntegerField, Value
from django.db.models.functions import Trunc
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit.filters import read_filter
from audit.models import AuditEntry
from audit.reports import matching
from audit.reports.grouping import BucketOfDuration, truncated
from audit.reports.report import report_of
from audit.rollups.histogram import BOUNDS, bucket_of
from audit.rollups.pieces import Unit
from tests.audit.views.log_pages import a_call
from tests.factories import Tenant
from workspaces.models import Workspace

pytestmark = [pytest.mark.django_db, pytest.mark.both_engines]

DURATIONS = sorted({edge + by for edge in BOUNDS for by in (-1, 0, 1) if edge + by < 2**31})


def test_a_duration_has_the_same_bucket_in_the_database(tenant: Tenant) -> None:
    """REL-2175: at every bound of the scale."""
    row = Workspace.objects.filter(pk=tenant.workspace.pk)
    for start in range(0, len(DURATIONS), 100):
        asked = DURATIONS[start : start + 100]
        found = {
            f"b{number}": BucketOfDuration(Value(duration, output_field=IntegerField()))
            for number, duration in enumerate(asked)
        }
        values = row.annotate(**found).values_list(*found).get()
        assert list(values) == [bucket_of(duration) for duration in asked]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Vienna", "Asia/Kathmandu", "America/St_Johns"])
@pytest.mark.parametrize("unit", ["minute", "hour", "day", "week", "month"])
def test_a_moment_lies_in_the_same_piece_of_time(tenant: Tenant, unit: Unit, zone: str) -> None:
    """REL-2175: also around midnight and where clocks change."""
    own = UTC if unit in {"minute", "hour"} else ZoneInfo(zone)
    rows = Workspace.objects.filter(pk=tenant.workspace.pk)
    for middle in (
        datetime(2026, 3, 29, 1, tzinfo=UTC),
        datetime(2026, 10, 31, 18, 15, tzinfo=UTC),
    ):
        for minutes in (-901, -59, -1, 0, 14, 15, 44, 299, 720):
            moment = middle + timedelta(minutes=minutes, microseconds=7)
            rows.update(created_at=moment)
            piece = truncated(unit, ZoneInfo(zone))
            plain = Trunc("created_at", unit, tzinfo=own)
            mine, wanted = rows.annotate(a=piece, b=plain).values_list("a", "b").get()
            assert mine == wanted, moment


def test_a_narrowed_report_reads_few_rows_of_many_entries(tenant: Tenant) -> None:
    """REL-2175: it read a row for each duration, and SQLite read each moment anew for each number."""
    a_call(tenant)
    rows = AuditEntry.objects.for_workspace(tenant.workspace)
    wanted = read_filter({"action": "tool_call.finished", "range": "all"}, now=timezone.now())
    with CaptureQueriesContext(connection) as asked:
        report_of(
            tenant.workspace.pk, matching(rows, wanted), wanted, by="outcome", now=timezone.now()
        )
    statements = [one["sql"] for one in asked]
    assert sum("_bucket(" in sql for sql in statements) >= 2
    assert not any("django_datetime_trunc" in sql for sql in statements)


def test_a_report_is_asked_for_while_another_is_read(tenant: Tenant) -> None:
    """REL-2175: SQLite replaces no function while a statement runs that has functions."""
    for _ in range(3):
        a_call(tenant)
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(duration_ms__isnull=False)
    read = rows.annotate(bucket=BucketOfDuration("duration_ms")).values_list("bucket", flat=True)
    running = read.iterator(chunk_size=1)
    first = next(running)
    assert set(read) == {first}
    assert list(running) == [first] * 2
