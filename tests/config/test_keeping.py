"""What everybody leaves behind goes after a while, and one page says after which."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from allauth.account.models import EmailAddress, EmailConfirmation
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.utils import timezone
from pytest_django.fixtures import Settings

from audit.models import Alert, AlertRule
from audit.tasks import trim_alerts
from mcp_servers.models import Approval, InputRequest, InputStatus
from mcp_servers.registry.tasks import trim_health_checks
from tests.factories import Tenant
from workspaces.tasks import clear_sessions

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def approve(tenant: Tenant, expires_at: datetime) -> Approval:
    return Approval.objects.create(
        workspace=tenant.workspace,
        call_id=uuid4(),
        server_id=uuid4(),
        tool_id=uuid4(),
        definition_hash="0" * 64,
        arguments_hash="0" * 64,
        principal="workspace",
        approver_label="ada@example.org",
        expires_at=expires_at,
    )


def ask(tenant: Tenant, expires_at: datetime, **values: object) -> InputRequest:
    return InputRequest.objects.create(
        workspace=tenant.workspace,
        **{
            "call_id": uuid4(),
            "asked_of": tenant.member,
            "server_id": uuid4(),
            "server_name": "mail",
            "tool_name": "send",
            "kind": "form",
            "key": "k",
            "fingerprint": "0" * 64,
            "status": InputStatus.ACCEPTED,
            "expires_at": expires_at,
            **values,
        },
    )


def test_approvals_and_questions_of_long_ago_are_forgotten(tenant: Tenant) -> None:
    """REL-563: but no question that somebody may still answer, and none of a conversation that is still there."""
    now = timezone.now()
    approve(tenant, now - 31 * DAY)
    ask(tenant, now - 31 * DAY)
    kept = {
        approve(tenant, now - 29 * DAY).pk,
        ask(tenant, now - 29 * DAY).pk,
        ask(tenant, now - 31 * DAY, status=InputStatus.PENDING).pk,
        ask(tenant, now - 31 * DAY, conversation_id=uuid4()).pk,
    }
    trim_health_checks()
    left = {
        row.pk for model in (Approval, InputRequest) for row in model.objects.across_workspaces()
    }
    assert left == kept


def test_alerts_that_ended_a_year_ago_are_forgotten(tenant: Tenant) -> None:
    """REL-563: and one that goes on is kept, however old it is."""
    now = timezone.now()
    rules = [
        AlertRule.objects.create(
            workspace=tenant.workspace,
            name=f"rule {number}",
            condition="failures",
            threshold=1,
            window_minutes=5,
        )
        for number in range(3)
    ]
    ends = (now - 366 * DAY, now - 364 * DAY, None)
    alerts = [
        Alert.objects.create(
            workspace=tenant.workspace,
            rule=rule,
            started_at=now - 400 * DAY,
            ended_at=end,
            value=1,
            peak=1,
            told_at=now - 400 * DAY,
        )
        for rule, end in zip(rules, ends, strict=True)
    ]
    trim_alerts()
    left = set(Alert.objects.across_workspaces().values_list("pk", flat=True))
    assert left == {alert.pk for alert in alerts[1:]}


def test_the_admins_history_and_old_confirmations_are_forgotten(tenant: Tenant) -> None:
    """REL-563: the audit log keeps the changes."""
    now = timezone.now()
    for age in (366, 364):
        entry = LogEntry.objects.create(
            user=tenant.member,
            content_type=ContentType.objects.get_for_model(Alert),
            object_id="1",
            object_repr=str(age),
            action_flag=CHANGE,
        )
        LogEntry.objects.filter(pk=entry.pk).update(action_time=now - age * DAY)
    address = EmailAddress.objects.create(user=tenant.member, email="new@example.org")
    for days in (1, 30):
        EmailConfirmation.objects.create(
            email_address=address, key=str(days), sent=now - days * DAY
        )
    clear_sessions()
    assert list(LogEntry.objects.values_list("object_repr", flat=True)) == ["364"]
    assert list(EmailConfirmation.objects.values_list("key", flat=True)) == ["1"]


def test_one_page_says_how_long_everything_is_kept(tenant: Tenant, settings: Settings) -> None:
    """REL-563: in days, and with the name of the setting where there is one."""
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"idle_conversation_days": 90})
    page = tenant.client("owner").get(f"/w/{tenant.workspace.slug}/audit/settings/")
    values = {
        str(row.what): (str(row.how_long), row.setting) for row in page.context["everything_kept"]
    }
    assert values["Conversations, with their messages, calls and files"] == (
        "90 days after the last message; pinned ones stay",
        "TRELLIS_IDLE_CONVERSATION_DAYS",
    )
    assert values["Approvals, after they ran out"] == ("30 days", "")
    assert values["Answers to repeated API requests"] == ("24 hours", "")
    assert "TRELLIS_DELETED_CONVERSATION_DAYS" in page.content.decode()
