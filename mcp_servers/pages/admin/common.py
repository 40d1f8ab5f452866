"""What the admin classes of this app share."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_servers.models import McpServer, McpTool
from mcp_servers.registry.services import ConnectionReport
from workspaces.pages.model_admin import ReadOnly, WorkspaceModelAdmin
from workspaces.roles import Permission
from workspaces.words.formats import whole


class OfServerAdmin(WorkspaceModelAdmin):
    """Rows that belong to a server of the workspace; those of people's own servers are theirs alone."""

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).filter(server__owner__isnull=True)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # they come from their servers

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def tool_state(tool: McpTool) -> str:
    """In a few words."""
    if tool.is_removed:
        return _("removed by the server")
    if tool.problem:
        return _("left out: %(problem)s") % {"problem": tool.problem}
    if tool.is_quarantined:
        return _("changed; to be accepted") if tool.approved_hash else _("new; to be accepted")
    return _("accepted") if tool.is_enabled else _("switched off")


def in_milliseconds(took: int | None) -> str | None:
    """How long an answer took, in words; None where there was none."""
    return None if took is None else f"{whole(took)} ms"


def tell_report(request: HttpRequest, server: McpServer, report: ConnectionReport) -> None:
    """Say on the page what came of a look."""
    if report.ok:
        count = report.tool_count or 0
        message = ngettext(
            "%(name)s: connected in %(latency)s, protocol %(protocol)s, %(tools)s tool.",
            "%(name)s: connected in %(latency)s, protocol %(protocol)s, %(tools)s tools.",
            count,
        ) % {
            "name": server.name,
            "latency": in_milliseconds(report.latency_ms),
            "protocol": report.protocol_revision,
            "tools": whole(count),
        }
        messages.success(request, f"{message} {report.message}".strip())
    else:
        message = _("%(name)s: %(message)s") % {"name": server.name, "message": report.message}
        words = _("The program said: %(words)s") % {"words": report.output}
        parts = (message, report.advice, words if report.output else "")
        messages.error(request, " ".join(filter(None, parts)))


class ReadOnlyAdmin(ReadOnly, WorkspaceModelAdmin):
    """Rows that are made and changed on pages of their own."""

    manage_permission = Permission.MANAGE_SERVERS
