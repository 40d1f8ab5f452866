"""Regular work on servers. Tasks are given ids, and reach rows through the tenant's door."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from celery import shared_task
from celery.schedules import crontab
from django.utils.translation import gettext_lazy as _

from mcp_servers.models import McpServer
from mcp_servers.oauth import attempts, renewing
from mcp_servers.registry import elicitation, health, quotas, services
from mcp_servers.registry.consent import approvals
from mcp_servers.registry.scopes import platform
from mcp_servers.registry.services import first_looks, personal_lists
from mcp_servers.registry.trace import sink
from workspaces.errors import NotFound
from workspaces.process.schedules import scheduled


@shared_task(ignore_result=True)
@scheduled(15, _("Check MCP servers"))
def check_all_servers() -> None:
    """Have every server checked whose time has come; each in a task of its own, so that a slow one delays none."""
    for workspace_id, server_id in health.due_servers():
        health.hand_out_check(workspace_id, server_id)


@shared_task(ignore_result=True)
def check_server(workspace_id: str, server_id: str) -> None:
    """Check one server, unless it is gone."""
    server = McpServer.objects.for_workspace(UUID(workspace_id)).find(server_id)
    if server is not None:
        with _unless_it_goes(UUID(workspace_id), UUID(server_id)):
            services.check_server(server=server)


@shared_task(ignore_result=True)
def look_as_person(workspace_id: str, server_id: str, user_id: str) -> None:
    """Read what a server offers one person's own account, who is there and has an old list."""
    with _unless_it_goes(UUID(workspace_id), UUID(server_id)):
        personal_lists.look_as_member(UUID(workspace_id), UUID(server_id), UUID(user_id))


@shared_task(ignore_result=True)
def look_first(workspace_id: str, server_id: str, user_id: str) -> None:
    """Connect to a server that a person has just added."""
    with _unless_it_goes(UUID(workspace_id), UUID(server_id)):
        first_looks.look_first(UUID(workspace_id), UUID(server_id), UUID(user_id))


@contextmanager
def _unless_it_goes(workspace_id: UUID, server_id: UUID) -> Iterator[None]:
    """Whoever deletes a server while it is looked at leaves nothing to store."""
    try:
        yield
    except NotFound:
        if McpServer.objects.for_workspace(workspace_id).find(server_id) is not None:
            raise


@shared_task(ignore_result=True)
@scheduled(30, _("Renew sign-ins to MCP servers"))
def renew_grants() -> None:
    """Fetch new tokens for accounts that are in use, before the old ones run out."""
    renewing.renew_ageing()


@shared_task(ignore_result=True)
@scheduled(crontab(minute=17), _("Forget old checks, sign-ins, approvals and questions"))
def trim_health_checks() -> None:
    """Delete checks, counts, sign-ins, approvals and questions that nobody looks at any more."""
    health.trim()
    quotas.trim_counts()
    attempts.trim()
    approvals.trim_approvals()
    elicitation.trim_inputs()


@shared_task(ignore_result=True)
@scheduled(15, _("Keep the platform's servers as its file says"))
def keep_platform_servers() -> None:
    """Bring the platform's servers to what its file says, and stop programs that are no longer what they were."""
    platform.sync()
    services.check_programs()


@shared_task(ignore_result=True)
@scheduled(120, _("Delete old trace messages"))
def trim_traces() -> None:
    """Delete messages of connections that are too old or too many."""
    sink.trim()
