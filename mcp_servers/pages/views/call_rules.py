"""The pages of call rules: the list with a box to try them out, and one rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from mcp_servers.models import CallRule, McpServer, McpTool
from mcp_servers.pages.forms.call_rules import CallRuleForm, EffectChoice, TryRulesForm
from mcp_servers.pages.views.common import servers_url, switch
from mcp_servers.registry.consent.rule_words import (
    effect_tone,
    effect_words,
    reason_in_words,
    words_of,
)
from mcp_servers.registry.services.call_rules import (
    change_call_rule,
    create_call_rule,
    delete_call_rule,
    switch_call_rule,
)
from mcp_servers.registry.services.trying_rules import rules_without_tools, try_call_rules
from workspaces.errors import InvalidInput
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.models import Membership
from workspaces.pages.parts import put_faults, workspace_of
from workspaces.pages.seen_values import hold, saves_one_at_a_time
from workspaces.people.access_requests import DECIDERS
from workspaces.roles import Permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace

_ON_PAGE: Final = 50
_MOST_NAMES: Final = 500
_MOST_SERVERS: Final = 3
_PROPOSED: Final = ("name", "what", "servers", "tools", "reason", "path", "operator", "value")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def call_rules(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """List the rules page by page; with POST, try out which of them decides about a call."""
    workspace = workspace_of(request, Permission.MANAGE_SERVERS)
    rows = CallRule.objects.for_workspace(workspace.pk)
    page = page_in_address(rows, request.GET, by="name", most=_ON_PAGE)
    form = TryRulesForm(request.POST if request.method == "POST" else None)
    tried = None
    if request.method == "POST" and form.is_valid():
        tried = try_call_rules(workspace_id=workspace.pk, actor=request.actor, **form.cleaned_data)
    is_tried = request.method == "POST" and form.is_valid()
    idle = rules_without_tools(workspace_id=workspace.pk, rules=page.rows)
    context: dict[str, Any] = {
        "section": "servers",
        "servers_url": servers_url(request),
        "rules": [
            (row, effect_words(row), effect_tone(row), words_of(row), row.pk in idle)
            for row in page.rows
        ],
        "ways": ways_from(page, request.GET),
        "address_faults": page_faults(page),
        "examples": _examples(),
        "form": form,
        "is_tried": is_tried,
        "tried": tried,
        "reason": reason_in_words(tried) if is_tried else "",
        **_known_names(workspace),
    }
    status = 422 if form.is_bound and form.errors else 200
    return render(request, "mcp_servers/call_rules.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@saves_one_at_a_time
def call_rule(
    request: WorkspaceRequest, workspace_slug: str, rule_id: UUID | None = None
) -> HttpResponse:
    """One rule, or a new one; the address may propose what a new one says."""
    workspace = workspace_of(request, Permission.MANAGE_SERVERS)
    rule = CallRule(workspace_id=workspace.pk)
    if rule_id is not None:
        rule = CallRule.objects.for_workspace(workspace.pk).fetch(rule_id)
        hold(request, rule)
    given = {name: request.GET.get(name, "").replace("\x00", "")[:500] for name in _PROPOSED}
    form = CallRuleForm(request.POST if request.method == "POST" else None, rule=rule, given=given)
    if request.method == "POST" and form.is_valid():
        try:
            if rule_id is None:
                rule = create_call_rule(
                    workspace=workspace, draft=form.draft(), actor=request.actor
                )
            else:
                rule = change_call_rule(rule=rule, draft=form.draft(), actor=request.actor)
        except InvalidInput as error:
            put_faults(form, error)
        else:
            _tell_saved(request, rule)
            return redirect("mcp_servers:call_rules", workspace_slug=workspace_slug)
    deciders = Membership.objects.for_workspace(workspace.pk).filter(DECIDERS)
    context: dict[str, Any] = {
        "section": "servers",
        "rule": rule if rule_id is not None else None,
        "form": form,
        "lacks_second_person": deciders.count() < 2,
        **_known_names(workspace),
    }
    is_faulty = form.is_bound and (form.errors or any(row.errors for row in form.rows))
    return render(request, "mcp_servers/call_rule.html", context, status=422 if is_faulty else 200)


def _tell_saved(request: WorkspaceRequest, rule: CallRule) -> None:
    if rules_without_tools(workspace_id=rule.workspace_id, rules=[rule]):
        message = _(
            "Saved, but no tool here has these names, so the rule decides about no call yet. Check the names of"
            " servers and tools."
        )
        messages.warning(request, message)
    else:
        messages.success(request, _("Saved. The rule holds from the next call on."))


@require_POST
@login_required
def switch_rule(request: WorkspaceRequest, workspace_slug: str, rule_id: UUID) -> HttpResponse:
    """Switch a rule on or off."""
    rule = CallRule.objects.for_workspace(
        workspace_of(request, Permission.MANAGE_SERVERS).pk
    ).fetch(rule_id)
    switch_call_rule(rule=rule, is_enabled=switch(request, "is_on"), actor=request.actor)
    return redirect("mcp_servers:call_rules", workspace_slug=workspace_slug)


@require_POST
@login_required
def delete_rule(request: WorkspaceRequest, workspace_slug: str, rule_id: UUID) -> HttpResponse:
    """Delete a rule."""
    rule = CallRule.objects.for_workspace(
        workspace_of(request, Permission.MANAGE_SERVERS).pk
    ).fetch(rule_id)
    delete_call_rule(rule=rule, actor=request.actor)
    messages.success(request, _("“%(name)s” is deleted.") % {"name": rule.name})
    return redirect("mcp_servers:call_rules", workspace_slug=workspace_slug)


def _known_names(workspace: Workspace) -> dict[str, Any]:
    """Names of servers and tools that fields complete; of each tool's name, who has it."""
    servers = McpServer.objects.for_workspace(workspace.pk).filter(owner=None)
    tools = McpTool.objects.for_workspace(workspace.pk).offered().filter(server__owner=None)
    pairs = tools.order_by("name", "server__name").values_list("name", "server__name")
    named: dict[str, list[str]] = {}
    for name, server in pairs[:_MOST_NAMES]:
        named.setdefault(name, []).append(server)
    return {
        "server_names": servers.order_by("name").values_list("name", flat=True)[:200],
        "tool_names": [(name, ", ".join(of[:_MOST_SERVERS])) for name, of in named.items()],
    }


def _examples() -> list[tuple[str, str]]:
    """Two rules that one click proposes: a sentence, and the address that fills the form in."""
    mails = {
        "name": _("Mails to the outside"),
        "what": EffectChoice.SECOND.value,
        "tools": "send_*",
        "path": "to",
        "operator": "not_matches",
        "value": "*@example.org",
        "reason": _("Somebody else reads what leaves the company."),
    }
    deletes = {
        "name": _("No deletes"),
        "what": EffectChoice.DENY.value,
        "tools": "delete_*\ndrop_*",
        "reason": _("Delete it in the program itself."),
    }
    return [
        (
            _("Ask a second person before a mail goes to anybody outside the company"),
            urlencode(mails),
        ),
        (_("Block every tool that deletes something"), urlencode(deletes)),
    ]
