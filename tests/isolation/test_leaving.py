"""Whoever leaves a workspace leaves nothing behind that works, and finds nothing that works when they come back."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.apps import apps
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.test import TestCase

from chat.models.turns import ACTIVE
from mcp_servers.models import McpServer
from tests.isolation.state import tenant_models
from tests.isolation.world import Side, World
from workspaces.actors import Actor, Source
from workspaces.changes import record_created
from workspaces.models import Membership, User
from workspaces.people.services import remove_member

pytestmark = pytest.mark.django_db

LIVE: dict[str, Q] = {
    "workspaces.ApiToken": Q(),
    "workspaces.IdempotentRequest": Q(),
    "workspaces.Invitation": Q(accepted_at=None, revoked_at=None),
    "workspaces.JoinLink": Q(revoked_at=None),
    "workspaces.WorkspaceSession": Q(),
    "workspaces.AccessRequest": Q(status="open"),
    "workspaces.SavedListView": Q(),
    "audit.Notice": Q(),
    "audit.ReportSchedule": Q(is_active=True),
    "mcp_servers.McpServer": Q(),
    "mcp_servers.Approval": Q(consumed_at=None, expires_at__gt=Now()),
    "mcp_servers.ToolPermission": Q(),
    "mcp_servers.InputRequest": Q(status="pending"),
    "klavis.KlavisInstance": Q(),
    "mcp_servers.OAuthGrant": Q(user__isnull=False),
    "mcp_servers.OAuthAttempt": Q(),
    "mcp_servers.ToolSighting": Q(),
    "mcp_servers.ClientSignIn": Q(),
    "chat.QueuedMessage": Q(),
    "chat.SharedChat": Q(),
    "chat.SharedChatReader": Q(),
    "chat.ReminderChoice": Q(),
    "chat.ReminderMail": Q(status="waiting"),
    "chat.PushDevice": Q(),
    "chat.ChatImport": Q(status__in=["queued", "running"]),
    "chat.MemberSpendingLimit": Q(),
    "chat.DataCopy": Q(status__in=["queued", "running", "ready"]),
    "chat.CheckRun": Q(status="running"),
    "chat.CheckPlan": Q(next_at__isnull=False),
    "chat.Turn": Q(status__in=ACTIVE),
    "chat.ToolCall": Q(
        status__in=["queued", "running", "waiting_for_approval", "waiting_for_input"]
    ),
}
"""Models whose rows let a person do something, or do something for them, while they fit the condition."""
KEPT = {
    "workspaces.Membership": "it is what ends",
    "audit.AuditEntry": "what happened",
    "audit.SignOff": "what happened",
    "audit.PendingErasure": "what was asked for, and is still done",
    "audit.SavedView": "filters, which show what the reader may see",
    "mcp_servers.TraceMessage": "what happened",
    "chat.Bud": "what the person made",
    "chat.Conversation": "what the person made",
    "chat.Folder": "what the person made",
    "chat.Draft": "what the person wrote",
    "chat.Pin": "what the person chose",
    "chat.ArtifactVersion": "what the person made",
    "chat.Attachment": "what the person sent along",
    "chat.MonthlySpending": "what was spent: coming back is no new month",
}
_PERSON = re.compile(r"(user|owner|person|actor|requester|approver|made_by|asked_by|signed_by)_id")


def people_fields(model: type[models.Model]) -> list[str]:
    """The columns that name a person, as a relation or as a plain id."""
    return [
        field.attname
        for field in model._meta.concrete_fields
        if field.related_model is User
        or (isinstance(field, models.UUIDField) and _PERSON.fullmatch(field.attname))
    ]


def live_rows(label: str, side: Side) -> Any:
    """What still works for the member."""
    model = apps.get_model(label)
    named = Q()
    for name in people_fields(model):
        named |= Q(**{name: side.tenant.member.pk})
    if label == "chat.ToolCall":
        named = Q(turn__asked_by=side.tenant.member)
    rows = model.objects.for_workspace(side.tenant.workspace)
    return rows.filter(named, LIVE[label])


def bring_to_life(side: Side) -> None:
    """Have a row of each kind that works for the member."""
    tenant = side.tenant
    changes: dict[str, dict[str, Any]] = {
        "workspaces.Invitation": {
            "invited_by": tenant.member,
            "accepted_at": None,
            "revoked_at": None,
        },
        "chat.ChatImport": {"status": "running"},
        "workspaces.JoinLink": {"made_by": tenant.member},
        "audit.ReportSchedule": {
            "made_by": tenant.member,
            "recipients": [str(tenant.member.pk), str(tenant.owner.pk)],
            "is_active": True,
        },
        "audit.AlertRule": {"emails": [tenant.member.email.upper(), "team@example.org"]},
        "mcp_servers.OAuthClient": {
            "metadata": {
                "issuer": "https://a.example.org",
                "token_endpoint": "https://a.example.org",
            }
        },
        "mcp_servers.Approval": {"consumed_at": None},
        "mcp_servers.InputRequest": {"status": "pending"},
        "chat.CheckRun": {"status": "running"},
        "chat.Turn": {"status": "waiting_for_approval", "lease_until": None},
        "chat.ToolCall": {"status": "waiting_for_approval"},
    }
    McpServer.objects.create(
        workspace=tenant.workspace,
        name="own server",
        transport="streamable_http",
        url="https://own.example.org/mcp",
        scope="personal",
        owner=tenant.member,
        is_active=False,
    )
    for label, values in changes.items():
        rows = apps.get_model(label).objects.for_workspace(tenant.workspace)
        rows.update(**values)


def leave(side: Side) -> None:
    tenant = side.tenant
    membership = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    with TestCase.captureOnCommitCallbacks(execute=True):
        remove_member(membership=membership, actor=tenant.actor("owner"))


def come_back(side: Side) -> None:
    tenant = side.tenant
    actor = Actor.system(label="test", source=Source.TASK, workspace_id=tenant.workspace.pk)
    with TestCase.captureOnCommitCallbacks(execute=True):
        membership = Membership.objects.create(
            workspace=tenant.workspace, user=tenant.member, role="member"
        )
        record_created(membership, actor=actor)


def test_every_model_that_names_a_person_is_known() -> None:
    """SEC-273: a new one has to say what becomes of its rows."""
    named = {model._meta.label for model in tenant_models() if people_fields(model)}
    assert named == {*LIVE, *KEPT}


def test_nothing_that_worked_for_a_person_outlives_their_membership(world: World) -> None:
    """SEC-273: tokens, approvals, questions, grants, permissions, queued messages, turns, schedules, invitations."""
    side, other = world.a, world.b
    bring_to_life(side)
    bring_to_life(other)
    for label in LIVE:
        assert live_rows(label, side).exists(), f"the world has no {label} of its member"
    leave(side)
    assert {label: live_rows(label, side).count() for label in LIVE} == dict.fromkeys(LIVE, 0)
    come_back(side)
    assert {label: live_rows(label, side).count() for label in LIVE} == dict.fromkeys(LIVE, 0)
    for label in LIVE:
        assert live_rows(label, other).exists(), f"{label} of another workspace is gone"
    workspace, member = side.tenant.workspace, side.tenant.member
    for schedule in apps.get_model("audit.ReportSchedule").objects.for_workspace(workspace):
        assert str(member.pk) not in schedule.recipients
    for rule in apps.get_model("audit.AlertRule").objects.for_workspace(workspace):
        assert rule.emails == ["team@example.org"]


@pytest.mark.parametrize("how", ["cascade", "by hand"])
def test_what_was_left_behind_in_another_way_does_not_come_back(world: World, how: str) -> None:
    """SEC-273: a membership that ended past the service is as over as any other."""
    side = world.a
    bring_to_life(side)
    rows = Membership.objects.for_workspace(side.tenant.workspace)
    mine = rows.filter(user=side.tenant.member)
    if how == "cascade":
        mine.delete()
    else:
        mine._raw_delete(mine.db)
    come_back(side)
    left = {label: live_rows(label, side).count() for label in LIVE}
    # An invitation that they sent is looked at when they leave.
    assert left == {
        **dict.fromkeys(LIVE, 0),
        "workspaces.Invitation": left["workspaces.Invitation"],
    }
