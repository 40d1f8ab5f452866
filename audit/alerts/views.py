"""The page of a workspace's alert rules, and the bell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from allauth.account.decorators import login_required
from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from audit import reports
from audit.alerts import delivery, notices, services
from audit.alerts.filtering import filter_of, log_path_of
from audit.alerts.forms import RuleForm
from audit.alerts.words import amount_of, condition_of
from audit.models import Alert, AlertRule
from audit.views.filtering import known_filters
from audit.views.header import header_of
from workspaces.errors import InvalidInput, NotFound
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.pages.parts import id_of, put_faults, workspace_of
from workspaces.pages.seen_values import hold, saves_one_at_a_time
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace


@require_safe
@login_required
def alerts(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The rules, what is open, and what was."""
    return render(request, "audit/alerts/list.html", _page(request))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def add(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Make a rule. Whoever opens the address itself gets to the page with the form."""
    workspace = workspace_of(request, Permission.VIEW_AUDIT)
    if request.method != "POST":
        return redirect(_url(workspace))
    require(request.actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk)
    form = RuleForm(request.POST)
    if "preview" in request.POST:
        preview = _previewed(request, form)
        page = _page(request, form=form) | {"preview": preview}
        return render(request, "audit/alerts/list.html", page, status=200 if preview else 422)
    if form.is_valid():
        try:
            rule, secret = services.create_rule(
                workspace_id=workspace.pk, actor=request.actor, draft=form.draft()
            )
        except InvalidInput as error:
            put_faults(form, error)
        else:
            message = _("“%(name)s” is watched.") % {"name": rule.name}
            return _saved(request, rule, secret, message)
    return render(request, "audit/alerts/list.html", _page(request, form=form), status=422)


@require_POST
@login_required
def recommended(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Add the recommended rules."""
    workspace = workspace_of(request, Permission.VIEW_AUDIT)
    count = services.add_recommended(workspace_id=workspace.pk, actor=request.actor)
    text = _("All kinds are watched already.")
    if count:
        text = ngettext("%(count)s rule added.", "%(count)s rules added.", count) % {"count": count}
    messages.success(request, text)
    return redirect(_url(workspace))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@saves_one_at_a_time
def edit(request: WorkspaceRequest, workspace_slug: str, rule_id: UUID) -> HttpResponse:
    """One rule's settings."""
    workspace = workspace_of(request, Permission.VIEW_AUDIT)
    require(request.actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk)
    rule = AlertRule.objects.for_workspace(workspace).fetch(rule_id)
    hold(request, rule)
    form = RuleForm(request.POST or None, rule=rule)
    preview = None
    if "preview" in request.POST:
        preview = _previewed(request, form)
    elif request.method == "POST" and form.is_valid():
        try:
            secret = services.update_rule(rule=rule, actor=request.actor, draft=form.draft())
        except InvalidInput as error:
            put_faults(form, error)
        else:
            return _saved(request, rule, secret, _("Saved."))
    context = {
        "section": "audit",
        "alerts_url": _url(workspace),
        "rule": rule,
        "form": form,
        "preview": preview,
        "known": _known(workspace),
    }
    status = 422 if request.method == "POST" and preview is None else 200
    return render(request, "audit/alerts/edit.html", context, status=status)


@require_POST
@login_required
def change(
    request: WorkspaceRequest, workspace_slug: str, rule_id: UUID, verb: str
) -> HttpResponse:
    """What a button says."""
    workspace = workspace_of(request, Permission.VIEW_AUDIT)
    rule = AlertRule.objects.for_workspace(workspace).fetch(rule_id)
    if verb in {"on", "off"}:
        services.switch_rule(rule=rule, actor=request.actor, is_active=verb == "on")
    elif verb == "delete":
        services.delete_rule(rule=rule, actor=request.actor)
        messages.success(request, _("“%(name)s” is deleted.") % {"name": rule.name})
    else:
        raise NotFound
    return redirect(_url(workspace))


@require_safe
@login_required
def bell(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The person's own notices in this workspace: the menu's content, or JSON for the chat's page."""
    workspace = workspace_of(request)
    rows = list(notices.notices_of(workspace, request.user)[: notices.MOST_SHOWN])
    count = notices.unread(workspace, request.user)
    if request.GET.get("format") == "json":
        shown = [
            {
                "id": str(row.pk),
                "kind": row.kind,
                "title": row.title,
                "text": row.text,
                "url": row.url,
                "at": row.created_at.isoformat(),
                "is_read": row.read_at is not None,
            }
            for row in rows
        ]
        return JsonResponse({"unread": count, "notices": shown})
    template = (
        "audit/alerts/_bell_count.html" if "count" in request.GET else "audit/alerts/_bell.html"
    )
    return render(request, template, {"notices": rows, "unread": count})


@require_safe
@login_required
def all_notices(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The person's own notices, page by page: the bell shows the newest ones."""
    workspace = workspace_of(request)
    rows = notices.notices_of(workspace, request.user)
    page = page_in_address(rows, request.GET, by="-created_at")
    context = {
        "notices": page.rows,
        "kept_days": notices.KEEP_DAYS,
        "ways": ways_from(page, request.GET),
        "address_faults": page_faults(page),
    }
    return render(request, "audit/alerts/notices.html", context)


@require_POST
@login_required
def read(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """All of the person's notices here are read now, or the one that they opened."""
    workspace = workspace_of(request)
    only = request.POST.get("notice")
    notices.mark_read(workspace, request.user, only=id_of(only) if only else None)
    count = notices.unread(workspace, request.user)
    if request.GET.get("format") == "json":
        return JsonResponse({"unread": count})
    rows = notices.notices_of(workspace, request.user)[: notices.MOST_SHOWN]
    return render(
        request, "audit/alerts/_bell.html", {"notices": rows, "unread": count, "is_marked": True}
    )


def _saved(request: WorkspaceRequest, rule: AlertRule, secret: str, message: str) -> HttpResponse:
    """Show the webhook's new secret once, if there is one; otherwise say that it is done."""
    _warn(request, rule)
    if secret:
        return render(request, "audit/alerts/list.html", _page(request, secret=secret))
    messages.success(request, message)
    return redirect(_url(workspace_of(request, Permission.VIEW_AUDIT)))


def _warn(request: WorkspaceRequest, rule: AlertRule) -> None:
    """Say what may be meant otherwise: a rule that tells nobody, or a server or tool that is not there, or not yet."""
    if not (rule.tells_bell or rule.emails or rule.webhook_url):
        messages.warning(request, _("The rule tells nobody. Its alerts stand on this page alone."))
    known = reports.choices_of(rule.workspace_id, None)
    wanted = filter_of(rule, now=timezone.now())
    for name, choices, pattern in (
        (wanted.server, known.servers, _("The log names no server “%(name)s” so far.")),
        (wanted.tool, known.tools, _("The log names no tool “%(name)s” so far.")),
    ):
        is_cut = len(choices) >= reports.MAX_CHOICES
        if name and not is_cut and name not in {value for value, _label in choices}:
            text = pattern % {"name": name}
            messages.warning(request, text + " " + _("The rule finds nothing until it does."))


def _previewed(request: WorkspaceRequest, form: RuleForm) -> dict[str, Any] | None:
    """Give what the rule in the form counts now, in words; None if the form has faults, which it then shows."""
    workspace = workspace_of(request, Permission.VIEW_AUDIT)
    if not form.is_valid():
        return None
    draft = form.draft()
    try:
        found = services.preview_rule(workspace=workspace, actor=request.actor, draft=draft)
    except InvalidInput as error:
        put_faults(form, error)
        return None
    rule = AlertRule(condition=draft.condition)
    return {
        "amount": amount_of(rule, found.value),
        "threshold": amount_of(rule, draft.threshold),
        "is_over": found.is_over,
        "log_url": found.log_path,
    }


def _known(workspace: Workspace) -> dict[str, Any]:
    """Give what the filter's field completes. A rule has a time of its own, and no order."""
    return known_filters(workspace.pk, without=frozenset({"since", "until", "sort"}))


def _url(workspace: Workspace) -> str:
    return reverse("audit:alerts", args=[workspace.slug])


def _page(
    request: WorkspaceRequest, *, form: RuleForm | None = None, secret: str = ""
) -> dict[str, Any]:
    workspace = workspace_of(request, Permission.VIEW_AUDIT)
    rules = AlertRule.objects.for_workspace(workspace).select_related("workspace")
    found = Alert.objects.for_workspace(workspace).select_related("rule__workspace")
    open_ones = {alert.rule_id: alert for alert in found.filter(ended_at=None)}
    failing = delivery.failing(workspace)
    past = page_in_address(found.exclude(ended_at=None), request.GET, by="-started_at")
    can_manage = has_permission(
        request.actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk
    )
    return {
        **header_of(request),
        "tab": "alerts",
        "section": "audit",
        "alerts_url": _url(workspace),
        "can_manage": can_manage,
        "known": _known(workspace) if can_manage else {},
        "rules": [
            {
                "rule": rule,
                "words": condition_of(rule),
                "alert": open_ones.get(rule.pk),
                "log_url": log_path_of(open_ones[rule.pk], rule) if rule.pk in open_ones else "",
                "failing": [one for one in failing if one.rule_id == rule.pk],
            }
            for rule in rules
        ],
        "past": [(alert, log_path_of(alert, alert.rule)) for alert in past.rows],
        "ways": ways_from(past, request.GET, path=_url(workspace), anchor="#past-heading"),
        "address_faults": page_faults(past),
        "form": form or RuleForm(),
        "is_form_open": form is not None,
        "new_secret": secret,
    }
