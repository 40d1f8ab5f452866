"""The log of a workspace, verified."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from audit.models import AuditSeal
from audit.proof.trellis_verify import VerificationReport
from audit.verification.online import verify
from tests.factories import Tenant
from workspaces.actors import Actor, Source

SYSTEM = Actor.system(label="test", source=Source.COMMAND, workspace_id=None)


def check(**options: Any) -> VerificationReport:
    """Without the entry that a verification makes, so that one log can be looked at several times."""
    with transaction.atomic():
        report = verify(actor=SYSTEM, **options)
        transaction.set_rollback(True)
    return report


def at(tenant: Tenant, seq: int) -> AuditSeal:
    return AuditSeal.objects.get(chain_id=tenant.workspace.pk, seq=seq)
