"""Regular work at the hosted MCP provider."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task
from celery.schedules import crontab
from django.utils.translation import gettext_lazy as _

from mcp_servers.klavis import polling, reconciling, removals
from workspaces.process.schedules import scheduled


@shared_task(ignore_result=True)
@scheduled(15, _("Do what is due at Klavis"))
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


@shared_task(ignore_result=True)
def poll_klavis(workspace_id: str, instance_id: str) -> None:
    """Ask whether somebody has signed in to a hosted service by now."""
    polling.poll(UUID(workspace_id), UUID(instance_id))


@shared_task(ignore_result=True)
def check_klavis(workspace_id: str, instance_id: str) -> None:
    """Ask what became of a hosted instance."""
    reconciling.check(UUID(workspace_id), UUID(instance_id))


@shared_task(ignore_result=True)
def remove_at_klavis(workspace_id: str, removal_id: str) -> None:
    """Try to delete at the hosted MCP provider what was deleted here."""
    removals.try_removal(UUID(workspace_id), UUID(removal_id))


@shared_task(ignore_result=True)
@scheduled(crontab(minute=41), _("Read what Klavis offers"))
def read_klavis_catalogues() -> None:
    """Have what the hosted MCP provider offers each workspace read anew; a slow one delays none."""
    for workspace_id in reconciling.old_catalogues():
        read_klavis_catalogue.apply_async((str(workspace_id),), expires=3600)


@shared_task(ignore_result=True)
def read_klavis_catalogue(workspace_id: str) -> None:
    """Read anew what the hosted MCP provider offers one workspace."""
    reconciling.read_catalogue_of(UUID(workspace_id))
