"""Adding, changing and deleting servers. Each function asks permission, owns the transaction, the record and the news."""

from __future__ import annotations

import shutil
from functools import partial
from uuid import UUID

from django.db import IntegrityError, transaction

from mcp_servers.models import McpServer, ServerStatus
from mcp_servers.services.drafts import ServerDraft, apply_draft, check_auth, target_of
from mcp_servers.services.news import drop_connections, tell
from mcp_servers.specs import home_of
from workspaces.actors import Actor
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import InvalidInput
from workspaces.roles import Permission, require


@transaction.atomic
def add_server(*, workspace_id: UUID, draft: ServerDraft, actor: Actor) -> McpServer:
    """Add a server; it is looked at afterwards, by test_connection() or the next check.

    Raises:
        PermissionDenied: the actor may not manage servers here.
        InvalidInput: names the fields that are wrong.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    server = McpServer(workspace_id=workspace_id)
    apply_draft(server, draft)
    server.check_values()
    check_auth(server)
    try:
        with transaction.atomic():
            server.save(force_insert=True)
    except IntegrityError as error:
        raise InvalidInput(fields={"name": ["There is a server of this name already."]}) from error
    record_created(server, actor=actor)
    tell(server)
    return server


def check_draft(*, workspace_id: UUID, draft: ServerDraft, server: McpServer | None = None) -> None:
    """See whether a draft would be taken, without saving anything.

    Raises:
        InvalidInput: names the fields that are wrong.
    """
    rows = McpServer.objects.for_workspace(workspace_id)
    row = rows.fetch(server.pk) if server is not None else McpServer(workspace_id=workspace_id)
    lost = apply_draft(row, draft)
    row.check_values()
    if not lost:
        check_auth(row)
    if rows.filter(name=row.name).exclude(pk=row.pk).exists():
        raise InvalidInput(fields={"name": ["There is a server of this name already."]})


@transaction.atomic
def update_server(*, server: McpServer, draft: ServerDraft, actor: Actor) -> McpServer:
    """Change a server. One that points elsewhere afterwards loses the credentials that are not given anew.

    Raises:
        PermissionDenied, InvalidInput: as add_server().
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=server.workspace_id)
    server = (
        McpServer.objects.for_workspace(server.workspace_id).select_for_update().fetch(server.pk)
    )
    target = target_of(server)
    with tracked_change(server, actor=actor):
        was_active = server.is_active
        lost = apply_draft(server, draft)
        server.check_values()
        if target_of(server) != target:
            server.status = ServerStatus.AUTH_REQUIRED if lost else ServerStatus.DISCONNECTED
            server.status_reason = (
                "The address changed, so the stored credentials were dropped. Please enter them again."
                if lost
                else ""
            )
            server.next_check_at = None
            server.consecutive_failures = 0
        else:
            check_auth(server)
        if was_active and not server.is_active:
            server.status = ServerStatus.DISCONNECTED
            server.status_reason = ""
        elif server.is_active and not was_active:
            server.next_check_at = None
        try:
            with transaction.atomic():
                server.save()
        except IntegrityError as error:
            raise InvalidInput(
                fields={"name": ["There is a server of this name already."]}
            ) from error
    tell(server)
    transaction.on_commit(partial(drop_connections, server.pk))
    return server


@transaction.atomic
def delete_server(*, server: McpServer, actor: Actor) -> None:
    """Delete a server with its tools; running calls of it end. What it did stays in the audit log."""
    require(actor, Permission.MANAGE_SERVERS, workspace_id=server.workspace_id)
    server_id = server.pk
    record_deleted(server, actor=actor)
    tell(server)
    server.delete()
    transaction.on_commit(partial(drop_connections, server_id))
    transaction.on_commit(partial(shutil.rmtree, home_of(server_id), ignore_errors=True))


def set_server_active(*, server: McpServer, is_active: bool, actor: Actor) -> McpServer:
    """Switch a server on or off; off, its connections close and its tools are no longer offered."""
    return update_server(server=server, draft=ServerDraft(is_active=is_active), actor=actor)
