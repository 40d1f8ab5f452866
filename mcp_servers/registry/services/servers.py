"""Adding, changing and deleting servers. Each function asks permission, owns the transaction, the record and the news."""

from __future__ import annotations

import shutil
from functools import partial
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from audit.reviews.renames import follow_server
from mcp_servers.client import transports
from mcp_servers.models import McpServer, ServerScope, ServerState, ServerStatus
from mcp_servers.oauth.grants import sign_in_of
from mcp_servers.oauth.revoking import remove_grants_of_server
from mcp_servers.registry.bud_choices import give_to_buds
from mcp_servers.registry.elicitation import withdraw_inputs_of, withdraw_sign_ins
from mcp_servers.registry.rights import require_to_dismiss, require_to_manage, require_to_own
from mcp_servers.registry.services.call_rules import follow_new_name
from mcp_servers.registry.services.credentials import auth_of, check_auth
from mcp_servers.registry.services.drafts import ServerDraft, apply_draft, target_of
from mcp_servers.registry.services.server_notices import drop_connections, tell
from mcp_servers.registry.specs import home_of
from workspaces.actors import Actor
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.holding import take_room
from workspaces.models import User, Workspace
from workspaces.redaction import MASK
from workspaces.roles import Permission, require

MAX_PERSONAL_SERVERS = 20
"""Of one person in one workspace."""


@transaction.atomic
def add_server(*, workspace_id: UUID, draft: ServerDraft, actor: Actor) -> McpServer:
    """Add a server of the workspace; it is looked at afterwards, by test_connection() or the next check.

    Raises:
        PermissionDenied: the actor may not manage servers here.
        InvalidInput: names the fields that are wrong.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    return _add(McpServer(workspace_id=workspace_id), draft, actor)


@transaction.atomic
def add_personal_server(*, workspace: Workspace, draft: ServerDraft, actor: Actor) -> McpServer:
    """Add a server that only the actor sees and uses. It is always a remote one: which program runs is the owner's word.

    Raises:
        PermissionDenied: the workspace allows no servers of people's own.
        InvalidInput: names the fields that are wrong.
        Conflict: the person has as many as one may have.
    """
    require_to_own(actor, workspace)
    refuse_program(draft)
    message = _("One person may have %(most)s servers of their own.")
    take_room(
        McpServer.objects.for_workspace(workspace).filter(owner_id=actor.user_id),
        most=MAX_PERSONAL_SERVERS,
        refusal=Conflict(message % {"most": MAX_PERSONAL_SERVERS}),
        workspace_id=workspace.pk,
        person_id=actor.user_id,
    )
    return _add(personal_row(workspace, actor), draft, actor)


def personal_row(workspace: Workspace, actor: Actor) -> McpServer:
    """A new row of somebody's own server, not saved."""
    assert actor.user_id is not None
    owner = User.objects.get(pk=actor.user_id)
    return McpServer(workspace=workspace, scope=ServerScope.PERSONAL, owner=owner)


def refuse_program(draft: ServerDraft) -> None:
    """People's own servers are remote.

    Raises:
        InvalidInput: the draft wants a program.
    """
    if draft.transport == transports.STDIO or draft.program is not None:
        raise InvalidInput(
            fields={
                "transport": [
                    _("A personal server needs a URL. Only administrators can add programs.")
                ]
            }
        )


def _add(server: McpServer, draft: ServerDraft, actor: Actor) -> McpServer:
    server.is_used_everywhere = True
    apply_draft(server, draft)
    server.check_values()
    check_auth(server)
    try:
        with transaction.atomic():
            server.save(force_insert=True)
    except IntegrityError as error:
        raise InvalidInput(
            fields={"name": [_("There is a server of this name already.")]}
        ) from error
    record_created(server, actor=actor)
    _give_to_buds(server, draft, actor)
    tell(server)
    return server


def _give_to_buds(server: McpServer, draft: ServerDraft, actor: Actor) -> None:
    if draft.bud_ids and server.owner_id is not None:
        raise InvalidInput(fields={"bud_ids": [_("Buds can't use personal servers.")]})
    if draft.bud_ids:
        give_to_buds(server, draft.bud_ids, actor)


def check_draft(*, workspace_id: UUID, draft: ServerDraft, server: McpServer | None = None) -> None:
    """See whether a draft would be taken, without saving anything.

    Raises:
        InvalidInput: names the fields that are wrong.
    """
    rows = McpServer.objects.for_workspace(workspace_id)
    row = rows.fetch(server.pk) if server is not None else McpServer(workspace_id=workspace_id)
    auth = auth_of(row)
    lost = apply_draft(row, draft)
    row.check_values()
    if not lost and (server is None or _touches_auth(row, draft, auth)):
        check_auth(row, may_lack=server is not None and _lost_credentials(row))
    refuse_taken_name(workspace_id=workspace_id, name=row.name, owner_id=row.owner_id, but=row.pk)


def refuse_taken_name(
    *, workspace_id: UUID, name: str, owner_id: UUID | None = None, but: UUID | None = None
) -> None:
    """Raise InvalidInput where another server than that one has the name, among those of this owner."""
    named = McpServer.objects.for_workspace(workspace_id).filter(name=name, owner_id=owner_id)
    if (named if but is None else named.exclude(pk=but)).exists():
        raise InvalidInput(fields={"name": [_("There is a server of this name already.")]})


@transaction.atomic
def update_server(*, server: McpServer, draft: ServerDraft, actor: Actor) -> McpServer:
    """Change a server. One that points elsewhere afterwards loses the credentials that are not given anew.

    Raises:
        PermissionDenied, InvalidInput: as add_server().
        Conflict: it is to be switched off, and the platform requires it.
    """
    require_to_manage(actor, server)
    if server.owner_id is not None:
        refuse_program(draft)
    return _update(server, draft, actor)


def _update(server: McpServer, draft: ServerDraft, actor: Actor) -> McpServer:
    server = _locked(server)
    _check_switch(server, draft)
    target, transport, name = target_of(server), server.transport, server.name
    way = _way_to(server)
    state: dict[str, object] = {}
    with tracked_change(server, actor=actor):
        was_active, auth, signs_in = server.is_active, auth_of(server), sign_in_of(server)
        lost = apply_draft(server, draft)
        server.check_values()
        if target_of(server) != target:
            state["status"] = ServerStatus.AUTH_REQUIRED if lost else ServerStatus.DISCONNECTED
            state["status_reason"] = (
                "The address changed, so the stored credentials were dropped. Please enter them again."
                if lost
                else ""
            )
            state |= {"consecutive_failures": 0, "resolved_transport": ""}
        elif _touches_auth(server, draft, auth):
            check_auth(server, may_lack=_lost_credentials(server))
        if _way_to(server) != way or _brings_secrets(draft):
            state["next_check_at"] = None  # nobody should have to wait to see whether it works
            if _says_what_was_wrong(server):
                # Until then nobody knows. Who has just entered a key takes the old refusal for an answer to it.
                state.setdefault("status", ServerStatus.CONNECTING)
                state.setdefault("status_reason", "")
        if server.transport != transport:
            state["resolved_transport"] = ""
        if was_active and not server.is_active:
            state |= {"status": ServerStatus.DISCONNECTED, "status_reason": ""}
        elif server.is_active and not was_active:
            state["next_check_at"] = None
        try:
            with transaction.atomic():
                server.save()
        except IntegrityError as error:
            raise InvalidInput(
                fields={"name": [_("There is a server of this name already.")]}
            ) from error
    if server.name != name and server.owner_id is None:
        for follow in (follow_new_name, follow_server):
            follow(workspace_id=server.workspace_id, before=name, after=server.name, actor=actor)
    server.state.write(**state)
    if signs_in is not None and sign_in_of(server) != signs_in:
        remove_grants_of_server(server, actor, why="The server's address or its sign-in changed.")
        withdraw_sign_ins(server, actor)
    if was_active and not server.is_active:
        withdraw_inputs_of(server, actor)
    _give_to_buds(server, draft, actor)
    tell(server)
    transaction.on_commit(partial(drop_connections, server.pk))
    return server


@transaction.atomic
def delete_server(*, server: McpServer, actor: Actor) -> None:
    """Delete a server with its tools; running calls of it end. What it did stays in the audit log.

    Raises:
        PermissionDenied: it is neither the actor's own nor one of a workspace whose servers they manage.
        Conflict: the platform requires it.
    """
    require_to_dismiss(actor, server)
    remove_row(server, actor=actor)


def remove_row(server: McpServer, *, actor: Actor) -> None:
    """Delete a server whose deletion somebody was allowed.

    Raises:
        NotFound: it is deleted already.
        Conflict: the platform requires it.
    """
    # First, as whoever signs in, is asked or looks: nobody waits in a circle.
    server = _locked(server)
    states = ServerState.objects.for_workspace(server.workspace_id).select_for_update(no_key=True)
    states.find(server.pk)
    if _is_required(server):
        raise Conflict(_("The platform requires this server in every workspace."))
    server_id = server.pk
    remove_grants_of_server(server, actor, why="The server was deleted.")
    withdraw_inputs_of(server, actor)
    record_deleted(server, actor=actor)
    tell(server)
    server.delete()
    transaction.on_commit(partial(drop_connections, server_id))
    transaction.on_commit(partial(shutil.rmtree, home_of(server_id), ignore_errors=True))


@transaction.atomic
def set_server_active(*, server: McpServer, is_active: bool, actor: Actor) -> McpServer:
    """Switch a server on or off; off, its connections close and its tools are no longer offered.

    An administrator may switch off what belongs to somebody else; then only an administrator lets it on again.

    Raises:
        PermissionDenied: the actor may not, or an administrator switched the actor's own server off.
        Conflict: the platform requires it.
    """
    is_somebodys = server.owner_id is not None and server.owner_id != actor.user_id
    if not is_somebodys:
        return update_server(server=server, draft=ServerDraft(is_active=is_active), actor=actor)
    require_to_dismiss(actor, server)
    server = _locked(server)
    with tracked_change(server, actor=actor):
        server.is_blocked = not is_active
        server.save(update_fields=["is_blocked", "updated_at"])
    return _update(server, ServerDraft(is_active=is_active), actor)


def _way_to(server: McpServer) -> tuple[object, ...]:
    """How a server is reached, without anything secret."""
    return (
        *(server.url, server.transport, server.protocol, server.auth_type),
        *(server.program_id, server.parameters),
    )


def _says_what_was_wrong(server: McpServer) -> bool:
    """Whether its state is a failure that another way or other secrets may have mended. A sign-in is no secret."""
    status = server.state.status
    is_locked = status == ServerStatus.AUTH_REQUIRED and not server.waits_for_people
    return server.is_active and (is_locked or status == ServerStatus.ERROR)


def _brings_secrets(draft: ServerDraft) -> bool:
    """Whether somebody entered secrets, which may be the stored ones once more."""
    given = (draft.auth, draft.headers, draft.env)
    return any(value != MASK for one in given if one for value in one.values())


def _touches_auth(server: McpServer, draft: ServerDraft, before: tuple[object, ...]) -> bool:
    """Whether the credentials have to be whole now; one that lacks them can always be renamed or switched off."""
    if draft.auth:
        return True
    is_switched_off_only = not server.is_active and auth_of(server)[:-1] == before[:-1]
    return auth_of(server) != before and not is_switched_off_only


def _lost_credentials(server: McpServer) -> bool:
    """Whether they were dropped earlier, and nobody has entered them again."""
    return server.state.status == ServerStatus.AUTH_REQUIRED and not server.auth_config


def _check_switch(server: McpServer, draft: ServerDraft) -> None:
    if draft.is_active is False and _is_required(server):
        raise Conflict(_("The platform requires this server in every workspace."))
    if draft.is_active and server.is_blocked:
        raise PermissionDenied(_("An administrator of the workspace has switched this server off."))


def _is_required(server: McpServer) -> bool:
    known = server.global_server
    return known is not None and known.is_required and known.is_present


def _locked(server: McpServer) -> McpServer:
    rows = McpServer.objects.for_workspace(server.workspace_id)
    locked = rows.select_for_update(of=("self",), no_key=True)
    return locked.select_related("global_server").fetch(server.pk)
