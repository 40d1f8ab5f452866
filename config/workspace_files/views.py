"""The page of a workspace's file: to download, and to put another into force after a look at what changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from chat.models import Bud
from config.workspace_files.applying import AppliedChanges, ChecksMissing, apply_file, check_buds
from config.workspace_files.exporting import write_workspace
from config.workspace_files.providers import KeysUntested
from config.workspace_files.target import WorkspaceTarget
from workspaces.errors import InvalidInput
from workspaces.pages.file_or_text import read_file_or_text
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission
from workspaces.yaml_text import LONGEST, read_yaml

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_LONGEST_UPLOAD: Final = 4 * LONGEST
"""Bytes, in UTF-8."""
_SIGNS: Final = ("+", "-")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def workspace_file(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Show what a file would change, and change it when somebody has seen that."""
    target = _target_of(request)
    given = read_file_or_text(request, most_bytes=_LONGEST_UPLOAD)
    faults: dict[str, list[str]] = {}
    applied: AppliedChanges | None = None
    is_untested = "untested_keys" in request.POST
    may_skip_test = is_untested
    skips_checks = may_skip_checks = "skip_checks" in request.POST
    running: list[Bud] = []
    if request.method == "POST":
        is_sure = "apply" in request.POST
        try:
            text = given.wanted
            if "check" in request.POST:
                may_skip_checks = True
                runs = check_buds(target, read_yaml(text), person=request.user)
                running = [run.bud for run in runs]
            else:
                applied = apply_file(
                    target,
                    read_yaml(text),
                    is_dry_run=not is_sure,
                    tests_keys=not is_untested,
                    skips_checks=skips_checks,
                )
        except InvalidInput as error:
            faults = {**error.fields} or {"": [error.message]}
            may_skip_test = may_skip_test or isinstance(error, KeysUntested)
            may_skip_checks = may_skip_checks or isinstance(error, ChecksMissing)
        else:
            if applied is not None and is_sure:
                for note in applied.notes:
                    messages.warning(request, note)
                messages.success(request, _("The workspace is as the file says now."))
                return redirect("workspace_file", workspace_slug=workspace_slug)
    context: dict[str, Any] = {
        "section": "",
        "given": given,
        "faults": faults,
        "is_untested": is_untested,
        "may_skip_test": may_skip_test,
        "skips_checks": skips_checks,
        "may_skip_checks": may_skip_checks,
        "running": running,
        "notes": target.notes,
        "applied": applied,
        "lines": _lines_of(applied.diff) if applied else [],
    }
    return render(request, "config/workspace_file.html", context, status=422 if faults else 200)


@require_safe
@login_required
def download(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Give the workspace's file."""
    response = HttpResponse(
        write_workspace(_target_of(request)), content_type="application/yaml; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="{workspace_slug}.yaml"'
    response["Cache-Control"] = "private, no-store"
    return response


def _target_of(request: WorkspaceRequest) -> WorkspaceTarget:
    return WorkspaceTarget(workspace_of(request, Permission.MANAGE_WORKSPACE), request.actor)


def _lines_of(diff: str) -> list[tuple[str, str]]:
    """Each line with its sign, without the head that names two files."""
    lines = diff.splitlines()[2:]
    return [
        (line[:1] if line.startswith(_SIGNS) else "", "…" if line.startswith("@@") else line[1:])
        for line in lines
    ]
