"""Erasing what one busy person did leaves a statement for each stretch of the log: whoever looks one up must not read all."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from types import FrameType
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone

from audit.models import AuditPolicy, AuditTombstone
from audit.proof.signing import signed
from audit.proof.trellis_verify import NO_HASH, TOMBSTONE_FORMAT, Verifier
from audit.retention import apply_retention, erase_bodies
from audit.sealing.rotation import key_in_use
from audit.sealing.sealer import seal_pending
from audit.verification.stream import LogStream
from tests.audit.tampering import write_entries
from tests.factories import Tenant, TwoTenants

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("checkpoint_file")]


def calls_of(work: Callable[[], Any]) -> int:
    """How many Python functions and steps of generators it takes."""
    number = 0

    def note(_frame: FrameType, event: str, _given: Any) -> None:
        nonlocal number
        number += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return number


def statements_of(number: int) -> list[dict[str, Any]]:
    """Signed statements of every second place of a chain, as an export has them."""
    found = []
    for place in range(1, 2 * number, 2):
        values = {"kind": "bodies", "chain": str(UUID(int=1)), "first": place, "last": place}
        more = {"format": TOMBSTONE_FORMAT, "before": NO_HASH, "hash": NO_HASH}
        content = {**values, **more, "reason": "erasure", "made_at": "2026-11-28T12:00:00.000000Z"}
        statement, signature = signed(content, key_in_use())
        found.append({"record": "tombstone", "statement": statement, "signature": signature})
    return found


def test_the_verifier_takes_many_statements_in_a_time_that_grows_with_them() -> None:
    """REL-1861: twice as many take twice as long, and not four times."""

    def cost(number: int) -> int:
        records = statements_of(number)
        verifier = Verifier()

        def check() -> None:
            for record in records:
                verifier.feed(record)
            covered = [verifier.covers(str(UUID(int=1)), "bodies", n) for n in range(2 * number)]
            assert covered == [bool(n % 2) for n in range(2 * number)]

        return calls_of(check)

    assert cost(400) < 2.5 * cost(200)


def test_places_within_long_and_short_statements_are_covered() -> None:
    """REL-1861: a statement that lies within another one takes nothing away from it."""
    verifier = Verifier()
    chain = str(UUID(int=1))
    for first, last in [(10, 20), (1, 3), (12, 13), (30, 30), (2, 2)]:
        values = {"kind": "bodies", "chain": chain, "first": first, "last": last}
        more = {"format": TOMBSTONE_FORMAT, "before": NO_HASH, "hash": NO_HASH}
        content = {**values, **more, "reason": "erasure", "made_at": "2026-11-28T12:00:00.000000Z"}
        statement, signature = signed(content, key_in_use())
        verifier.feed({"record": "tombstone", "statement": statement, "signature": signature})
    covered = [place for place in range(40) if verifier.covers(chain, "bodies", place)]
    assert covered == [1, 2, 3, *range(10, 21), 30]
    assert not verifier.covers(chain, "entries", 2)
    assert not verifier.covers("another", "bodies", 2)


def steps_of(work: Callable[[], Any]) -> int:
    """How many hundreds of steps SQLite takes."""
    number = 0

    def note() -> int:
        nonlocal number
        number += 1
        return 0

    connection.ensure_connection()
    raw = connection.connection
    assert isinstance(raw, sqlite3.Connection)
    raw.set_progress_handler(note, 100)
    try:
        work()
    finally:
        raw.set_progress_handler(None, 0)
    return number


@pytest.mark.sqlite
@pytest.mark.parametrize("way", ["retention", "erasure"])
def test_what_goes_is_let_go_without_a_look_at_earlier_statements(
    two_workspaces: TwoTenants, way: str
) -> None:
    """REL-1861: the triggers find the statement of an entry, however many other ones there are."""

    def remove(tenant: Tenant) -> None:
        workspace_id = tenant.workspace.pk
        if way == "retention":
            later = timezone.now() + timedelta(days=2)
            assert apply_retention(workspace_id, now=later).entries == 30
            return
        done = erase_bodies(
            workspace_id=workspace_id,
            person_id=tenant.member.pk,
            reason="Request 12",
            actor=tenant.actor("owner"),
        )
        assert done.erased == 30

    tenants = (two_workspaces.a, two_workspaces.b)
    for tenant in tenants:
        write_entries(tenant, 30, result=b"what was said")
        AuditPolicy.unscoped.create(workspace=tenant.workspace, keep_days=1)
    seal_pending()
    AuditTombstone.objects.bulk_create(
        AuditTombstone(
            chain_id=tenants[1].workspace.pk,
            kind="bodies",
            first_seq=0,
            last_seq=0,
            reason="erasure",
        )
        for _ in range(1_000)
    )
    without, with_many = (steps_of(partial(remove, tenant)) for tenant in tenants)
    assert with_many < 1.5 * without


def test_verifying_names_few_statements_at_once(tenant: Tenant) -> None:
    """REL-1862: also where it looks once more for new ones, because retention has removed something."""
    write_entries(tenant, 3)
    seal_pending()
    AuditPolicy.unscoped.create(workspace=tenant.workspace, keep_entries=1)
    assert apply_retention(tenant.workspace.pk, now=timezone.now()).entries
    AuditTombstone.objects.bulk_create(
        AuditTombstone(chain_id=tenant.workspace.pk, kind="bodies", first_seq=0, last_seq=0)
        for _ in range(2_500)
    )
    most = 0

    def note(execute: Any, sql: str, values: Any, many: bool, context: Any) -> Any:
        nonlocal most
        most = max(most, len(values or ()))
        return execute(sql, values, many, context)

    stream = LogStream(tenant.workspace.pk)
    with connection.execute_wrapper(note):
        found = [record for record in stream if record["record"] == "tombstone"]
    assert len(found) == 2_501
    assert most <= 1_001
