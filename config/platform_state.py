"""The page on the installation itself, for the platform's owner: what ``manage.py doctor`` finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.account.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from config.doctor import State, examine

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

WORDS = {
    State.OK: ("ok", _("fine")),
    State.LOOK: ("warn", _("look at it")),
    State.FAILED: ("bad", _("failed")),
}
"""Tone and word of each state."""


@require_GET
@login_required
def platform_state(request: WorkspaceRequest) -> HttpResponse:
    """Look at everything the installation stands on."""
    if not request.user.is_superuser:
        raise Http404
    found = examine()
    context = {
        "section": "admin",
        "findings": [(one, *WORDS[one.state]) for one in found],
        "unwell": sum(one.state is not State.OK for one in found),
    }
    return render(request, "config/platform_state.html", context)
