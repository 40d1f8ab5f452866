"""How the log itself is: for its page, the metrics and the alerts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count

from audit.models import AuditEntry, AuditHead, PendingSeal
from audit.sealing.rotation import missing_key_after, newest_checkpoint
from audit.sealing.sealer import sealed_since_start
from audit.storable import mapping_of
from audit.verification.online import last_verification, seen_until
from workspaces.database import database_now


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFinding:
    """What the last verification found somewhere."""

    text: str
    chain: UUID | None
    """Of a workspace, or the platform's; None: of the whole."""
    seq: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHealth:
    """Values of one moment; those of sealing are this process' own."""

    pending: int
    oldest_pending_seconds: float
    """0 if nothing waits."""
    checkpoint_number: int
    checkpoint_age_seconds: float | None
    """None: there is no checkpoint yet."""
    verified_at: datetime | None
    verified_from: datetime | None
    """When that verification began: it may have missed what came later."""
    verified_result: str | None
    """whole, altered, incomplete or unreadable; None: never verified."""
    entries_by_chain: dict[UUID, int]
    sealed_since_start: int
    sealed_per_second: float
    is_key_missing: bool
    findings: Sequence[LogFinding]
    """What the last verification of the whole log found; the first ones of many."""
    has_only_gaps: bool
    """All of it are times in which nothing was signed."""

    def findings_of(self, chain_id: UUID) -> Sequence[LogFinding]:
        """Give those of this chain that somebody can do something about: no times in which nothing was signed."""
        return [] if self.has_only_gaps else [one for one in self.findings if one.chain == chain_id]


def _finding(finding: dict[str, Any]) -> LogFinding:
    chain, seq = finding.get("chain"), finding.get("seq")
    try:
        chain_id = UUID(str(chain))
    except ValueError:
        chain_id = None
    is_place = isinstance(seq, int) and 0 < seq < 2**63
    return LogFinding(
        text=str(finding.get("text", "")), chain=chain_id, seq=seq if is_place else None
    )


def health() -> LogHealth:
    """Look once."""
    now = database_now()
    newest = newest_checkpoint()
    verified = last_verification()
    details = mapping_of(verified.details if verified else None)
    listed = details.get("findings")
    sealed, seconds = sealed_since_start()
    oldest = PendingSeal.objects.order_by("id").first()
    waiting = AuditEntry.objects.across_workspaces().find(oldest.entry_id) if oldest else None
    age = (now - waiting.created_at).total_seconds() if waiting else 0.0
    return LogHealth(
        pending=PendingSeal.objects.aggregate(count=Count("id"))["count"],
        oldest_pending_seconds=max(0.0, age),
        checkpoint_number=newest.number if newest else 0,
        checkpoint_age_seconds=(now - newest.made_at).total_seconds() if newest else None,
        verified_at=verified.created_at if verified else None,
        verified_from=seen_until(verified) if verified else None,
        verified_result=str(details.get("result")) if verified else None,
        entries_by_chain=dict(AuditHead.objects.values_list("chain_id", "seq")),
        sealed_since_start=sealed,
        sealed_per_second=sealed / seconds if seconds else 0.0,
        is_key_missing=missing_key_after(newest) is not None,
        findings=[
            _finding(mapping_of(one)) for one in (listed if isinstance(listed, list) else [])
        ],
        has_only_gaps=details.get("only_gaps") is True,
    )
