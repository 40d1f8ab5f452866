"""The page on the installation itself, for the platform's owner: what ``manage.py doctor`` finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from chat import restore
from config.doctor import State, examine
from workspaces.database.row_security import everywhere
from workspaces.pages.parts import for_platform_owner
from workspaces.restore import restored_at

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

WORDS = {
    State.OK: ("ok", _("fine")),
    State.LOOK: ("warn", _("look at it")),
    State.FAILED: ("bad", _("failed")),
}
"""Tone and word of each state."""


@require_GET
@for_platform_owner
def platform_state(request: WorkspaceRequest) -> HttpResponse:
    """Look at everything the installation stands on."""
    found = examine()
    context = {
        "section": "admin",
        "findings": [(one, *WORDS[one.state]) for one in found],
        "unwell": sum(one.state is not State.OK for one in found),
        "restored_at": restored_at(),
    }
    return render(request, "config/platform_state.html", context)


@require_POST
@for_platform_owner
def confirm_restore(request: WorkspaceRequest) -> HttpResponse:
    """Let things be done by themselves again after a restore, as `manage.py confirm_restore` does."""
    try:
        with everywhere():
            was_open = restore.confirm(by=request.user.email, actor=request.actor)
    except OSError:
        messages.error(
            request,
            _("Nothing was confirmed: the checkpoint file of the log could not be written."),
        )
    else:
        if was_open:
            messages.success(request, _("Confirmed. Webhooks go out again."))
        else:
            messages.info(request, _("The restore was confirmed before."))
    return redirect("platform_state")
