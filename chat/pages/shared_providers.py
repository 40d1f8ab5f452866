"""The pages of the model providers that the platform's owner shares, for them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chat.models import ModelProvider, SharedProvider, WithheldReason
from chat.pages.platform_provider import list_news, shown_models
from chat.pages.shared_provider_form import PartForm, SharedProviderForm
from chat.providers.base import MonthLimit
from chat.providers.choosing import platform_provider
from chat.providers.errors import ProviderKeyUntested
from chat.providers.known_models import days_of
from chat.providers.limits import ProviderLoad, load_of, loads_of, shared_load
from chat.providers.specs import limits_of
from chat.providers.spending_months import Spent, limit_of_part, month_of_workspace, spent_of_shared
from chat.services.parts_of_shared import change_part, find_part
from chat.services.platform_provider import USAGE_DAYS, try_shared_provider, usage_by_workspace
from chat.services.removed_model_uses import would_be_taken, would_be_taken_from
from chat.services.shared_providers import (
    change_shared_provider,
    delete_shared_provider,
    give_provider,
    share_provider,
    switch_shared_provider,
    withdraw_provider,
)
from chat.services.shared_uses import (
    fetch_for_owner,
    list_shared,
    uses_by_workspace,
    uses_of,
)
from chat.services.uses_in_words import taken_in_words, uses_in_words
from workspaces.errors import Conflict, InvalidInput, NotFound
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.models import Workspace
from workspaces.pages.parts import for_platform_owner, put_faults, telling_refusals
from workspaces.secret_memory import without_secrets
from workspaces.words.formats import money, whole
from workspaces.words.text_values import unknown_filters

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

WORKSPACES_ON_PAGE: Final = 50


@require_safe
@for_platform_owner
def shared_providers(request: WorkspaceRequest) -> HttpResponse:
    """All of them, and the one that the environment gives."""
    context: dict[str, Any] = {
        "section": "admin",
        "rows": [
            {"row": one, "address": without_secrets(one.shared.base_url)}
            for one in list_shared(actor=request.actor)
        ],
        "provider": platform_provider(),
    }
    return render(request, "chat/shared_providers.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@for_platform_owner
def new_shared_provider(request: WorkspaceRequest) -> HttpResponse:
    """Add one."""
    return _edited(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@for_platform_owner
def edit_shared_provider(request: WorkspaceRequest, provider_id: UUID) -> HttpResponse:
    """Change one, also its key."""
    return _edited(request, fetch_for_owner(provider_id, actor=request.actor))


def _edited(request: WorkspaceRequest, shared: SharedProvider | None) -> HttpResponse:
    is_sent = request.method == "POST"
    may_skip = is_sent and "untested_key" in request.POST
    asks = is_sent and "takes_away" in request.POST
    form = SharedProviderForm(
        request.POST or None, shared=shared, may_skip_test=may_skip, asks_to_take_away=asks
    )
    if is_sent and form.is_valid():
        is_tested = not form.cleaned_data.get("untested_key", False)
        had_key = shared is not None and bool(shared.api_key)
        try:
            if shared is not None and not form.cleaned_data.get("takes_away"):
                taken = would_be_taken(shared=shared, draft=form.draft(), actor=request.actor)
                if warning := taken_in_words(taken):
                    form = SharedProviderForm(
                        request.POST, shared=shared, may_skip_test=may_skip, asks_to_take_away=True
                    )
                    form.add_error("takes_away", warning)
                    return _form_page(request, shared, form)
            if shared is None:
                saved = share_provider(draft=form.draft(), actor=request.actor, is_tested=is_tested)
            else:
                saved = change_shared_provider(
                    shared=shared, draft=form.draft(), actor=request.actor, is_tested=is_tested
                )
        except ProviderKeyUntested as error:
            form = SharedProviderForm(
                request.POST, shared=shared, may_skip_test=True, asks_to_take_away=asks
            )
            form.add_error("api_key", error.message)
        except InvalidInput as error:
            put_faults(form, error)
        except Conflict as error:
            form.add_error(None, error.message)
        else:
            _tell_saved(request, saved, is_new=shared is None, had_key=had_key)
            return redirect("chat:shared_provider", provider_id=saved.pk)
    return _form_page(request, shared, form)


def _form_page(
    request: WorkspaceRequest, shared: SharedProvider | None, form: SharedProviderForm
) -> HttpResponse:
    context = {"section": "admin", "shared": shared, "form": form}
    status = 422 if request.method == "POST" else 200
    return render(request, "chat/shared_provider_edit.html", context, status=status)


def _tell_saved(
    request: WorkspaceRequest, saved: SharedProvider, *, is_new: bool, had_key: bool
) -> None:
    if is_new and not saved.is_for_all:
        message = _("“%(name)s” is stored. Choose the workspaces that may use it.")
    else:
        message = _("“%(name)s” is saved.")
    messages.success(request, message % {"name": saved.name})
    if had_key and not saved.api_key:
        messages.warning(
            request,
            _(
                "The stored key was for the old address, so Trellis removed it. Add one for the new address."
            ),
        )


@require_http_methods(["GET", "HEAD", "POST"])
@for_platform_owner
def shared_provider(request: WorkspaceRequest, provider_id: UUID) -> HttpResponse:
    """One of them: who has it and who uses it; with POST, ask it whether it answers."""
    shared = fetch_for_owner(provider_id, actor=request.actor)
    is_test = request.method == "POST"
    trial = try_shared_provider(actor=request.actor, shared=shared) if is_test else None
    listing = trial.listing if trial else None
    models = shown_models(shared.base_url, listing)
    uses = uses_of(shared)
    context: dict[str, Any] = {
        "section": "admin",
        "shared": shared,
        "address": without_secrets(shared.base_url),
        "has_key": bool(shared.api_key),
        "load": shared_load(shared.pk) if shared.most_at_once or shared.most_a_minute else None,
        "model": shared.default_model,
        "trial": trial,
        "listing": listing,
        "has_default": listing is None
        or any(one.name == shared.default_model for one in listing.models),
        "default_ends_on": listing.end_of(shared.default_model) if listing else None,
        "models": models,
        **list_news(shared.base_url, shared.pk),
        **days_of(one["prices"] for one in models),
        "uses": uses,
        "uses_text": uses_in_words(uses),
        "usage": usage_by_workspace(actor=request.actor, shared=shared),
        "days": USAGE_DAYS,
        **_workspaces(request, shared),
    }
    return render(request, "chat/shared_provider.html", context)


@require_POST
@for_platform_owner
def change_sharing(request: WorkspaceRequest, provider_id: UUID, verb: str) -> HttpResponse:
    """What a button says."""
    shared = fetch_for_owner(provider_id, actor=request.actor)
    actor, name = request.actor, {"name": shared.name}
    with telling_refusals(request, Conflict):
        if verb in {"give", "withdraw"}:
            message = _give_or_withdraw(request, shared, verb)
        elif verb in {"on", "off"}:
            switch_shared_provider(shared=shared, is_active=verb == "on", actor=actor)
            message = (_("“%(name)s” is on.") if verb == "on" else _("“%(name)s” is off.")) % name
        elif verb == "delete":
            delete_shared_provider(shared=shared, actor=actor)
            messages.success(request, _("“%(name)s” is deleted.") % name)
            return redirect("chat:shared_providers")
        else:
            raise NotFound
        messages.success(request, message)
    page = reverse("chat:shared_provider", args=[shared.pk])
    query = request.POST.get("q", "")
    return redirect(f"{page}?{urlencode({'q': query})}" if query else page)


def _give_or_withdraw(request: WorkspaceRequest, shared: SharedProvider, verb: str) -> str:
    workspace = _workspace_of(request.POST.get("workspace", ""))
    names = {"name": shared.name, "workspace": workspace.name}
    if verb == "give":
        give_provider(shared=shared, workspace=workspace, actor=request.actor)
        return _("“%(workspace)s” may use “%(name)s” now.") % names
    withdraw_provider(shared=shared, workspace=workspace, actor=request.actor)
    return _("“%(workspace)s” can no longer use “%(name)s”.") % names


def _workspace_of(text: str) -> Workspace:
    """The workspace of that id.

    Raises:
        NotFound: there is none.
    """
    try:
        return Workspace.objects.get(pk=UUID(text))
    except (ValueError, Workspace.DoesNotExist) as error:
        raise NotFound(_("Workspace not found.")) from error


@require_http_methods(["GET", "HEAD", "POST"])
@for_platform_owner
def part_of_shared(
    request: WorkspaceRequest, provider_id: UUID, workspace_id: UUID
) -> HttpResponse:
    """What one workspace may have of it, and how much of that it uses."""
    shared = fetch_for_owner(provider_id, actor=request.actor)
    workspace = _workspace_of(str(workspace_id))
    row = find_part(shared=shared, workspace=workspace, actor=request.actor)
    is_sent = request.method == "POST"
    asks = is_sent and "takes_away" in request.POST
    form = PartForm(request.POST or None, row=row, asks_to_take_away=asks)
    if is_sent and form.is_valid():
        try:
            draft = form.draft()
            warning = ""
            if not form.cleaned_data.get("takes_away"):
                taken = would_be_taken_from(
                    shared=shared, workspace=workspace, draft=draft, actor=request.actor
                )
                warning = taken_in_words(taken)
            if warning:
                form = PartForm(request.POST, row=row, asks_to_take_away=True)
                form.add_error("takes_away", warning)
            else:
                change_part(shared=shared, workspace=workspace, draft=draft, actor=request.actor)
                saved = _("What “%(workspace)s” may use is saved.")
                messages.success(request, saved % {"workspace": workspace.name})
                return redirect("chat:shared_provider", provider_id=shared.pk)
        except InvalidInput as error:
            put_faults(form, error)
    context = {
        "section": "admin",
        "shared": shared,
        "workspace": workspace,
        "row": row,
        "load": load_of(row),
        "begins_anew": month_of_workspace(workspace.pk).begins_anew,
        "month_texts": _month_in_words(row, spent_of_shared(shared.pk, [workspace])[workspace.pk]),
        "form": form,
    }
    status = 422 if is_sent else 200
    return render(request, "chat/shared_provider_part.html", context, status=status)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRow:
    """A workspace in the list of those that may use a provider."""

    workspace: Workspace
    given: ModelProvider | None
    """None: it never was, or nothing there uses it any more."""
    uses_text: str
    """What a withdrawal would stop, in words; empty: nothing."""
    limit_texts: Sequence[str] = ()
    """Its own limits, each with how much of it is used now."""
    month_texts: Sequence[str] = ()
    """What it used in this month, beside its limits of that."""

    @property
    def has_it(self) -> bool:
        """Whether it is the workspace's to use, on or off."""
        return self.given is not None and self.given.withheld != WithheldReason.WITHDRAWN


def _workspaces(request: WorkspaceRequest, shared: SharedProvider) -> dict[str, Any]:
    """A page of the workspaces that have it, or of all whose name has the words that are looked for."""
    query = request.GET.get("q", "").replace("\x00", "").strip()[:100]
    given = ModelProvider.objects.across_workspaces().filter(shared=shared)
    if query:
        rows = Workspace.objects.filter(name__icontains=query)
    else:
        having = given.exclude(withheld=WithheldReason.WITHDRAWN.value)
        rows = Workspace.objects.filter(pk__in=having.values("workspace_id"))
    page = page_in_address(rows, request.GET, by="name", most=WORKSPACES_ON_PAGE)
    by_workspace = {row.workspace_id: row for row in given.filter(workspace__in=page.rows)}
    uses = uses_by_workspace(shared, page.rows)
    spent = spent_of_shared(shared.pk, page.rows)
    limited = [one for one in by_workspace.values() if limits_of(one) is not None]
    loads = loads_of(limited)
    return {
        "query": query,
        "fault": next(iter(unknown_filters(request.GET, {"q", "after"})), ""),
        "workspaces": [
            WorkspaceRow(
                workspace=one,
                given=by_workspace.get(one.pk),
                uses_text=uses_in_words(uses[one.pk]),
                limit_texts=_limits_in_words(by_workspace.get(one.pk), loads),
                month_texts=_month_in_words(by_workspace.get(one.pk), spent[one.pk]),
            )
            for one in page.rows
        ],
        "ways": ways_from(page, request.GET, anchor="#workspaces-heading"),
        "address_faults": page_faults(page),
    }


def _limits_in_words(row: ModelProvider | None, loads: Mapping[UUID, ProviderLoad]) -> list[str]:
    load = loads.get(row.pk) if row is not None else None
    if row is None or load is None:
        return []
    parts = []
    if row.most_at_once is not None:
        values = {"used": whole(load.running), "most": whole(row.most_at_once)}
        parts.append(_("%(used)s of %(most)s at once") % values)
    if row.most_a_minute is not None:
        values = {"used": whole(load.in_last_minute), "most": whole(row.most_a_minute)}
        parts.append(_("%(used)s of %(most)s a minute") % values)
    return parts


def _month_in_words(row: ModelProvider | None, spent: Spent) -> list[str]:
    limit = limit_of_part(row) if row is not None else MonthLimit()
    parts = []
    if spent.cost or limit.cost is not None:
        values = {"used": money(spent.cost), "most": money(limit.cost)}
        parts.append(
            (_("%(used)s of %(most)s USD") if values["most"] else _("%(used)s USD")) % values
        )
    if spent.tokens or limit.tokens is not None:
        values = {
            "used": whole(spent.tokens),
            "most": whole(limit.tokens) if limit.tokens is not None else "",
        }
        parts.append(
            (_("%(used)s of %(most)s tokens") if values["most"] else _("%(used)s tokens")) % values
        )
    if spent.unpriced_tokens:
        parts.append(
            _("%(tokens)s tokens without a list price") % {"tokens": whole(spent.unpriced_tokens)}
        )
    return parts
