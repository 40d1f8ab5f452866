"""The platform's servers in rows: what workspaces may know of them, and which workspace has which."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from mcp_servers.models import GlobalServer, McpServer, ServerScope, ServerStatus
from mcp_servers.models.servers import MAX_NAME_LENGTH
from mcp_servers.registry.files.platform_file import PlatformFileState, ServerDefinition, registry
from mcp_servers.registry.services.server_notices import drop_connections, tell
from mcp_servers.registry.services.servers import remove_row
from workspaces.actors import Actor, Source
from workspaces.changes import record_created, tracked_change
from workspaces.errors import Conflict
from workspaces.models import Workspace
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from mcp_servers.client.values import JsonValue

logger = logging.getLogger(__name__)

_SUFFIX: Final = " (platform)"
_UNKNOWN: Final[dict[str, Any]] = {
    "status": ServerStatus.DISCONNECTED,
    "status_reason": "",
    "consecutive_failures": 0,
    "resolved_transport": "",
    "protocol_revision": "",
    "capabilities": {},
    "latency_ms": None,
}
"""A server that nobody has looked at yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformServerOffer:
    """A server of the platform, as one workspace sees it."""

    server: GlobalServer
    row: McpServer | None
    """The workspace's own row of it, if it is switched on."""
    problem: str = ""
    """Why it cannot be used now, as this process knows the file."""

    def as_json(self) -> dict[str, JsonValue]:
        """As the REST interface shows it."""
        return {
            "id": str(self.server.pk),
            "name": self.server.name,
            "transport": self.server.transport,
            "where": self.server.target_label,
            "is_required": self.server.is_required,
            "is_on": self.row is not None,
            "server_id": str(self.row.pk) if self.row is not None else None,
            "problem": self.problem,
        }


def offers_for(workspace_id: UUID) -> list[PlatformServerOffer]:
    """Every server of the platform that the file names, and those that this workspace has switched on."""
    rows = {
        row.global_server_id: row
        for row in McpServer.objects.for_workspace(workspace_id).filter(scope=ServerScope.GLOBAL)
    }
    state = registry.state()
    return [
        PlatformServerOffer(server=known, row=rows.get(known.pk), problem=_problem(known, state))
        for known in GlobalServer.objects.all()
        if known.is_present or known.pk in rows
    ]


@transaction.atomic
def switch_on(*, workspace_id: UUID, global_server: GlobalServer, actor: Actor) -> McpServer:
    """Have a server of the platform in a workspace; it is looked at by the next check.

    Raises:
        PermissionDenied: the actor may not manage servers here.
        Conflict: the file no longer names it, or somebody was first.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    if not global_server.is_present:
        raise Conflict(_("The platform's file no longer names this server."))
    return _make_row(workspace_id, global_server, actor)


@transaction.atomic
def switch_off(*, workspace_id: UUID, global_server: GlobalServer, actor: Actor) -> None:
    """Have it no longer, with what was known of its tools.

    Raises:
        PermissionDenied: the actor may not manage servers here.
        Conflict: the platform requires it.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    row = (
        McpServer.objects.for_workspace(workspace_id)
        .filter(global_server=global_server)
        .select_related("global_server")
        .first()
    )
    if row is not None:
        remove_row(row, actor=actor)


def sync() -> None:
    """Bring the rows to what the file says. A file that cannot be read changes nothing."""
    state = registry.state()
    if state.error:
        return
    actor = Actor.system(label="mcp-servers.json", source=Source.TASK, workspace_id=None)
    known = {row.name: row for row in GlobalServer.objects.all()}
    for name, definition in state.definitions.items():
        _keep(known.get(name), definition, actor)
    for name, row in known.items():
        if name not in state.definitions and row.is_present:
            with tracked_change(row, actor=actor):
                row.is_present = False
                row.is_required = False
                row.save()
            _changed(row)
    _give_required()


def _keep(row: GlobalServer | None, definition: ServerDefinition, actor: Actor) -> None:
    values = {
        "transport": definition.entry.transport,
        "target_label": definition.target_label[:500],
        "definition_hash": definition.digest,
        "is_required": definition.entry.is_required,
        "is_present": True,
    }
    if row is None:
        try:
            with transaction.atomic():
                row = GlobalServer.objects.create(name=definition.name, **values)
                record_created(row, actor=actor)
        except IntegrityError:
            return  # another process was first
        return
    if all(getattr(row, field) == value for field, value in values.items()):
        return
    is_another = (row.definition_hash, row.transport) != (definition.digest, values["transport"])
    with tracked_change(row, actor=actor):
        for field, value in values.items():
            setattr(row, field, value)
        row.save()
    McpServer.objects.across_workspaces().filter(global_server=row).update(transport=row.transport)
    _changed(row, is_another=is_another)


def _changed(row: GlobalServer, *, is_another: bool = True) -> None:
    """Connections of before belong to another definition now; the next check looks anew.

    Args:
        is_another: what was learned of the server was learned of another one.
    """
    forgotten = _UNKNOWN if is_another else {}
    for server in McpServer.objects.across_workspaces().filter(global_server=row):
        server.state.write(next_check_at=None, **forgotten)
        tell(server)
        transaction.on_commit(partial(drop_connections, server.pk))


def _give_required() -> None:
    """Every workspace has every required server."""
    for required in GlobalServer.objects.filter(is_required=True, is_present=True):
        have = (
            McpServer.objects.across_workspaces()
            .filter(global_server=required)
            .values("workspace_id")
        )
        lacking: Iterable[Workspace] = Workspace.objects.filter(is_active=True).exclude(pk__in=have)
        for workspace in lacking:
            actor = Actor.system(
                label="mcp-servers.json", source=Source.TASK, workspace_id=workspace.pk
            )
            try:
                _make_row(workspace.pk, required, actor)
            except Conflict as error:
                # Most often another process was first; anything else has to be seen by somebody.
                logger.info(
                    "required_server_not_given",
                    extra={"workspace": str(workspace.pk), "reason": error.message},
                )


@transaction.atomic
def _make_row(workspace_id: UUID, global_server: GlobalServer, actor: Actor) -> McpServer:
    row = McpServer(
        is_used_everywhere=True,
        workspace_id=workspace_id,
        name=_free_name(workspace_id, global_server.name),
        scope=ServerScope.GLOBAL,
        global_server=global_server,
        transport=global_server.transport,
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(_("This server is switched on already.")) from error
    record_created(row, actor=actor)
    tell(row)
    return row


def _free_name(workspace_id: UUID, name: str) -> str:
    """The file's name for it, or one beside it if the workspace has used that name itself.

    Raises:
        Conflict: every such name is taken.
    """
    shared = McpServer.objects.for_workspace(workspace_id).shared()
    taken = set(shared.values_list("name", flat=True))
    # One more than there are names that could be in the way.
    numbered = (f" (platform {number})" for number in range(2, len(taken) + 3))
    for suffix in ("", _SUFFIX, *numbered):
        candidate = name[: MAX_NAME_LENGTH - len(suffix)] + suffix
        if candidate not in taken:
            return candidate
    logger.error("platform_server_has_no_name", extra={"workspace": str(workspace_id)})
    raise Conflict(_("All names for this server are taken here. Rename another server first."))


def _problem(known: GlobalServer, state: PlatformFileState) -> str:
    if not known.is_present:
        return _("The platform's file no longer names it.")
    definition = state.definitions.get(known.name)
    if definition is None:
        return _("The platform's file cannot be read here, or does not name it.")
    return definition.problem
