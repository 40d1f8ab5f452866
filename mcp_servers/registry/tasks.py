"""Regular work on servers. Tasks are given ids, and reach rows through the tenant's door."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from mcp_servers.klavis import polling, reconciling, removals
from mcp_servers.models import McpServer
from mcp_servers.oauth import attempts, renewing
from mcp_servers.registry import health, quotas, services
from mcp_servers.registry.scopes import platform
from mcp_servers.registry.services import personal_lists
from mcp_servers.registry.trace import sink


@shared_task(name="mcp_servers.tasks.check_all_servers", ignore_result=True)
def check_all_servers() -> None:
    """Have every server checked whose time has come; each in a task of its own, so that a slow one delays none."""
    for workspace_id, server_id in health.due_servers():
        hand_out_check(workspace_id, server_id)


def hand_out_check(workspace_id: UUID, server_id: UUID) -> None:
    """Queue one check, unless one is queued or under way; however slow the workers are, checks do not pile up."""
    if health.claim(workspace_id, server_id):
        check_server.apply_async((str(workspace_id), str(server_id)), expires=health.START_SECONDS)


@shared_task(name="mcp_servers.tasks.check_server", ignore_result=True)
def check_server(workspace_id: str, server_id: str) -> None:
    """Check one server, unless it is gone."""
    server = McpServer.objects.for_workspace(UUID(workspace_id)).find(server_id)
    if server is not None:
        services.check_server(server=server)


@shared_task(name="mcp_servers.tasks.look_as_person", ignore_result=True)
def look_as_person(workspace_id: str, server_id: str, user_id: str) -> None:
    """Read what a server offers one person's own account, who is there and has an old list."""
    personal_lists.look_as_member(UUID(workspace_id), UUID(server_id), UUID(user_id))


@shared_task(name="mcp_servers.tasks.renew_grants", ignore_result=True)
def renew_grants() -> None:
    """Fetch new tokens for accounts that are in use, before the old ones run out."""
    renewing.renew_ageing()


@shared_task(name="mcp_servers.tasks.trim_health_checks", ignore_result=True)
def trim_health_checks() -> None:
    """Delete checks, counts and sign-ins that nobody looks at any more."""
    health.trim()
    quotas.trim_counts()
    attempts.trim()


@shared_task(name="mcp_servers.tasks.keep_platform_servers", ignore_result=True)
def keep_platform_servers() -> None:
    """Bring the platform's servers to what its file says, and stop programs that are no longer what they were."""
    platform.sync()
    services.check_programs()


@shared_task(name="mcp_servers.tasks.trim_traces", ignore_result=True)
def trim_traces() -> None:
    """Delete messages of connections that are too old or too many."""
    sink.trim()


@shared_task(name="mcp_servers.tasks.keep_klavis", ignore_result=True)
def keep_klavis() -> None:
    """Hand out what there is to do at the hosted MCP provider: sign-ins to ask for, instances to look at, deletions."""
    for workspace_id, instance_id in polling.due_polls():
        poll_klavis.apply_async((str(workspace_id), str(instance_id)), expires=60)
    for workspace_id, instance_id in reconciling.due_checks():
        reconciling.claim(workspace_id, instance_id)
        check_klavis.apply_async((str(workspace_id), str(instance_id)), expires=300)
    for workspace_id, removal_id in removals.due_removals():
        remove_at_klavis.apply_async(
            (str(workspace_id), str(removal_id)), expires=removals.CLAIM_SECONDS
        )


@shared_task(name="mcp_servers.tasks.poll_klavis", ignore_result=True)
def poll_klavis(workspace_id: str, instance_id: str) -> None:
    """Ask whether somebody has signed in to a hosted service by now."""
    polling.poll(UUID(workspace_id), UUID(instance_id))


@shared_task(name="mcp_servers.tasks.check_klavis", ignore_result=True)
def check_klavis(workspace_id: str, instance_id: str) -> None:
    """Ask what became of a hosted instance."""
    reconciling.check(UUID(workspace_id), UUID(instance_id))


@shared_task(name="mcp_servers.tasks.remove_at_klavis", ignore_result=True)
def remove_at_klavis(workspace_id: str, removal_id: str) -> None:
    """Try to delete at the hosted MCP provider what was deleted here."""
    removals.try_removal(UUID(workspace_id), UUID(removal_id))


@shared_task(name="mcp_servers.tasks.read_klavis_catalogues", ignore_result=True)
def read_klavis_catalogues() -> None:
    """Have what the hosted MCP provider offers each workspace read anew; a slow one delays none."""
    for workspace_id in reconciling.old_catalogues():
        read_klavis_catalogue.apply_async((str(workspace_id),), expires=3600)


@shared_task(name="mcp_servers.tasks.read_klavis_catalogue", ignore_result=True)
def read_klavis_catalogue(workspace_id: str) -> None:
    """Read anew what the hosted MCP provider offers one workspace."""
    reconciling.read_catalogue_of(UUID(workspace_id))
