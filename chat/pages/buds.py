"""Pages about buds: the list, the editor with its test chat, files and quality."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from csp.decorators import csp_update
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from audit.reports.figures import spoken_time
from chat.artifacts.knowledge import knowledge_of
from chat.artifacts.meaning import knowledge_listed
from chat.check_shapes import MOST_CHECKS
from chat.models import Bud, BudColour, BudVersion
from chat.pages.bud_form import BudEditorForm, initial_of, initial_of_new, model_groups
from chat.pages.bud_listing import BudSearch, list_buds
from chat.pages.bud_parts import (
    changes_in_words,
    context_of,
    editable_bud,
    errors_in_words,
    faults_of,
    names_for,
)
from chat.pages.bud_picker import all_tools, picker_of
from chat.providers.choosing import provider_for
from chat.providers.errors import ProviderSwitchedOff
from chat.providers.known_models import known_facts
from chat.services.bud_drafts import save_draft, start_test
from chat.services.bud_quality import quality_of
from chat.services.bud_versions import (
    duplicate_bud,
)
from chat.services.bud_yaml import LONGEST, BudFileEffect, apply_bud, write_bud
from chat.services.buds import (
    create_bud,
    update_bud,
    values_of,
)
from chat.services.check_demands import ChecksNotPassed
from chat.services.check_keeping import keep_call
from chat.services.check_plans import plan_of
from chat.services.check_runs import start_run
from chat.services.check_showing import check_json, plan_json, run_json, runs_of
from chat.services.checks import checks_of
from chat.services.checks_before_saving import check_file
from chat.services.knowledge import MOST_FILES, READABLE
from chat.tools.missing_tools import known_tools
from chat.tools.toolset import resolve_toolset
from workspaces.errors import Conflict, InvalidInput
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.pages.file_or_text import FileOrText, read_file_or_text
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

MOST_RUNS: Final = 20
"""On a page."""
framed: Any = csp_update({"frame-src": ["'self'"]})
"""The test chat is a page of our own in a frame."""


@require_GET
@login_required
def bud_list(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The buds that the person may edit, a page at a time; the next page alone for a list that goes on."""
    workspace = workspace_of(request)
    visible = Bud.objects.for_workspace(workspace).visible_to(request.user).filter(is_draft=False)
    page = list_buds(visible, request.actor, workspace.pk, wanted=BudSearch.read(request.GET))
    context = {**context_of(request), "page": page}
    if request.headers.get("HX-Request") and page.wanted.after:
        return render(request, "chat/_bud_rows.html", context)
    if not page.total:
        require(request.actor, Permission.MANAGE_BUDS, workspace_id=workspace.pk)
    return render(request, "chat/buds.html", context)


@framed
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def bud_new(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The editor with a new bud."""
    workspace = workspace_of(request, Permission.MANAGE_BUDS)
    form = BudEditorForm(request.POST or None, initial=initial_of_new(workspace.pk))
    if request.method == "POST" and form.is_valid():
        try:
            bud = create_bud(
                workspace_id=workspace.pk,
                actor=request.actor,
                values=form.values(),
                provider_id=form.provider_id,
            )
        except InvalidInput as error:
            form.add_faults(faults_of(error))
        else:
            messages.success(request, _("%(name)s is ready.") % {"name": bud.name})
            return redirect("chat:bud", workspace_slug=workspace_slug, bud_id=bud.pk)
    return _editor(request, form, None)


@framed
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def bud_editor(request: WorkspaceRequest, workspace_slug: str, bud_id: UUID) -> HttpResponse:
    """The editor of a bud. What somebody else saved meanwhile is shown before it is replaced."""
    bud = editable_bud(request, bud_id)
    form = BudEditorForm(request.POST or None, initial=initial_of(bud))
    if request.method != "POST" or not form.is_valid():
        return _editor(request, form, bud)
    base = form.cleaned_data["base_version"]
    try:
        update_bud(
            bud=bud,
            actor=request.actor,
            values=form.values(),
            provider_id=form.provider_id,
            has_provider=True,
            base_version=base if base is not None else bud.version,
            skips_checks=form.cleaned_data["skip_checks"],
        )
    except InvalidInput as error:
        form.add_faults(faults_of(error))
        return _editor(request, form, bud)
    except ChecksNotPassed as error:
        form.add_error(None, error.message)
        return _editor(request, form, bud, may_skip_checks=True, status=409)
    except Conflict:
        return _conflict(request, form, editable_bud(request, bud_id), base)
    messages.success(request, _("Saved. New messages use it from now on."))
    return redirect("chat:bud", workspace_slug=workspace_slug, bud_id=bud.pk)


def _conflict(request: WorkspaceRequest, form: BudEditorForm, bud: Bud, base: int) -> HttpResponse:
    """Show what the other person changed; saving again takes one's own, and their version is kept."""
    rows = BudVersion.objects.for_workspace(bud.workspace_id).filter(bud=bud)
    seen = rows.filter(number=base).first()
    newest = rows.filter(number=bud.version).first()
    changed = {
        "by": newest.made_by if newest else "",
        "fields": changes_in_words(seen.values, values_of(bud), names_for(bud.workspace_id))
        if seen is not None
        else [],
    }
    form.data = {**request.POST.dict(), "base_version": str(bud.version)}
    return _editor(request, form, bud, changed=changed, status=409)


def _editor(
    request: WorkspaceRequest,
    form: BudEditorForm,
    bud: Bud | None,
    *,
    changed: dict[str, Any] | None = None,
    may_skip_checks: bool = False,
    status: int = 200,
) -> HttpResponse:
    workspace = workspace_of(request)
    slug = workspace.slug
    context = {
        **context_of(request, bud),
        "tab": "edit",
        "form": form,
        "changed": changed,
        "may_skip_checks": may_skip_checks,
        "colours": BudColour.choices,
        "model_groups": model_groups(workspace.pk, form["model"].value() or "|"),
        "picker": {
            "config": _config_of(form, workspace.pk),
            **picker_of(workspace, bud),
        },
        "knowledge": {
            "files": knowledge_listed(bud, knowledge_of(bud)) if bud else [],
            "slug": slug,
            "most_bytes": settings.TRELLIS.artifact_max_bytes,
            "readable": READABLE,
            "most_files": MOST_FILES,
        },
        "embedding_page": _embedding_page(request, bud),
        "checks": _checks(request, bud) if bud is not None else None,
        "problems": _problems_of(bud) if bud is not None else (),
        "test_url": reverse("chat:bud_test", args=[slug]),
        "may_manage": has_permission(
            request.actor, Permission.MANAGE_BUDS, workspace_id=workspace.pk
        ),
    }
    if form.is_bound and not form.is_valid() and status == 200:
        status = 422
    return render(request, "chat/bud_editor.html", context, status=status)


def _problems_of(bud: Bud) -> tuple[str, ...]:
    """What is wrong with the bud as it is stored, in words."""
    toolset = resolve_toolset(bud, None)
    with suppress(ProviderSwitchedOff):
        spec = provider_for(bud)
        if not known_facts(bud.workspace_id, spec).gets_tools:
            toolset = toolset.withheld_from(spec.model)
    return toolset.notices


def _embedding_page(request: WorkspaceRequest, bud: Bud | None) -> str:
    """Where an administrator has the bud's knowledge found by meaning; empty: it is, or cannot be."""
    provider = bud.provider if bud is not None else None
    if provider is None or provider.embedding_model:
        return ""
    workspace = workspace_of(request)
    if not has_permission(request.actor, Permission.MANAGE_BUDS, workspace_id=workspace.pk):
        return ""
    return reverse("chat:provider", args=[workspace.slug, provider.pk])


def _checks(request: WorkspaceRequest, bud: Bud) -> dict[str, Any]:
    """Give the test questions with their last run, for the page's script."""
    slug = workspace_of(request).slug
    last = runs_of(bud).first()
    return {
        "checks": [check_json(check) for check in checks_of(bud)],
        "run": run_json(last, request.actor, with_results=True) if last else None,
        "plan": plan_json(plan_of(bud)),
        "slug": slug,
        "run_url": reverse("chat:bud_check", args=[slug, bud.pk]),
        "log_url": _log_url(request, bud),
        "most": MOST_CHECKS,
    }


def _log_url(request: WorkspaceRequest, bud: Bud) -> str:
    """Give the address of the log, for those who may see it."""
    if not has_permission(request.actor, Permission.VIEW_AUDIT, workspace_id=bud.workspace_id):
        return ""
    return reverse("audit:entries", args=[workspace_of(request).slug])


@require_POST
@login_required
def bud_check(request: WorkspaceRequest, workspace_slug: str, bud_id: UUID) -> HttpResponse:
    """Run the bud's checks with what stands in the editor."""
    bud = editable_bud(request, bud_id)
    form = BudEditorForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"errors": form.errors}, status=422)
    try:
        run = start_run(
            bud=bud,
            person=request.user,
            actor=request.actor,
            values=form.values(),
            provider_id=form.provider_id,
        )
    except InvalidInput as error:
        return JsonResponse({"errors": faults_of(error)}, status=422)
    except Conflict as error:
        return JsonResponse({"errors": {"": [error.message]}}, status=409)
    return JsonResponse({"run": run_json(run, request.actor, with_results=True)})


@require_POST
@login_required
def bud_keep_call(request: WorkspaceRequest, workspace_slug: str, call_id: UUID) -> HttpResponse:
    """Keep a call of the log as a check, and show it in the bud's editor."""
    try:
        check = keep_call(
            workspace_id=workspace_of(request).pk, call_id=call_id, actor=request.actor
        )
    except (InvalidInput, Conflict) as error:
        messages.error(request, errors_in_words(error))
        return redirect("audit:call", workspace_slug=workspace_slug, call_id=call_id)
    messages.success(request, _("The call is a check now. Change what it expects, then run it."))
    url = reverse("chat:bud", args=[workspace_slug, check.bud_id])
    return redirect(f"{url}#checks")


def _config_of(form: BudEditorForm, workspace_id: UUID) -> Any:
    """Give the tools as they were sent, without those that have gone, or as they are stored."""
    if not form.is_bound:
        return form.initial.get("mcp_config") or {}
    # Not from the cleaned values: a fault takes the field out of them, and the choice would be lost.
    sent = form.fields["mcp_config"].bound_data(form["mcp_config"].data, {})
    config = sent if isinstance(sent, dict) else {}
    for name in ("available_tools", "disabled_tools"):
        if isinstance(tools := config.get(name), list):
            config = {**config, name: known_tools(workspace_id, map(str, tools))}
    return config


@require_GET
@login_required
def bud_tools(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Give all tools that a bud may use by their servers, for a picker that has been opened."""
    workspace = workspace_of(request)
    if given := request.GET.get("bud", ""):
        editable_bud(request, _uuid(given))
    else:
        require(request.actor, Permission.MANAGE_BUDS, workspace_id=workspace.pk)
    return JsonResponse({"tools": all_tools(workspace)})


@require_POST
@login_required
def bud_test(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Keep what stands in the editor for the person's test chat, and open one if they ask for it."""
    workspace = workspace_of(request)
    form = BudEditorForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"errors": form.errors}, status=422)
    given = request.POST.get("bud", "")
    bud = editable_bud(request, _uuid(given)) if given else None
    try:
        draft = save_draft(
            workspace_id=workspace.pk,
            bud=bud,
            person=request.user,
            actor=request.actor,
            values=form.values(),
            provider_id=form.provider_id,
        )
    except InvalidInput as error:
        return JsonResponse({"errors": faults_of(error)}, status=422)
    if "start" not in request.POST:
        return JsonResponse({"url": None})
    talk = start_test(draft=draft, person=request.user, actor=request.actor)
    url = reverse("chat:conversation", args=[workspace_slug, talk.pk])
    return JsonResponse({"url": f"{url}?test=1"})


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidInput(fields={"bud": [_("This is not a valid id.")]}) from error


@require_POST
@login_required
def bud_duplicate(request: WorkspaceRequest, workspace_slug: str, bud_id: UUID) -> HttpResponse:
    """Make a copy and open it."""
    try:
        made = duplicate_bud(bud=editable_bud(request, bud_id), actor=request.actor)
    except InvalidInput as error:
        messages.error(request, errors_in_words(error))
        return redirect("chat:buds", workspace_slug=workspace_slug)
    return redirect("chat:bud", workspace_slug=workspace_slug, bud_id=made.pk)


@require_GET
@login_required
def bud_file(request: WorkspaceRequest, workspace_slug: str, bud_id: UUID) -> HttpResponse:
    """The bud as YAML."""
    bud = editable_bud(request, bud_id)
    response = HttpResponse(write_bud(bud), content_type="application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{bud.slug}.yaml"'
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def bud_import(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """A bud from YAML: made, or the one of the same short name changed."""
    workspace = workspace_of(request, Permission.MANAGE_BUDS)
    given = read_file_or_text(request, most_bytes=LONGEST * 4)
    faults: dict[str, list[str]] = {}
    may_skip_checks = "skip_checks" in request.POST
    if request.method == "POST":
        try:
            text = given.wanted
            if "check" in request.POST:
                run = check_file(
                    text, workspace_id=workspace.pk, person=request.user, actor=request.actor
                )
                return _running(request, run.bud, given)
            bud, applied = apply_bud(
                text,
                workspace_id=workspace.pk,
                person=request.user,
                actor=request.actor,
                skips_checks=may_skip_checks,
            )
        except InvalidInput as error:
            faults = faults_of(error)
        except Conflict as error:
            faults, may_skip_checks = {"": [error.message]}, True
        else:
            messages.success(request, _APPLIED[applied] % {"name": bud.name})
            return redirect("chat:bud", workspace_slug=workspace_slug, bud_id=bud.pk)
    context = {
        **context_of(request),
        "given": given,
        "faults": faults,
        "may_skip_checks": may_skip_checks,
    }
    return render(request, "chat/bud_import.html", context, status=422 if faults else 200)


def _running(request: WorkspaceRequest, bud: Bud, given: FileOrText) -> HttpResponse:
    """The file once more, for when its checks have passed."""
    url = reverse("chat:bud", args=[workspace_of(request).slug, bud.pk])
    context = {
        **context_of(request),
        "given": given,
        "faults": {},
        "may_skip_checks": True,
        "running": {"name": bud.name, "url": f"{url}#checks"},
    }
    return render(request, "chat/bud_import.html", context)


_APPLIED: Final = {
    BudFileEffect.MADE: gettext_lazy("%(name)s is ready."),
    BudFileEffect.CHANGED: gettext_lazy("%(name)s was changed by the file."),
    BudFileEffect.NOTHING: gettext_lazy(
        "%(name)s is as the file says already. Nothing was changed."
    ),
}


@require_GET
@login_required
def bud_quality(request: WorkspaceRequest, workspace_slug: str, bud_id: UUID) -> HttpResponse:
    """How a bud did in the last days."""
    bud = editable_bud(request, bud_id)
    found = quality_of(bud=bud, actor=request.actor)
    page = page_in_address(runs_of(bud), request.GET, by="-id", most=MOST_RUNS)
    context = {
        **context_of(request, bud),
        "tab": "quality",
        "found": found,
        "p50": spoken_time(found.p50_ms) if found.p50_ms is not None else "–",
        "p95": spoken_time(found.p95_ms) if found.p95_ms is not None else "–",
        "log_url": _log_url(request, bud),
        "runs": page.rows,
        "ways": ways_from(page, request.GET, anchor="#checks"),
        "address_faults": page_faults(page),
    }
    return render(request, "chat/bud_quality.html", context)
