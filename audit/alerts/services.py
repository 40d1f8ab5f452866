"""What an owner does with alert rules: every change is an entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from audit.alerts import evaluation
from audit.alerts.conditions import measure
from audit.alerts.filtering import log_path, read_rule_filter
from audit.models import AlertRule
from audit.models.alerts import MOST_WINDOW_MINUTES
from workspaces.actors import Actor
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.database import database_now
from workspaces.delivery.webhooks import new_secret
from workspaces.errors import Conflict, DomainError, InvalidInput
from workspaces.holding import hold, take_room
from workspaces.models import Workspace
from workspaces.outbound import enter_endpoint, parse_endpoint
from workspaces.roles import Permission, require
from workspaces.words.mail_addresses import is_mail_address
from workspaces.words.names import without_unseen

MOST_RULES: Final = 50
MOST_ADDRESSES: Final = 10
_MOST_THRESHOLD: Final = 100_000
_PER_CENT: Final = frozenset({AlertRule.Condition.ERROR_RATE, AlertRule.Condition.SPENDING})
_WATCHED: Final = (
    *("condition", "threshold", "window_minutes", "least_calls"),
    *("server_name", "tool_name", "query"),
)
"""What says when there is an alert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRuleDraft:
    """A rule's settings."""

    name: str
    condition: str
    threshold: int
    window_minutes: int
    least_calls: int = 10
    server_name: str = ""
    tool_name: str = ""
    query: str = ""
    """In the log's filter language."""
    remind_hours: int = 24
    tells_bell: bool = True
    emails: Sequence[str] = ()
    webhook_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPreview:
    """What a rule counts at this moment."""

    value: float
    is_over: bool
    """Whether there would be an alert."""
    log_path: str
    """The page of the log with what is counted."""


_C = AlertRule.Condition
RECOMMENDED: Final = (
    AlertRuleDraft(name="The log itself", condition=_C.TAMPERING, threshold=1, window_minutes=1440),
    AlertRuleDraft(
        name="Connections fail", condition=_C.CONNECTION, threshold=5, window_minutes=15
    ),
    AlertRuleDraft(name="Calls time out", condition=_C.TIMEOUT, threshold=5, window_minutes=15),
    AlertRuleDraft(
        name="Many calls fail", condition=_C.ERROR_RATE, threshold=25, window_minutes=30
    ),
    AlertRuleDraft(
        name="Many calls are refused", condition=_C.REFUSAL, threshold=20, window_minutes=60
    ),
    AlertRuleDraft(name="A quota is used up", condition=_C.QUOTA, threshold=1, window_minutes=60),
    AlertRuleDraft(
        name="A spending limit is nearly used",
        condition=_C.SPENDING,
        threshold=80,
        window_minutes=60,
    ),
    AlertRuleDraft(name="Approvals wait", condition=_C.APPROVAL, threshold=1, window_minutes=60),
)


@transaction.atomic
def create_rule(
    *, workspace_id: UUID, actor: Actor, draft: AlertRuleDraft
) -> tuple[AlertRule, str]:
    """Watch for something from now on.

    Returns:
        The rule, and if it has a webhook the secret that signs it, which is shown this once.

    Raises:
        InvalidInput: numbers out of range, no such address.
        Conflict: there are too many already.
    """
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace_id)
    take_room(
        AlertRule.objects.for_workspace(workspace_id),
        most=MOST_RULES,
        refusal=Conflict(_("A workspace has at most %(most)s alert rules.") % {"most": MOST_RULES}),
        workspace_id=workspace_id,
    )
    rule = AlertRule(workspace_id=workspace_id)
    secret = _fill(rule, draft)
    rule.save()
    record_created(rule, actor=actor)
    return rule, secret


def update_rule(*, rule: AlertRule, actor: Actor, draft: AlertRuleDraft) -> str:
    """Change it; gives the new signing secret where the webhook's address is another now.

    Raises:
        NotFound: somebody has deleted it.
        InvalidInput: as in `create_rule`.
    """
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=rule.workspace_id)
    with transaction.atomic():
        hold(rule)
        with tracked_change(rule, actor=actor):
            secret = _fill(rule, draft)
            rule.save()
    return secret


@transaction.atomic
def switch_rule(*, rule: AlertRule, actor: Actor, is_active: bool) -> None:
    """On or off; what is open of one that is switched off ends with it, and only its program is told.

    Raises:
        NotFound: somebody has deleted it.
    """
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=rule.workspace_id)
    hold(rule)
    with tracked_change(rule, actor=actor):
        rule.is_active = is_active
        rule.save()
        if not is_active:
            evaluation.end_by_hand(rule, by="switched_off")


def preview_rule(*, workspace: Workspace, actor: Actor, draft: AlertRuleDraft) -> AlertPreview:
    """Count as such a rule would, now. Nothing is kept, and nobody is told.

    Raises:
        InvalidInput: as in `create_rule`.
    """
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk)
    faults = _faults(draft)
    if faults:
        raise InvalidInput(fields=faults)
    rule = AlertRule(workspace=workspace, **{name: getattr(draft, name) for name in _WATCHED})
    now = database_now()
    value = measure(rule, now)
    return AlertPreview(
        value=value, is_over=value >= rule.threshold, log_path=log_path(rule, since=now, until=now)
    )


@transaction.atomic
def delete_rule(*, rule: AlertRule, actor: Actor) -> None:
    """Watch for it no longer. What is open ends with it, and what it found stays in the log."""
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=rule.workspace_id)
    hold(rule)
    evaluation.end_by_hand(rule, by="deleted")
    record_deleted(rule, actor=actor)
    rule.delete()


@transaction.atomic
def add_recommended(*, workspace_id: UUID, actor: Actor) -> int:
    """Add the recommended rules whose kind is not watched yet; gives how many."""
    rows = AlertRule.objects.for_workspace(workspace_id)
    watched = set(rows.values_list("condition", flat=True))
    wanted = [draft for draft in RECOMMENDED if draft.condition not in watched]
    for draft in wanted:
        create_rule(workspace_id=workspace_id, actor=actor, draft=draft)
    return len(wanted)


def _addresses(draft: AlertRuleDraft) -> list[str]:
    return list(dict.fromkeys(without_unseen(address).strip() for address in draft.emails))


def _fill(rule: AlertRule, draft: AlertRuleDraft) -> str:
    faults = _faults(draft)
    if faults:
        raise InvalidInput(fields=faults)
    url = draft.webhook_url and str(parse_endpoint(draft.webhook_url))
    secret = new_secret() if url and url != rule.webhook_url else ""
    if secret or not url:
        rule.webhook_secret = secret or None
    rule.webhook_url = url
    rule.emails = _addresses(draft)
    for name in ("name", *_WATCHED, "remind_hours", "tells_bell"):
        setattr(rule, name, getattr(draft, name))
    return secret


def _faults(draft: AlertRuleDraft) -> dict[str, list[str]]:
    faults: dict[str, list[str]] = {}
    if draft.condition not in AlertRule.Condition.values:
        faults["condition"] = [_("There is no such condition.")]
    if not 1 <= draft.threshold <= _MOST_THRESHOLD:
        faults["threshold"] = [_("It is a number from 1 to %(most)s.") % {"most": _MOST_THRESHOLD}]
    elif draft.condition in _PER_CENT and draft.threshold > 100:
        faults["threshold"] = [_("It is a number of per cent, at most 100.")]
    if not 1 <= draft.window_minutes <= MOST_WINDOW_MINUTES:
        faults["window_minutes"] = [
            _("It is a number from 1 to %(most)s.") % {"most": MOST_WINDOW_MINUTES}
        ]
    wanted = read_rule_filter(
        draft.query,
        condition=draft.condition,
        server=draft.server_name,
        tool=draft.tool_name,
        now=database_now(),
    )
    if wanted.errors:
        faults["query"] = list(wanted.errors)
    if len(draft.emails) > MOST_ADDRESSES:
        faults["emails"] = [_("At most %(most)s addresses.") % {"most": MOST_ADDRESSES}]
    for address in _addresses(draft):
        if not is_mail_address(address):
            faults["emails"] = [_("“%(address)s” is no e-mail address.") % {"address": address}]
    if draft.webhook_url:
        try:
            enter_endpoint(draft.webhook_url)
        except DomainError as error:
            faults["webhook_url"] = [error.message]
    return faults
