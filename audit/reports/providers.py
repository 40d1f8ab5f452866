"""What reports show and only apps above the log know: they register how to ask them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

from django.utils.safestring import SafeString
from django.utils.translation import gettext

if TYPE_CHECKING:
    from audit.models import AuditEntry
    from workspaces.actors import Actor
    from workspaces.models import User


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A time in which a server did not answer."""

    since: datetime
    until: datetime | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UptimeStrip:
    """How a server was in each piece of a range: the share of checks it answered, None without any."""

    server: str
    pieces: Sequence[float | None]
    incidents: Sequence[Incident] = field(default_factory=tuple)

    @property
    def uptime(self) -> float | None:
        """The share of all pieces with checks."""
        known = [piece for piece in self.pieces if piece is not None]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a model was used for."""

    model: str
    turns: int
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much of a server's daily quota is used today."""

    server: str
    used: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingLimit:
    """How much of a monthly spending limit is used, in words."""

    name: str
    """Whose it is."""
    text: str
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spender:
    """What one person's questions cost in this month."""

    person: str
    tokens: int
    cost: Decimal | None
    """None: no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What models cost a workspace in this month."""

    begins_anew: SafeString
    """When, in words."""
    tokens: int
    cost: Decimal | None
    """None: no price is known."""
    unpriced_tokens: int
    """Tokens that the cost leaves out, since their price is not known."""
    limits: Sequence[SpendingLimit]
    most: Sequence[Spender]
    """The people who use most."""
    url: str
    """The page of the limits."""

    @property
    def percent(self) -> int:
        """Of the limit that is nearest to its end."""
        return max((limit.percent for limit in self.limits), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTool:
    """A tool that may be used."""

    server: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCall:
    """A call that waits for somebody's approval."""

    call_id: UUID
    server: str
    tool: str
    person: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work that is done behind people's backs, and how it goes."""

    name: str
    waiting: int
    oldest: datetime | None = None
    """Since when the oldest piece has been due."""
    failed: int = 0
    """Given up within the last day, or faulty now."""
    note: str = ""


Uptime = Callable[[UUID, datetime, datetime, int], Sequence[UptimeStrip]]
"""Workspace, since, until, number of pieces → a strip for each server."""
Models = Callable[[UUID, datetime, datetime], Sequence[Usage]]
Quotas = Callable[[UUID], Sequence[Quota]]
Tools = Callable[[UUID], Sequence[KnownTool]]
Approvals = Callable[[UUID, int], Sequence[WaitingCall]]
"""Workspace, at most how many → the calls that wait, the oldest first."""
Jobs = Callable[[UUID], Sequence[Job]]
Spendings = Callable[[UUID], Spending]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAction:
    """A button on a call's page. It sends a form without fields."""

    label: str
    help: str
    url: str


CallActions = Callable[["AuditEntry", "User", "Actor"], Sequence[CallAction]]


def _nothing(*_asked: object) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSource:
    """How to ask an app for what it knows."""

    uptime: Uptime = _nothing
    models: Models = _nothing
    quotas: Quotas = _nothing
    call_actions: CallActions = _nothing
    tools: Tools = _nothing
    approvals: Approvals = _nothing
    jobs: Jobs = _nothing
    spending: Spendings | None = None


_sources: list[ReportSource] = []
_rules: dict[str, str] = {}


def register_source(source: ReportSource) -> None:
    """Have an app asked. Called once at start."""
    _sources.append(source)


def call_actions_of(entry: AuditEntry, user: User, actor: Actor) -> Sequence[CallAction]:
    """Give what this person can do with a call, as buttons of its page."""
    return [one for source in _sources for one in source.call_actions(entry, user, actor)]


def register_rules(sentences: Mapping[str, str]) -> None:
    """Tell what the ids of rules mean. `kind.*` stands for all that begin so and are not told apart."""
    _rules.update(sentences)


def rule_in_words(rule: str) -> str:
    """What a rule of an entry says; "" for one that nobody told."""
    words = _rules.get(rule) or _rules.get(f"{rule.partition('.')[0]}.*")
    return gettext(words) if words else ""


def strips_of(
    workspace_id: UUID, since: datetime, until: datetime, pieces: int
) -> Sequence[UptimeStrip]:
    """Give each server's strip."""
    return [
        strip for source in _sources for strip in source.uptime(workspace_id, since, until, pieces)
    ]


def usage_of(workspace_id: UUID, since: datetime, until: datetime) -> Sequence[Usage]:
    """Give the use of each model."""
    return [usage for source in _sources for usage in source.models(workspace_id, since, until)]


def quotas_of(workspace_id: UUID) -> Sequence[Quota]:
    """Give the quotas that are set."""
    return [quota for source in _sources for quota in source.quotas(workspace_id)]


def spending_of(workspace_id: UUID) -> Spending | None:
    """Give what models cost in this month; None: nobody knows."""
    asked = (one.spending for one in _sources if one.spending)
    return next((ask(workspace_id) for ask in asked), None)


def tools_of(workspace_id: UUID) -> Sequence[KnownTool]:
    """Give the tools that may be used."""
    return [tool for source in _sources for tool in source.tools(workspace_id)]


def approvals_of(workspace_id: UUID, most: int) -> Sequence[WaitingCall]:
    """Give the calls that wait for approval, the oldest first."""
    found = [one for source in _sources for one in source.approvals(workspace_id, most)]
    return sorted(found, key=lambda one: one.since)[:most]


def jobs_of(workspace_id: UUID) -> Sequence[Job]:
    """Give the work in the background."""
    return [job for source in _sources for job in source.jobs(workspace_id)]
