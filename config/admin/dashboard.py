"""The admin's first page: how a workspace is at this moment, and what to do first in an empty one.

Every number is a link to where it comes from, and is asked for only if the person may open that page. The page asks the
same few statements however much a workspace holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from django.db.models import Count, F, Min, Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from audit.actions import Action
from audit.models import Alert
from audit.reports.call_totals import calls_between
from audit.reports.providers import usage_of
from chat.models import Bud, ModelProvider, ToolCall
from chat.pages.gone_models import buds_address, gone_in_words
from chat.providers.choosing import platform_provider
from chat.providers.key_changes import key_refusals
from chat.reporting import spending_report
from chat.services.changed_models import UsedModel, ending_models, gone_models, used_models
from chat.values import ToolCallStatus
from mcp_servers.models import AuthType, McpServer, McpTool, ServerStatus
from workspaces.models import AccessRequest, Invitation, Membership, RequestStatus
from workspaces.roles import Permission, has_permission
from workspaces.words.formats import day, money, whole

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.models import Workspace

_WEEK: Final = timedelta(days=7)
_FULL: Final = 100
"""Per cent."""
_MOST_GONE: Final = 4
"""Tiles of models that are gone; the providers' pages have all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One number, what it means, and where it comes from."""

    label: str
    value: str
    note: str = ""
    url: str = ""
    is_bad: bool = False
    """Somebody should look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to do in a new workspace."""

    title: str
    text: str
    action: str
    url: str
    is_done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """What the page shows."""

    tiles: Sequence[Tile]
    steps: Sequence[Step]
    """Empty once all of them are done."""
    done: int
    """How many are."""


def read(workspace: Workspace, actor: Actor) -> Dashboard:
    """Look once, with the rights of whoever looks."""
    steps = _steps(workspace, actor)
    done = sum(step.is_done for step in steps)
    return Dashboard(
        # In an empty workspace every number is 0, and the list of first steps stands in their place.
        tiles=_tiles(workspace, actor) if done or not steps else (),
        steps=steps if done < len(steps) else (),
        done=done,
    )


def _may(actor: Actor, workspace: Workspace, permission: Permission) -> bool:
    return has_permission(actor, permission, workspace_id=workspace.pk)


def _tiles(workspace: Workspace, actor: Actor) -> list[Tile]:
    tiles: list[Tile] = []
    if _may(actor, workspace, Permission.MANAGE_SERVERS):
        tiles += [_servers(workspace), _tools_to_review(workspace)]
    if _may(actor, workspace, Permission.VIEW_AUDIT):
        tiles += _calls(workspace)
        tiles += [_waiting(workspace), _alerts(workspace), *_usage(workspace)]
    if _may(actor, workspace, Permission.MANAGE_BUDS):
        tiles += _changed_models(workspace)
    if _may(actor, workspace, Permission.MANAGE_MEMBERS):
        tiles += [_spending(workspace), _invitations(workspace)]
    if _may(actor, workspace, Permission.MANAGE_SERVERS):
        tiles += _requests(workspace)
    return tiles


def _servers(workspace: Workspace) -> Tile:
    is_locked = Q(state__status=ServerStatus.AUTH_REQUIRED)
    is_for_people = Q(auth_type=AuthType.OAUTH) | ~Q(hosted_by="")
    counts = (
        McpServer.objects.for_workspace(workspace)
        .filter(is_active=True)
        .order_by()
        .aggregate(
            all=Count("pk"),
            bad=Count("pk", filter=Q(state__status=ServerStatus.ERROR)),
            sign_in=Count("pk", filter=is_locked & is_for_people),
            locked=Count("pk", filter=is_locked & ~is_for_people),
        )
    )
    bad, sign_in, locked = counts["bad"], counts["sign_in"], counts["locked"]
    notes = []
    if bad:
        notes.append(ngettext("%d does not answer", "%d do not answer", bad) % bad)
    if sign_in:
        notes.append(ngettext("%d needs a sign-in", "%d need a sign-in", sign_in) % sign_in)
    if locked:
        notes.append(ngettext("%d needs credentials", "%d need credentials", locked) % locked)
    if counts["all"] and not notes:
        notes.append(_("All healthy."))
    return Tile(
        label=_("Servers"),
        value=whole(counts["all"]),
        note=", ".join(notes),
        url=reverse("mcp_servers:servers", args=[workspace.slug]),
        is_bad=bool(bad),
    )


def _tools_to_review(workspace: Workspace) -> Tile:
    number = (
        McpTool.objects.for_workspace(workspace)
        .offered()
        .exclude(approved_hash=F("definition_hash"))
        .count()
    )
    return Tile(
        label=_("Tools to review"),
        value=whole(number),
        note=_("New or changed, and not used until somebody accepts them.") if number else "",
        url=reverse("mcp_servers:servers", args=[workspace.slug]),
        is_bad=bool(number),
    )


def _calls(workspace: Workspace) -> list[Tile]:
    now = timezone.localtime()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    # The log is counted by hours of UTC.
    midnight = midnight.astimezone(UTC).replace(minute=0)
    today = calls_between(workspace.pk, midnight, now)
    before = calls_between(workspace.pk, midnight - _WEEK, now - _WEEK)
    return [
        Tile(
            label=_("Tool calls today"),
            value=whole(today.ended),
            note=_not_counted(today.missing) or _compared(today.ended, before.ended),
            url=_log(workspace, midnight, outcome="ended"),
        ),
        Tile(
            label=_("Failed today"),
            value=whole(today.failed),
            note=_not_counted(today.missing) or _compared(today.failed, before.failed),
            url=_log(workspace, midnight, outcome="failed"),
            is_bad=today.failed > before.failed,
        ),
        Tile(
            label=_("Refused today"),
            value=whole(today.refused),
            note=_not_counted(today.missing) or _compared(today.refused, before.refused),
            url=_log(workspace, midnight, action=Action.TOOL_CALL_REFUSED.value),
        ),
    ]


def _not_counted(missing: int) -> str:
    message = _("%(number)s of the newest entries are not counted yet")
    return message % {"number": whole(missing)} if missing else ""


def _compared(now: int, before: int) -> str:
    """Say what it was a week ago, and up to when: hours are counted whole."""
    comparison = _("%(number)s a week ago, up to this hour") % {"number": whole(before)}
    return comparison if now or before else ""


def _log(workspace: Workspace, since: datetime, **wanted: str) -> str:
    query = urlencode({**wanted, "range": "custom", "since": since.isoformat()})
    return f"{reverse('audit:entries', args=[workspace.slug])}?{query}"


def _waiting(workspace: Workspace) -> Tile:
    found = (
        ToolCall.objects.for_workspace(workspace)
        .filter(status=ToolCallStatus.WAITING_FOR_APPROVAL.value)
        .order_by()
        .aggregate(number=Count("pk"), oldest=Min("created_at"))
    )
    note = ""
    if found["oldest"]:
        waited = timezone.now() - found["oldest"]
        hours = int(waited.total_seconds() // 3600)
        note = (
            ngettext("the oldest for %d hour", "the oldest for %d hours", hours) % hours
            if hours
            else _("all of them for less than an hour")
        )
    return Tile(
        label=_("Calls that wait for approval"),
        value=whole(found["number"]),
        note=note,
        url=f"{reverse('audit:overview', args=[workspace.slug])}#approvals",
    )


def _alerts(workspace: Workspace) -> Tile:
    number = Alert.objects.for_workspace(workspace).filter(ended_at=None).count()
    return Tile(
        label=_("Active alerts"),
        value=whole(number),
        url=reverse("audit:alerts", args=[workspace.slug]),
        is_bad=bool(number),
    )


def _usage(workspace: Workspace) -> list[Tile]:
    now = timezone.now()
    rows = usage_of(workspace.pk, now - _WEEK, now)
    tokens = sum(row.prompt_tokens + row.completion_tokens for row in rows)
    costs = [row.cost for row in rows if row.cost is not None]
    tile = Tile(
        label=_("Tokens in seven days"),
        value=whole(tokens),
        note=_("Cost: %(cost)s, where prices are known") % {"cost": money(sum(costs))}
        if costs
        else "",
        url=reverse("audit:reports", args=[workspace.slug]),
    )
    return [tile]


def _spending(workspace: Workspace) -> Tile:
    found = spending_report(workspace.pk)
    limit = max(found.limits, key=lambda one: one.percent, default=None)
    notes = []
    if limit is not None:
        notes.append(
            _("%(percent)s%% of a limit used: %(name)s")
            % {"percent": whole(limit.percent), "name": limit.name}
        )
    elif found.tokens:
        notes.append(_("No limit"))
    if found.most and found.tokens:
        notes.append(_("most by %(person)s") % {"person": found.most[0].person})
    return Tile(
        label=_("Spent this month"),
        value=money(found.cost)
        if found.cost
        else _("%(tokens)s tokens") % {"tokens": whole(found.tokens)},
        note=", ".join(notes),
        url=found.url,
        is_bad=found.percent >= _FULL,
    )


def _changed_models(workspace: Workspace) -> list[Tile]:
    """Only while a model that buds use ends soon, has ended, or is missing in its provider's list."""
    used = used_models(workspace.pk)
    tiles = [_gone_model(one) for one in gone_models(used)[:_MOST_GONE]]
    if found := ending_models(used):
        names = ", ".join(f"{name} ({day(ends_on)})" for name, ends_on in found)
        tiles.append(
            Tile(
                label=_("Models that end"),
                value=whole(len(found)),
                note=_("Choose others for your buds and providers: %(names)s") % {"names": names},
                url=reverse("admin:chat_bud_changelist"),
                is_bad=True,
            )
        )
    return tiles


def _gone_model(one: UsedModel) -> Tile:
    return Tile(
        label=_("Buds whose model is gone"),
        value=whole(one.buds),
        note=gone_in_words(one),
        url=buds_address(one),
        is_bad=True,
    )


def _requests(workspace: Workspace) -> list[Tile]:
    """Only while somebody waits for an answer."""
    rows = AccessRequest.objects.for_workspace(workspace)
    number = rows.filter(status=RequestStatus.OPEN).count()
    url = reverse("workspaces:requests", args=[workspace.slug])
    note = _("A member waits for your answer.")
    tile = Tile(label=_("Requests"), value=whole(number), note=note, url=url, is_bad=True)
    return [tile] if number else []


def _invitations(workspace: Workspace) -> Tile:
    number = (
        Invitation.objects.for_workspace(workspace)
        .filter(accepted_at=None, revoked_at=None, expires_at__gt=timezone.now())
        .count()
    )
    return Tile(
        label=_("Open invitations"),
        value=whole(number),
        url=f"{reverse('workspaces:invite', args=[workspace.slug])}#open-heading",
    )


def _steps(workspace: Workspace, actor: Actor) -> list[Step]:
    """What makes a workspace useful, for those who may do all of it."""
    needed = (Permission.MANAGE_BUDS, Permission.MANAGE_SERVERS, Permission.MANAGE_MEMBERS)
    if not all(_may(actor, workspace, permission) for permission in needed):
        return []
    return [
        _model_step(workspace, actor),
        Step(
            title=_("Add a server"),
            text=_("Servers bring the tools that buds use: files, calendars, issues, databases."),
            action=_("Choose from the catalogue"),
            url=reverse("mcp_servers:catalogue", args=[workspace.slug]),
            is_done=McpServer.objects.for_workspace(workspace).exists(),
        ),
        Step(
            title=_("Make a bud"),
            text=_("A bud is an assistant: instructions, a model, and the tools it may use."),
            action=_("Make a bud"),
            url=reverse("chat:bud_new", args=[workspace.slug]),
            is_done=Bud.objects.for_workspace(workspace)
            .shared()
            .filter(is_archived=False)
            .exists(),
        ),
        Step(
            title=_("Invite people"),
            text=_("Each gets a link of their own and chooses a password."),
            action=_("Invite somebody"),
            url=reverse("workspaces:invite", args=[workspace.slug]),
            is_done=Membership.objects.for_workspace(workspace).order_by()[:2].count() > 1
            or Invitation.objects.for_workspace(workspace).exists(),
        ),
    ]


def _model_step(workspace: Workspace, actor: Actor) -> Step:
    """Not done while every provider that there is refuses its key: nothing answers then."""
    rows = ModelProvider.objects.for_workspace(workspace).answering()
    providers = list(rows.select_related("workspace", "shared"))
    refusals = key_refusals(providers)
    has_model = len(providers) > len(refusals) or not platform_provider().is_demo
    step = Step(
        title=_("Connect a model"),
        text=_("Until then a demo model answers, which can do little more than call tools."),
        action=_("Add a provider"),
        url=reverse("admin:chat_modelprovider_add"),
        is_done=has_model,
    )
    if has_model or not refusals:
        return step
    # Of several, the one whose key this person can change.
    refusal = min(refusals, key=lambda one: one.is_shared)
    step = replace(step, text=f"{refusal.title}. {refusal.text}")
    if refusal.is_shared and not actor.is_superuser:
        return step
    return replace(step, action=_("Enter another key"), url=refusal.url)
