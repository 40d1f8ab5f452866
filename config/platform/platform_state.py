"""The pages on the installation itself, for the platform's owner: the doctor's report, jobs, storage and versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from chat import restore_confirmation
from config.doctor import FindingState, examine
from config.installation.jobs import JobState, duration, read_jobs, run_now
from config.installation.storage import read_storage
from config.installation.tables import DatabaseSize
from config.installation.versions import as_text, read_versions
from workspaces.database.row_security import everywhere
from workspaces.errors import DomainError
from workspaces.pages.parts import for_platform_owner, telling_refusals
from workspaces.product import VERSION
from workspaces.restore_detection import restored_at
from workspaces.words.formats import percent

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

WORDS = {
    FindingState.OK: ("ok", _("fine")),
    FindingState.LOOK: ("warn", _("look at it")),
    FindingState.FAILED: ("bad", _("failed")),
}
"""Tone and word of each state."""
JOB_WORDS: Final = {
    JobState.OK: ("ok", _("fine")),
    JobState.RUNNING: ("info", _("running")),
    JobState.WAITING: ("muted", _("not run yet")),
    JobState.LATE: ("warn", _("late")),
    JobState.FAILED: ("bad", _("failed")),
}
_TABS: Final = (
    ("state", _("Overview"), "platform_state"),
    ("jobs", _("Background jobs"), "platform_jobs"),
    ("storage", _("Storage"), "platform_storage"),
    ("versions", _("Versions"), "platform_versions"),
)


@require_GET
@for_platform_owner
def platform_state(request: WorkspaceRequest) -> HttpResponse:
    """Look at everything the installation stands on."""
    found = examine(is_patient=False)
    context = {
        **_header("state"),
        "findings": [(one, *WORDS[one.state]) for one in found],
        "unwell": sum(one.state is not FindingState.OK for one in found),
        "restored_at": restored_at(),
    }
    return render(request, "config/platform_state.html", context)


@require_POST
@for_platform_owner
def confirm_restore(request: WorkspaceRequest) -> HttpResponse:
    """Let things be done by themselves again after a restore, as `manage.py confirm_restore` does."""
    try:
        with everywhere():
            was_open = restore_confirmation.confirm(by=request.user.email, actor=request.actor)
    except OSError:
        messages.error(
            request,
            _("Nothing was confirmed: the checkpoint file of the log could not be written."),
        )
    else:
        if was_open:
            messages.success(
                request,
                _(
                    "Confirmed. What had waited goes on: mails, webhooks, streams, schedules and deletions."
                ),
            )
        else:
            messages.info(request, _("The restore was confirmed before."))
    return redirect("platform_state")


@require_GET
@for_platform_owner
def platform_jobs(request: WorkspaceRequest) -> HttpResponse:
    """What runs in the background, how it went, and who runs it."""
    report = read_jobs()
    context = {
        **_header("jobs"),
        "report": report,
        "jobs": [(job, *JOB_WORDS[job.state], duration(job.seconds)) for job in report.jobs],
        "own_version": VERSION,
    }
    return render(request, "config/platform_jobs.html", context)


@require_POST
@for_platform_owner
def run_job(request: WorkspaceRequest) -> HttpResponse:
    """Have a job run now."""
    with telling_refusals(request, DomainError):
        with everywhere():
            job = run_now(request.POST.get("name", ""), actor=request.actor)
        message = _("Started: %(job)s. Reload this page in a moment to see how it went.")
        messages.success(request, message % {"job": job.what})
    return redirect("platform_jobs")


@require_GET
@for_platform_owner
def platform_storage(request: WorkspaceRequest) -> HttpResponse:
    """What takes how much room, and how much is left."""
    report = read_storage()
    context = {
        **_header("storage"),
        "report": report,
        "parts": [(part, _share(report.database, part.size)) for part in report.database.parts],
        "fullest": min(report.disks, key=lambda one: one.free, default=None),
        "idle_days": settings.TRELLIS.idle_conversation_days,
    }
    return render(request, "config/platform_storage.html", context)


@require_GET
@for_platform_owner
def platform_versions(request: WorkspaceRequest) -> HttpResponse:
    """Which versions the installation consists of."""
    found = read_versions()
    context = {**_header("versions"), "versions": found, "report": as_text(found)}
    return render(request, "config/platform_versions.html", context)


def _header(tab: str) -> dict[str, Any]:
    """What every one of these pages has."""
    return {
        "section": "admin",
        "tab": tab,
        "tabs": [(name, label, reverse(view)) for name, label, view in _TABS],
    }


def _share(database: DatabaseSize, size: int | None) -> str:
    """Of the whole database."""
    return percent(size / database.size) if size is not None and database.size else ""
