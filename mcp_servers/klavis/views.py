"""Pages on the hosted MCP provider: the workspace's account, what runs there, and signing in to it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from allauth.account.decorators import login_required
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from mcp_servers.client.values import Effect
from mcp_servers.klavis import accounts, installing, instance_changes, polling, removals
from mcp_servers.klavis.asking import account_of
from mcp_servers.klavis.cards import instance_card, instance_cards
from mcp_servers.klavis.forms import ActionRuleForm, KlavisAccountForm
from mcp_servers.klavis.limits import count_hosted, count_poll
from mcp_servers.klavis.models import KlavisInstance, KlavisRemoval
from mcp_servers.models import ActionRule
from mcp_servers.pages.forms import WhereForm, add_domain_error, read_where
from mcp_servers.pages.views.common import can_manage, servers_url, switch
from mcp_servers.registry.services.actions import remove_action_rule, set_action_rule
from workspaces.errors import DomainError, InvalidInput, NotFound, PermissionDenied, RateLimited
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.pages.parts import workspace_of
from workspaces.pages.seen_values import hold
from workspaces.roles import Permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_OTHERS_AFTER = "others_after"
_REMOVALS_AFTER = "removals_after"


@require_GET
@login_required
def klavis(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The account, and every instance that the person may see."""
    return _page(request)


@require_POST
@login_required
def save(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Set the account up or change it, and try it."""
    workspace = workspace_of(request, Permission.MANAGE_SERVERS)
    typed = KlavisAccountForm(request.POST, account=account_of(workspace.pk))
    if typed.is_valid():
        try:
            count_hosted(request.actor)
            accounts.try_new_key(
                workspace_id=workspace.pk, draft=typed.draft(), actor=request.actor
            )
        except (InvalidInput, RateLimited) as error:
            add_domain_error(typed, error)
            return _page(request, form=typed)
    with transaction.atomic():
        stored = account_of(workspace.pk)
        if stored is not None:
            hold(request, stored)
        form = KlavisAccountForm(request.POST, account=stored)
        if not form.is_valid():
            return _page(request, form=form)
        try:
            account = accounts.save_account(
                workspace_id=workspace.pk, draft=form.draft(), actor=request.actor
            )
        except InvalidInput as error:
            add_domain_error(form, error)
            return _page(request, form=form)
    if account.is_usable:
        _try(request)
    else:
        messages.success(request, _("Saved."))
    return redirect(_home(request))


@require_POST
@login_required
def test(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Ask the provider for its catalogue."""
    return _asking(request, lambda: _try(request))


@require_POST
@login_required
def remove(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Take the account away, with all that came from it."""
    workspace_id = workspace_of(request).pk
    return _doing(
        request,
        lambda: accounts.remove_account(workspace_id=workspace_id, actor=request.actor),
        _("Removed. What is kept at Klavis is being deleted there."),
    )


@require_POST
@login_required
def strata(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Have several services behind one server."""
    workspace = workspace_of(request, Permission.MANAGE_SERVERS)
    try:
        where = read_where(request.POST, workspace)
        count_hosted(request.actor)
        row = installing.install(
            workspace=workspace,
            server_name="",
            services=request.POST.getlist("services")[: installing.MAX_SERVICES + 1] or [""],
            actor=request.actor,
            for_workspace=True,
            where=where,
        )
    except (PermissionDenied, NotFound):
        raise
    except DomainError as error:
        messages.error(request, error.message)
        return redirect(_home(request))
    return redirect(_url(request, row))


@require_GET
@login_required
def instance(request: WorkspaceRequest, workspace_slug: str, instance_id: UUID) -> HttpResponse:
    """One instance: how far it is, and what can be done with it."""
    row = _instance_of(request, instance_id)
    card = instance_card(row, actor=request.actor)
    rules = []
    if card.can_manage and row.server_id is not None:
        rules = list(
            ActionRule.objects.for_workspace(row.workspace_id).filter(server=row.server_id)
        )
    account = account_of(row.workspace_id)
    context = {
        **_context(request),
        "card": card,
        "rules": rules,
        "rule_form": ActionRuleForm() if card.can_manage and row.server_id else None,
        "offers": _names(account.catalogue) if account is not None and card.is_strata else [],
        "chosen": list(row.services),
    }
    return render(request, "klavis/instance.html", context)


@require_GET
def signed_in(request: HttpRequest) -> HttpResponse:
    """Where the provider sends the window of a sign-in; it closes itself. The page that opened it goes on by itself."""
    return render(request, "klavis/signed_in.html")


@require_GET
@login_required
def card(request: WorkspaceRequest, workspace_slug: str, instance_id: UUID) -> HttpResponse:
    """One instance's card, for a page that was told to look again."""
    return _card(request, _instance_of(request, instance_id))


@require_POST
@login_required
def poll(request: WorkspaceRequest, workspace_slug: str, instance_id: UUID) -> HttpResponse:
    """Whether the sign-in is done, for whoever began it."""
    row = _instance_of(request, instance_id)
    with suppress(RateLimited):  # then the card says how it was, and the background asks on
        count_poll(request.actor)
        polling.poll_for(instance=row, actor=request.actor)
    return _card(request, _instance_of(request, instance_id))


@require_POST
@login_required
def sign_in(request: WorkspaceRequest, workspace_slug: str, instance_id: UUID) -> HttpResponse:
    """Begin the sign-in, or a failed installation, once more."""
    row = _instance_of(request, instance_id)
    return _asking(
        request, lambda: installing.begin_again(instance=row, actor=request.actor), then=row
    )


@require_POST
@login_required
def credential(request: WorkspaceRequest, workspace_slug: str, instance_id: UUID) -> HttpResponse:
    """Give a service its API key."""
    row = _instance_of(request, instance_id)
    secret = request.POST.get("secret", "")
    return _asking(
        request,
        lambda: instance_changes.set_credential(instance=row, secret=secret, actor=request.actor),
        then=row,
    )


@require_POST
@login_required
def read_only(request: WorkspaceRequest, workspace_slug: str, instance_id: UUID) -> HttpResponse:
    """Have it only read, or do everything."""
    row, is_on = _instance_of(request, instance_id), switch(request, "is_on")
    return _asking(
        request,
        lambda: instance_changes.set_read_only(
            instance=row, is_read_only=is_on, actor=request.actor
        ),
        then=row,
    )


@require_POST
@login_required
def rest(request: WorkspaceRequest, workspace_slug: str, instance_id: UUID) -> HttpResponse:
    """Reach it over the provider's API, or directly."""
    row, is_on = _instance_of(request, instance_id), switch(request, "is_on")
    return _doing(
        request,
        lambda: instance_changes.set_uses_rest(instance=row, uses_rest=is_on, actor=request.actor),
        then=row,
    )


@require_POST
@login_required
def services(request: WorkspaceRequest, workspace_slug: str, instance_id: UUID) -> HttpResponse:
    """Have other services behind the one server."""
    row = _instance_of(request, instance_id)
    names = request.POST.getlist("services")[: installing.MAX_SERVICES + 1]
    seen = request.POST.getlist("seen") or None
    return _asking(
        request,
        lambda: instance_changes.change_services(
            instance=row, services=names, actor=request.actor, seen=seen
        ),
        then=row,
    )


@require_POST
@login_required
def uninstall(request: WorkspaceRequest, workspace_slug: str, instance_id: UUID) -> HttpResponse:
    """Delete it here at once, and at the provider."""
    rows = KlavisInstance.objects.for_workspace(workspace_of(request))
    if not can_manage(request):
        rows = rows.visible_to(request.user)
    row = rows.select_related("workspace", "server", "user").fetch(instance_id)
    return _doing(
        request,
        lambda: installing.uninstall(instance=row, actor=request.actor),
        _("%(title)s is uninstalled. It is being deleted at Klavis too.") % {"title": row.title},
    )


@require_POST
@login_required
def set_rule(request: WorkspaceRequest, workspace_slug: str, instance_id: UUID) -> HttpResponse:
    """Say what happens when a tool runs an action by name."""
    row = _instance_of(request, instance_id)
    if row.server is None:
        raise NotFound
    server, form = row.server, ActionRuleForm(request.POST)
    server.workspace = row.workspace

    def work() -> None:
        if not form.is_valid():
            raise InvalidInput(fields={"action": [_("Name the action, and choose what happens.")]})
        values = form.cleaned_data
        set_action_rule(
            server=server,
            service=values["service"],
            category=values["category"],
            action=values["action"],
            effect=Effect(values["effect"]),
            actor=request.actor,
        )

    return _doing(request, work, then=row)


@require_POST
@login_required
def remove_rule(
    request: WorkspaceRequest, workspace_slug: str, instance_id: UUID, rule_id: UUID
) -> HttpResponse:
    """Take a rule on an action back."""
    row = _instance_of(request, instance_id)
    rules = ActionRule.objects.for_workspace(row.workspace_id).select_related("server__workspace")
    rule = rules.filter(server=row.server_id).fetch(rule_id)
    return _doing(request, lambda: remove_action_rule(rule=rule, actor=request.actor), then=row)


@require_POST
@login_required
def forget_removal(
    request: WorkspaceRequest, workspace_slug: str, removal_id: UUID
) -> HttpResponse:
    """Give up a deletion that the provider does not take."""
    workspace = workspace_of(request, Permission.MANAGE_SERVERS)
    removal = KlavisRemoval.objects.for_workspace(workspace).fetch(removal_id)
    return _doing(request, lambda: removals.forget_removal(removal=removal, actor=request.actor))


def _doing(
    request: WorkspaceRequest,
    work: Callable[[], object],
    done: str = "",
    *,
    then: KlavisInstance | None = None,
) -> HttpResponse:
    """Do it, say on the next page what went wrong, and go there."""
    try:
        work()
    except (PermissionDenied, NotFound):
        raise
    except DomainError as error:
        messages.error(request, error.message)
    else:
        if done:
            messages.success(request, done)
    return redirect(_url(request, then) if then is not None else _home(request))


def _asking(
    request: WorkspaceRequest, work: Callable[[], object], *, then: KlavisInstance | None = None
) -> HttpResponse:
    """As _doing(), for what the provider is asked to do while the person waits: only so often."""

    def counted() -> None:
        count_hosted(request.actor)
        work()

    return _doing(request, counted, then=then)


def _try(request: WorkspaceRequest) -> None:
    report = accounts.try_account(workspace_id=workspace_of(request).pk, actor=request.actor)
    (messages.success if report.ok else messages.error)(request, report.message)


def _instance_of(request: WorkspaceRequest, instance_id: UUID) -> KlavisInstance:
    """The instance of the address, if the person may see it."""
    rows = KlavisInstance.objects.for_workspace(workspace_of(request)).visible_to(request.user)
    return rows.select_related("workspace", "server", "user").fetch(instance_id)


def _card(request: WorkspaceRequest, row: KlavisInstance) -> HttpResponse:
    context = {**_context(request), "card": instance_card(row, actor=request.actor)}
    return render(request, "klavis/_instance.html", context)


def _page(request: WorkspaceRequest, *, form: KlavisAccountForm | None = None) -> HttpResponse:
    workspace, is_manager = workspace_of(request), can_manage(request)
    account = account_of(workspace.pk)
    rows = KlavisInstance.objects.for_workspace(workspace).select_related(
        "workspace", "server", "user"
    )
    seen = rows.visible_to(request.user)
    others = rows.exclude(user__isnull=True).exclude(user=request.user)
    home = _home(request)
    removing = KlavisRemoval.objects.for_workspace(workspace)
    if not is_manager:
        others, removing = others.none(), removing.none()
    others_page = page_in_address(others, request.GET, _OTHERS_AFTER, by="-created_at")
    removals = page_in_address(removing, request.GET, _REMOVALS_AFTER, by="created_at")
    context = {
        **_context(request),
        "account": account,
        "has_key": account is not None and bool(account.api_key),
        "form": (form or KlavisAccountForm(account=account)) if is_manager else None,
        "cards": instance_cards(seen, actor=request.actor),
        "others": instance_cards(others_page.rows, actor=request.actor),
        "other_ways": ways_from(
            others_page, request.GET, _OTHERS_AFTER, path=home, anchor="#others-title"
        ),
        "removals": removals.rows,
        "removal_ways": ways_from(
            removals, request.GET, _REMOVALS_AFTER, path=home, anchor="#removals-title"
        ),
        "address_faults": page_faults(others_page, removals),
        "offers": _names(account.catalogue)
        if is_manager and account is not None and account.is_usable
        else [],
        "where_form": WhereForm(workspace=workspace) if is_manager else None,
        "has_strata": any(row.kind == "strata" and row.user_id is None for row in seen),
    }
    status = 422 if form is not None and form.errors else 200
    return render(request, "klavis/account.html", context, status=status)


def _context(request: WorkspaceRequest) -> dict[str, Any]:
    workspace = workspace_of(request)
    return {
        "section": "servers",
        "servers_url": servers_url(request),
        "klavis_url": _home(request),
        "catalogue_url": reverse("mcp_servers:catalogue", args=[workspace.slug]),
        "can_manage": can_manage(request),
    }


def _names(catalogue: list[dict[str, Any]]) -> list[str]:
    return sorted((str(entry["name"]) for entry in catalogue), key=str.casefold)


def _home(request: WorkspaceRequest) -> str:
    return reverse("mcp_servers:klavis", args=[workspace_of(request).slug])


def _url(request: WorkspaceRequest, row: KlavisInstance) -> str:
    return reverse("mcp_servers:klavis_instance", args=[workspace_of(request).slug, row.pk])
