"""Two administrators who change the same stream, rule or schedule of the log at one moment."""

from __future__ import annotations

from typing import Any

import pytest

from audit.alerts.services import AlertRuleDraft, delete_rule, switch_rule, update_rule
from audit.models import AuditPolicy, AuditStream
from audit.retention.policies import PolicyChange, change_policy
from audit.reviews.schedules import delete_schedule, pause_schedule
from audit.streams.services import (
    StreamDraft,
    delete_stream,
    pause_stream,
    renew_secret,
    update_stream,
)
from tests.audit.log_settings import DRAFT, a_rule, a_schedule, a_stream
from tests.factories import Tenant
from tests.locks import beside
from workspaces.database import database_now
from workspaces.errors import NotFound

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_engines]


def seen_before(row: Any) -> Any:
    """The row as another tab has read it."""
    return type(row).unscoped.get(pk=row.pk)


def test_a_signing_key_that_was_renewed_stays(tenant: Tenant) -> None:
    """REL-1548: whoever pauses or renames the stream at the same moment does not bring the old one back."""
    stream, owner = a_stream(tenant), tenant.actor("owner")
    pausing, renaming = seen_before(stream), seen_before(stream)
    secret = renew_secret(stream=stream, actor=owner)
    pause_stream(stream=pausing, actor=owner, is_paused=True)
    draft = StreamDraft(name="other", target="https://sink.example.org/")
    update_stream(stream=renaming, actor=owner, draft=draft)
    stored = seen_before(stream)
    assert stored.secret.reveal("test") == secret
    assert (stored.name, stored.is_paused) == ("other", True)


def test_a_stream_that_was_deleted_does_not_come_back(tenant: Tenant) -> None:
    """REL-1548: it would go on to send the log."""
    stream, owner = a_stream(tenant), tenant.actor("owner")
    late = seen_before(stream)
    delete_stream(stream=stream, actor=owner)
    draft = StreamDraft(name="other", target="https://sink.example.org/")
    with pytest.raises(NotFound):
        update_stream(stream=late, actor=owner, draft=draft)
    with pytest.raises(NotFound):
        pause_stream(stream=late, actor=owner, is_paused=False)
    with pytest.raises(NotFound):
        renew_secret(stream=late, actor=owner)
    with pytest.raises(NotFound):
        delete_stream(stream=late, actor=owner)
    assert not AuditStream.objects.for_workspace(tenant.workspace).exists()


@pytest.mark.postgresql
def test_a_stream_is_not_brought_back_by_a_change_that_waited(tenant: Tenant) -> None:
    """REL-1548: it waits for whoever deletes the stream, and finds nothing then."""
    stream, owner = a_stream(tenant), tenant.actor("owner")
    late = seen_before(stream)
    outcomes = beside(
        lambda: delete_stream(stream=stream, actor=owner),
        lambda: pause_stream(stream=late, actor=owner, is_paused=False),
    )
    assert isinstance(outcomes, NotFound)
    assert not AuditStream.objects.for_workspace(tenant.workspace).exists()


def test_a_rule_that_is_switched_keeps_what_was_changed(tenant: Tenant) -> None:
    """REL-1548: and one that is changed stays switched off."""
    rule, owner = a_rule(tenant), tenant.actor("owner")
    switching = seen_before(rule)
    draft = AlertRuleDraft(
        name="slow", threshold=9, webhook_url="https://other.example.org/", **DRAFT
    )
    secret = update_rule(rule=rule, actor=owner, draft=draft)
    switch_rule(rule=switching, actor=owner, is_active=False)
    update_rule(rule=rule, actor=owner, draft=draft)
    stored = seen_before(rule)
    assert (stored.threshold, stored.is_active) == (9, False)
    assert stored.webhook_secret.reveal("test") == secret


def test_a_rule_that_was_deleted_does_not_come_back(tenant: Tenant) -> None:
    """REL-1548."""
    rule, owner = a_rule(tenant), tenant.actor("owner")
    late = seen_before(rule)
    delete_rule(rule=rule, actor=owner)
    draft = AlertRuleDraft(name="slow", threshold=9, **DRAFT)
    with pytest.raises(NotFound):
        update_rule(rule=late, actor=owner, draft=draft)
    with pytest.raises(NotFound):
        switch_rule(rule=late, actor=owner, is_active=True)
    with pytest.raises(NotFound):
        delete_rule(rule=late, actor=owner)


def test_a_schedule_that_was_deleted_is_not_paused(tenant: Tenant) -> None:
    """REL-1548: it says that it is gone, and the log has it deleted once."""
    schedule, auditor = a_schedule(tenant), tenant.actor("auditor")
    late = seen_before(schedule)
    delete_schedule(schedule=schedule, actor=auditor)
    with pytest.raises(NotFound):
        pause_schedule(schedule=late, actor=auditor, is_paused=True, now=database_now())
    with pytest.raises(NotFound):
        delete_schedule(schedule=late, actor=auditor)


@pytest.mark.postgresql
def test_two_who_store_the_first_settings_of_the_log_both_do(tenant: Tenant) -> None:
    """REL-1548: the second one waits, and is no fault of the server."""

    def store(days: int) -> AuditPolicy:
        change = PolicyChange(
            keep_days=days,
            keep_entries=None,
            keep_bodies_days=None,
            body_bytes=1000,
            masked_paths=[],
            detectors=[],
        )
        owner = tenant.actor("owner")
        return change_policy(workspace_id=tenant.workspace.pk, change=change, actor=owner)

    assert beside(lambda: store(90), lambda: store(120)) is None
    [row] = AuditPolicy.objects.for_workspace(tenant.workspace)
    assert row.keep_days == 120
