"""Months of spending, for tests: limits, what was spent, and who asks."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from audit.models import AuditEntry
from chat.models import (
    MonthlySpending,
    Turn,
)
from chat.providers.base import ProviderSpec
from chat.providers.specs import spec_of
from chat.providers.spending import (
    Payer,
)
from chat.services.spending_limits import (
    LimitsDraft,
    set_limits,
)
from mcp_servers.registry.sampling import SamplingMessage, SamplingTask
from tests.chat.conftest import Chat
from tests.factories import Tenant
from workspaces.models import User

COST = Decimal("0.000012")
"""Of one answer of the scripted model, at one dollar for a million tokens."""
TOKENS = 12


def limit(tenant: Tenant, **draft: Any) -> None:
    """As the admin sets it."""
    set_limits(workspace=tenant.workspace, draft=LimitsDraft(**draft), actor=tenant.actor("admin"))


def spent(tenant: Tenant, person: User | None = None) -> MonthlySpending:
    """The row of a person, or of the workspace."""
    rows = MonthlySpending.objects.for_workspace(tenant.workspace).filter(shared=None)
    return rows.get(person=person)


def ask(chat: Chat, text: str = "Hello there") -> Turn:
    chat.model.say(text)
    return chat.ask()


def refusals(tenant: Tenant) -> list[AuditEntry]:
    rows = AuditEntry.objects.for_workspace(tenant.workspace)
    return list(rows.filter(action="model_request.refused").order_by("pk"))


def spec_of_bud(chat: Chat) -> ProviderSpec:
    assert chat.bud.provider is not None
    return spec_of(chat.bud.provider)


def payer_of(tenant: Tenant, person: User) -> Payer:
    return Payer(
        workspace_id=tenant.workspace.pk,
        person_id=person.pk,
        actor=tenant.actor("member"),
        purpose="answer",
    )


def sampling(chat: Chat, turn_id: UUID | None = None) -> SamplingTask:
    """What a server asks a model for, in a turn's call or outside of one."""
    return SamplingTask(
        workspace_id=chat.tenant.workspace.pk,
        server_id=chat.row.pk,
        server_name="counting",
        bud=None,
        provider_id=chat.bud.provider_id,
        model="m",
        messages=(SamplingMessage(role="user", text="Hi"),),
        actor=chat.actor,
        turn_id=turn_id,
    )
