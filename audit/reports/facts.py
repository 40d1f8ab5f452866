"""What a report lists beside its numbers: slow calls, accepted definitions, who has access, the state of the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import Case, Max, Q, When
from django.utils import timezone

from audit import rollups
from audit.actions import Action
from audit.health import LogHealth, health
from audit.models import AuditEntry, AuditHead, AuditRollup, Dimension, Grain, PendingSeal
from audit.reports.providers import KnownTool, tools_of
from audit.rollups.reading import TimeRange
from workspaces.actors import Role
from workspaces.models import ApiToken, Membership
from workspaces.people.browser_sessions import last_entered_of

if TYPE_CHECKING:
    from workspaces.scoping import WorkspaceQuerySet

SLOWEST = 10
MOST_CHANGES = 100
MOST_PEOPLE = 200
"""In the review of access; those with most rights come first."""
_DEFINITION = frozenset({"approved_hash", "definition_hash", "is_quarantined"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChange:
    """A definition of a tool that somebody accepted or that changed."""

    entry: AuditEntry
    tool: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChanges:
    """The newest of them."""

    newest: Sequence[DefinitionChange]
    left_out: int
    """How many more there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonAccess:
    """What one person may do here, and when they last did."""

    email: str
    user_id: UUID
    role: str
    is_auditor: bool
    is_active: bool
    tokens: Sequence[ApiToken]
    signed_in: datetime | None
    """Day of the last sign-in that this log knows, or on which a session was new here: people also sign in elsewhere."""
    seen: datetime | None
    """Day of the last entry of theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessReview:
    """Who may enter."""

    people: Sequence[PersonAccess]
    left_out: int
    """How many more there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """How the log itself is."""

    health: LogHealth
    waiting: int
    """Entries of the workspace that wait for their place."""
    entries: int
    """Entries of the workspace that have been sealed, ever."""
    uncounted: int
    """How many of them the counters do not hold yet."""


def slowest_calls(rows: WorkspaceQuerySet[AuditEntry], span: TimeRange) -> Sequence[AuditEntry]:
    """Give the calls that took longest."""
    found = rows.filter(
        action=Action.TOOL_CALL_FINISHED.value,
        duration_ms__isnull=False,
        created_at__gte=span.since,
        created_at__lt=span.until,
    )
    return list(found.order_by("-duration_ms", "-created_at", "-id")[:SLOWEST])


def never_used(workspace_id: UUID, used: frozenset[tuple[str, str]]) -> Sequence[KnownTool]:
    """Give the tools that may be used and were not."""
    known = {tool for tool in tools_of(workspace_id) if (tool.server, tool.name) not in used}
    return sorted(known, key=lambda tool: (tool.server, tool.name))


def definition_changes(rows: WorkspaceQuerySet[AuditEntry], span: TimeRange) -> DefinitionChanges:
    """Give the newest changes of tools' definitions, at most MOST_CHANGES, and who accepted them."""
    found = rows.filter(
        action=Action.CONFIG_CHANGED.value,
        created_at__gte=span.since,
        created_at__lt=span.until,
        details__kind="tool",
        # Tools are switched on and off far more often than their definitions change.
        details__after__has_any_keys=sorted(_DEFINITION),
    )
    changes = [
        DefinitionChange(
            entry=entry,
            tool=str(entry.details.get("name", "")),
            what="accepted" if "approved_hash" in entry.details["after"] else "changed",
        )
        for entry in found.order_by("-created_at", "-id")[: MOST_CHANGES + 1]
    ]
    is_cut = len(changes) > MOST_CHANGES
    return DefinitionChanges(
        newest=changes[:MOST_CHANGES], left_out=found.count() - MOST_CHANGES if is_cut else 0
    )


def access_review(workspace_id: UUID) -> AccessReview:
    """Give who may enter, with their rights, tokens and last signs of life in the counters; at most MOST_PEOPLE."""
    rows = Membership.objects.for_workspace(workspace_id)
    strength = Case(
        When(role=Role.OWNER.value, then=0), When(role=Role.ADMIN.value, then=1), default=2
    )
    ordered = rows.select_related("user").order_by(strength, "-is_auditor", "user__email")
    members = list(ordered[:MOST_PEOPLE])
    now = timezone.now()
    tokens: dict[UUID, list[ApiToken]] = {}
    shown = [member.user_id for member in members]
    valid = ApiToken.objects.for_workspace(workspace_id).filter(expires_at__gt=now)
    for token in valid.filter(user__in=shown):
        tokens.setdefault(token.user_id, []).append(token)
    days = (
        AuditRollup.objects.for_workspace(workspace_id)
        .filter(
            dimension=Dimension.ACTOR,
            grain=Grain.DAY,
            value__in=[str(pk) for pk in shown],
        )
        .order_by()
        .values_list("value")
        .annotate(
            seen=Max("start"),
            signed_in=Max("start", filter=Q(action=Action.AUTH_SIGNED_IN.value)),
        )
    )
    last = {value: (seen, signed_in) for value, seen, signed_in in days}
    entered = last_entered_of(shown, workspace_id)
    people = [
        PersonAccess(
            email=member.user.email,
            user_id=member.user_id,
            role=member.get_role_display(),
            is_auditor=member.is_auditor,
            is_active=member.user.is_active,
            tokens=tokens.get(member.user_id, []),
            seen=seen,
            signed_in=max(filter(None, (signed_in, entered.get(member.user_id))), default=None),
        )
        for member in members
        for seen, signed_in in [last.get(str(member.user_id), (None, None))]
    ]
    return AccessReview(people=people, left_out=rows.count() - len(people))


def log_state(workspace_id: UUID) -> LogState:
    """Give the state of the log."""
    head = AuditHead.objects.filter(chain_id=workspace_id).first()
    seq = head.seq if head else 0
    waiting = AuditEntry.objects.for_workspace(workspace_id).filter(
        pk__in=PendingSeal.objects.values("entry_id")
    )
    return LogState(
        health=health(),
        waiting=waiting.count(),
        entries=seq,
        uncounted=max(0, seq - rollups.rolled_up_to(workspace_id)),
    )
