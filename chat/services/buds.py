"""What an admin does with buds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction

from chat.missing_tools import find_faults
from chat.models import Bud, ModelProvider
from mcp_servers.models import McpServer
from workspaces.actors import Actor
from workspaces.announcements import Announcement, announce
from workspaces.changes import record_created, tracked_change
from workspaces.errors import InvalidInput
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

FIELDS = (
    "slug",
    "name",
    "description",
    "avatar",
    "system_prompt",
    "model",
    "parameters",
    "starter_prompts",
    "mcp_config",
    "tool_protocol",
    "makes_artifacts",
    "takes_all_tools",
    "is_model_fixed",
    "is_archived",
)


@transaction.atomic
def create_bud(
    *, workspace_id: UUID, actor: Actor, values: dict[str, Any], provider_id: UUID | None = None
) -> Bud:
    """Make a bud out of checked values (those of FIELDS). It takes all tools, unless the values say otherwise.

    Raises:
        InvalidInput: a value does not fit, or names a server or provider that is not of here.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=workspace_id)
    bud = Bud(workspace_id=workspace_id, takes_all_tools=True)
    _assign(bud, values, provider_id)
    bud.save(force_insert=True)
    record_created(bud, actor=actor)
    _announce(bud)
    return bud


@transaction.atomic
def update_bud(
    *,
    bud: Bud,
    actor: Actor,
    values: dict[str, Any],
    provider_id: UUID | None = None,
    has_provider: bool = False,
) -> Bud:
    """Change a bud; `has_provider` says whether `provider_id` is meant to be set.

    Raises:
        InvalidInput: as in `create_bud`.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=bud.workspace_id)
    with tracked_change(bud, actor=actor):
        _assign(bud, values, provider_id if has_provider else bud.provider_id)
        bud.save()
    _announce(bud)
    return bud


@transaction.atomic
def put_server_into_buds(*, server: McpServer, bud_ids: Iterable[UUID], actor: Actor) -> None:
    """Have these buds use a server of their workspace, besides those that they use already.

    Raises:
        InvalidInput: there is no such bud here.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=server.workspace_id)
    wanted = set(bud_ids)
    rows = Bud.objects.for_workspace(server.workspace_id).filter(pk__in=wanted, is_archived=False)
    buds = list(rows.select_for_update(of=("self",)))
    if len(buds) != len(wanted):
        raise InvalidInput(fields={"bud_ids": ["A bud named here is not in this workspace."]})
    for bud in buds:
        if server.pk in bud.mcp.servers:
            continue
        named = [*(bud.mcp_config.get("servers") or []), str(server.pk)]
        with tracked_change(bud, actor=actor):
            bud.mcp_config = {**bud.mcp_config, "servers": named}
            bud.save(update_fields=["mcp_config", "updated_at"])
        _announce(bud)


def offered_servers(workspace_id: UUID) -> WorkspaceQuerySet[McpServer]:
    """The servers that a bud may name: a person's own are nobody else's to hand out."""
    return McpServer.objects.for_workspace(workspace_id).shared()


def check_bud(
    *, workspace_id: UUID, values: dict[str, Any], provider_id: UUID | None, bud: Bud | None = None
) -> None:
    """See whether values would be taken, without saving anything.

    Raises:
        InvalidInput: as in `create_bud`.
    """
    rows = Bud.objects.for_workspace(workspace_id)
    _assign(rows.fetch(bud.pk) if bud else Bud(workspace_id=workspace_id), values, provider_id)


def _assign(bud: Bud, values: dict[str, Any], provider_id: UUID | None) -> None:
    for name in FIELDS:
        if name in values:
            setattr(bud, name, values[name])
    if provider_id is not None:
        providers = ModelProvider.objects.for_workspace(bud.workspace_id)
        if providers.find(provider_id) is None:
            raise InvalidInput(fields={"provider_id": ["There is no such provider here."]})
    bud.provider_id = provider_id
    try:
        bud.full_clean(exclude=["workspace"])
        bud.validate_constraints()
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error
    if "mcp_config" not in values:
        return  # a bud that has lost a tool can still be renamed or archived
    check_servers(bud.mcp.servers, offered_servers(bud.workspace_id), field="mcp_config")
    if faults := find_faults(bud):
        raise InvalidInput(fields={"mcp_config": faults})


def check_servers(
    servers: Iterable[UUID], known: WorkspaceQuerySet[McpServer], *, field: str
) -> None:
    """Raise InvalidInput for servers that are not among the known ones."""
    wanted = set(servers)
    if len(wanted) != known.filter(pk__in=wanted).count():
        raise InvalidInput(fields={field: ["A server named here is not in this workspace."]})


def _announce(bud: Bud) -> None:
    announce(bud.workspace_id, Announcement(kind="bud.changed", id=str(bud.pk)))
