"""A log with something to report."""

from __future__ import annotations

from audit import rollups
from audit.actions import Outcome
from tests.audit.sealed import seal_all
from tests.audit.views.log_pages import a_call, a_refusal
from tests.factories import Tenant


def filled(tenant: Tenant) -> None:
    """Three calls, one refusal, one approval; half of it counted, half in the tail."""
    a_call(tenant)
    a_call(tenant, outcome=Outcome.TIMEOUT)
    seal_all(tenant.workspace.pk)
    rollups.roll_up(tenant.workspace.pk)
    a_call(tenant, tool="other")
    a_refusal(tenant)
