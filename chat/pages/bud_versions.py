"""The page of a bud's versions: who saved what, how they differ, and the way back."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from chat.models import Bud, BudVersion
from chat.pages.bud_parts import (
    changes_in_words,
    context_of,
    editable_bud,
    errors_in_words,
    names_for,
)
from chat.services.bud_versions import restore_version, values_of_version
from chat.services.check_demands import ChecksNotPassed
from chat.services.check_showing import passed_of_versions
from chat.services.checks_before_saving import check_version
from chat.services.version_notes import note_in_words
from workspaces.errors import Conflict, InvalidInput
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_GET
@login_required
def bud_versions(request: WorkspaceRequest, workspace_slug: str, bud_id: UUID) -> HttpResponse:
    """Who saved what, and the differences."""
    return _page(request, editable_bud(request, bud_id))


def _page(
    request: WorkspaceRequest, bud: Bud, *, refused: int | None = None, fault: str = ""
) -> HttpResponse:
    rows = BudVersion.objects.for_workspace(bud.workspace_id).filter(bud=bud)
    page = page_in_address(rows, request.GET, by="-number")
    earlier = [*page.rows[1:]]
    if page.following:
        earlier += rows.filter(number__lt=page.rows[-1].number).order_by("-number")[:1]
    checked, names = passed_of_versions(bud), names_for(bud.workspace_id)
    shown = [
        {
            "version": version,
            "note": note_in_words(version.note),
            "is_first": before is None,
            "changes": changes_in_words(before.values, version.values, names)
            if before is not None
            else [],
            "checked": checked.get(version.number),
        }
        for version, before in zip_longest(page.rows, earlier)
    ]
    context = {
        **context_of(request, bud),
        "tab": "versions",
        "versions": shown,
        "ways": ways_from(page, request.GET),
        "address_faults": page_faults(page),
        "refused": refused,
        "fault": fault,
    }
    return render(request, "chat/bud_versions.html", context, status=409 if refused else 200)


@require_POST
@login_required
def bud_restore(
    request: WorkspaceRequest, workspace_slug: str, bud_id: UUID, number: int
) -> HttpResponse:
    """Make an earlier version the newest one, or run the checks with it first."""
    bud = editable_bud(request, bud_id)
    base = request.POST.get("base_version", "")
    try:
        if "check" in request.POST:
            check_version(bud=bud, number=number, person=request.user, actor=request.actor)
            message = _(
                "The checks run with version %(number)s now. Restore it when they have passed."
            )
            messages.success(request, message % {"number": number})
            url = reverse("chat:bud", args=[workspace_slug, bud.pk])
            return redirect(f"{url}#checks")
        left_out = values_of_version(bud, number).left_out
        restore_version(
            bud=bud,
            number=number,
            actor=request.actor,
            base_version=int(base) if base.isdecimal() else None,
            skips_checks="skip_checks" in request.POST,
        )
    except ChecksNotPassed as error:
        return _page(request, bud, refused=number, fault=error.message)
    except (InvalidInput, Conflict) as error:
        messages.error(request, errors_in_words(error))
    else:
        messages.success(request, _("Version %(number)s is back.") % {"number": number})
        for message in left_out:
            messages.warning(request, message)
    return redirect("chat:bud_versions", workspace_slug=workspace_slug, bud_id=bud.pk)
