"""What people do with servers and tools: one function for each.

Each asks permission, owns the transaction, the record and the news. Functions that talk to a server do so outside of
any transaction.
"""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import IntegrityError, close_old_connections, transaction
from django.utils import timezone

from mcp_servers import catalogue, discovery, health, outbound
from mcp_servers.connection_config import ConnectionConfig
from mcp_servers.connections.hooks import hooks
from mcp_servers.errors import AuthenticationRequired, ConnectionFailed, InvalidEndpoint
from mcp_servers.models import (
    ApprovalOverride,
    McpServer,
    McpTool,
    ServerStatus,
    StdioProgram,
    Transport,
)
from mcp_servers.models.servers import MAX_NAME_LENGTH, AuthType
from mcp_servers.specs import connection_spec, home_of
from mcp_servers.values import Protocol
from workspaces.actors import Actor, Source
from workspaces.announcements import Announcement, announce
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import Conflict, DomainError, InvalidInput
from workspaces.redaction import MASK, redact_text
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from mcp_servers.connections.pool import Listing
    from mcp_servers.connections.spec import ConnectionSpec
    from mcp_servers.demo.programs import ProgramSeed

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 75.0
"""Longest look at a server that somebody waits for: connect and list."""

_MAX_SECRET_LENGTH: Final = 8192
_AUTH_FIELDS: Final = {
    AuthType.NONE: (),
    AuthType.BEARER: ("token",),
    AuthType.API_KEY: ("header", "value"),
    AuthType.BASIC: ("username", "password"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDraft:
    """A server as somebody wants it. In updates, None leaves a field as it is.

    Of `headers`, `env` and `auth`, the mask as a value keeps what is stored under that name.
    """

    name: str | None = None
    transport: Transport | None = None
    protocol: Protocol | None = None
    url: str | None = None
    program: StdioProgram | None = None
    parameters: Mapping[str, object] | None = None
    headers: Mapping[str, str] | None = None
    env: Mapping[str, str] | None = None
    auth_type: AuthType | None = None
    auth: Mapping[str, str] | None = None
    """bearer: token; api_key: header, value; basic: username, password."""
    connection_config: Mapping[str, object] | None = None
    is_active: bool | None = None
    trusts_annotations: bool | None = None
    allows_new_tools: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionReport:
    """What came of a look at a server, for the person who asked."""

    ok: bool
    message: str
    status: ServerStatus
    protocol_revision: str = ""
    server_name: str = ""
    latency_ms: int | None = None
    tool_count: int | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    """Name, title and annotations of each tool, as the server says."""
    details: str = ""
    """The end of what a program wrote to its error stream."""


# Servers


@transaction.atomic
def add_server(*, workspace_id: UUID, draft: ServerDraft, actor: Actor) -> McpServer:
    """Add a server; it is looked at afterwards, by test_connection() or the next check.

    Raises:
        PermissionDenied: the actor may not manage servers here.
        InvalidInput: names the fields that are wrong.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    server = McpServer(workspace_id=workspace_id)
    _apply(server, draft)
    server.check_values()
    _check_auth(server)
    try:
        with transaction.atomic():
            server.save(force_insert=True)
    except IntegrityError as error:
        raise InvalidInput(fields={"name": ["There is a server of this name already."]}) from error
    record_created(server, actor=actor)
    _tell(server)
    return server


def check_draft(*, workspace_id: UUID, draft: ServerDraft, server: McpServer | None = None) -> None:
    """See whether a draft would be taken, without saving anything.

    Raises:
        InvalidInput: names the fields that are wrong.
    """
    rows = McpServer.objects.for_workspace(workspace_id)
    row = rows.fetch(server.pk) if server is not None else McpServer(workspace_id=workspace_id)
    lost = _apply(row, draft)
    row.check_values()
    if not lost:
        _check_auth(row)
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
    target = _target_of(server)
    with tracked_change(server, actor=actor):
        was_active = server.is_active
        lost = _apply(server, draft)
        server.check_values()
        if _target_of(server) != target:
            server.status = ServerStatus.AUTH_REQUIRED if lost else ServerStatus.DISCONNECTED
            server.status_reason = (
                "The address changed, so the stored credentials were dropped. Please enter them again."
                if lost
                else ""
            )
            server.next_check_at = None
            server.consecutive_failures = 0
        else:
            _check_auth(server)
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
    _tell(server)
    transaction.on_commit(partial(_drop_connections, server.pk))
    return server


@transaction.atomic
def delete_server(*, server: McpServer, actor: Actor) -> None:
    """Delete a server with its tools; running calls of it end. What it did stays in the audit log."""
    require(actor, Permission.MANAGE_SERVERS, workspace_id=server.workspace_id)
    server_id = server.pk
    record_deleted(server, actor=actor)
    _tell(server)
    server.delete()
    transaction.on_commit(partial(_drop_connections, server_id))
    transaction.on_commit(partial(shutil.rmtree, home_of(server_id), ignore_errors=True))


def set_server_active(*, server: McpServer, is_active: bool, actor: Actor) -> McpServer:
    """Switch a server on or off; off, its connections close and its tools are no longer offered."""
    return update_server(server=server, draft=ServerDraft(is_active=is_active), actor=actor)


# Looking at servers


def test_connection(*, server: McpServer, actor: Actor) -> ConnectionReport:
    """Connect anew, list the tools, and keep what comes out: status, check, tools.

    Raises:
        PermissionDenied: the actor may not manage servers here.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=server.workspace_id)
    return _look(server, actor=actor, is_asked_for=True)


test_connection.__test__ = False  # type: ignore[attr-defined]  # pytest takes functions of this name for tests


def refresh_tools(*, server: McpServer, actor: Actor) -> ConnectionReport:
    """Read the tool list again over the open connection, and keep it."""
    require(actor, Permission.MANAGE_SERVERS, workspace_id=server.workspace_id)
    return _look(server, actor=actor, is_asked_for=True, anew=False)


def try_connection(*, workspace_id: UUID, draft: ServerDraft, actor: Actor) -> ConnectionReport:
    """Connect to a server that is not saved, and keep nothing.

    Raises:
        PermissionDenied, InvalidInput: as add_server().
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    server = McpServer(workspace_id=workspace_id)
    _apply(server, draft)
    server.check_values()
    _check_auth(server)
    try:
        spec = connection_spec(server)
        listing = _list_tools(spec, anew=False)
    except ConnectionFailed as error:
        return _report_failure(error, "")
    finally:
        _drop_connections(server.pk)
        shutil.rmtree(home_of(server.pk), ignore_errors=True)
    return _report(listing)


def check_server(*, server: McpServer) -> None:
    """The regular check: connect if need be, read the tool list, keep what comes out. Never calls a tool."""
    actor = Actor.system(label="health", source=Source.TASK, workspace_id=server.workspace_id)
    _look(server, actor=actor, is_asked_for=False, anew=False)


def _look(
    server: McpServer, *, actor: Actor, is_asked_for: bool, anew: bool = True
) -> ConnectionReport:
    server = (
        McpServer.objects.for_workspace(server.workspace_id)
        .select_related("program")
        .fetch(server.pk)
    )
    if not server.is_active:
        return ConnectionReport(
            ok=False, message="This server is switched off.", status=ServerStatus.DISCONNECTED
        )
    stderr = ""
    try:
        spec = connection_spec(server)
        try:
            listing = _list_tools(spec, anew=anew)
        finally:
            stderr = _stderr_of(spec)
    except ConnectionFailed as error:
        health.note_reading(
            server,
            health.Reading(error=error, details=stderr),
            actor=actor,
            is_asked_for=is_asked_for,
        )
        return _report_failure(error, stderr)
    except DomainError as error:
        # The row is not whole: a key is gone, or the catalogue changed under it.
        failure = ConnectionFailed(error.message)
        health.note_reading(
            server, health.Reading(error=failure), actor=actor, is_asked_for=is_asked_for
        )
        return _report_failure(failure, "")
    _keep_facts(server, listing)
    result = discovery.store_tools(server=server, raw_tools=listing.tools, actor=actor)
    if result.has_news:
        announce(server.workspace_id, Announcement(kind="tools.changed", id=str(server.pk)))
    health.note_reading(
        server,
        health.Reading(latency_ms=listing.latency_ms),
        actor=actor,
        is_asked_for=is_asked_for,
    )
    return _report(listing)


def _keep_facts(server: McpServer, listing: Listing) -> None:
    facts = listing.facts
    server.server_info = {"name": facts.name[:200], "version": facts.version[:100]}
    server.protocol_revision = facts.protocol_revision[:20]
    server.capabilities = facts.capabilities
    server.instructions = facts.instructions[:20_000]
    server.tools_listed_at = timezone.now()
    server.save(
        update_fields=[
            "server_info",
            "protocol_revision",
            "capabilities",
            "instructions",
            "tools_listed_at",
        ]
    )


def _list_tools(spec: ConnectionSpec, *, anew: bool) -> Listing:
    # Late: the SDK takes a second to import, and most commands never connect.
    from mcp_servers.connections import runtime
    from mcp_servers.connections.pool import pool

    async def look() -> Listing:
        if anew:
            await pool.drop(spec.server_id)
        return await pool.list_tools(spec, at_once=True)

    try:
        return runtime.run_sync(look(), LOOK_SECONDS)
    except TimeoutError as error:
        raise ConnectionFailed("The server did not answer in time.") from error


def _stderr_of(spec: ConnectionSpec) -> str:
    from mcp_servers.connections.pool import pool

    return pool.stderr_of(spec)


def _report(listing: Listing) -> ConnectionReport:
    facts = listing.facts
    return ConnectionReport(
        ok=True,
        message=listing.warning,
        status=ServerStatus.CONNECTED,
        protocol_revision=facts.protocol_revision,
        server_name=f"{facts.name} {facts.version}".strip(),
        latency_ms=listing.latency_ms,
        tool_count=len(listing.tools),
        tools=listing.tools,
    )


def _report_failure(error: ConnectionFailed, stderr: str) -> ConnectionReport:
    is_auth = isinstance(error, AuthenticationRequired)
    return ConnectionReport(
        ok=False,
        message=error.message,
        status=ServerStatus.AUTH_REQUIRED if is_auth else ServerStatus.ERROR,
        details=redact_text(stderr),
    )


# Tools


@transaction.atomic
def set_tool_enabled(*, tool: McpTool, is_enabled: bool, actor: Actor) -> McpTool:
    """Offer a tool or stop offering it; a call that already runs may finish."""
    return _change_tool(tool, actor, is_enabled=is_enabled)


@transaction.atomic
def set_approval_override(*, tool: McpTool, override: ApprovalOverride, actor: Actor) -> McpTool:
    """Say for one tool whether it runs by itself, asks first, or is blocked."""
    return _change_tool(tool, actor, approval_override=override)


@transaction.atomic
def accept_definition(*, tool: McpTool, actor: Actor, seen_hash: str | None = None) -> McpTool:
    """Accept a tool's present definition, so that it may be used.

    Args:
        seen_hash: the definition that the person looked at.

    Raises:
        Conflict: it is another one by now.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=tool.workspace_id)
    tool = McpTool.objects.for_workspace(tool.workspace_id).select_for_update().fetch(tool.pk)
    if seen_hash is not None and seen_hash != tool.definition_hash:
        raise Conflict("The definition has changed again. Please look at it once more.")
    with tracked_change(tool, actor=actor):
        discovery.accept(tool)
        tool.save(update_fields=["approved_hash", "approved_definition", "updated_at"])
    announce(tool.workspace_id, Announcement(kind="tools.changed", id=str(tool.server_id)))
    return tool


def _change_tool(tool: McpTool, actor: Actor, **values: Any) -> McpTool:
    require(actor, Permission.MANAGE_SERVERS, workspace_id=tool.workspace_id)
    tool = McpTool.objects.for_workspace(tool.workspace_id).select_for_update().fetch(tool.pk)
    with tracked_change(tool, actor=actor):
        for name, value in values.items():
            setattr(tool, name, value)
        tool.save(update_fields=[*values, "updated_at"])
    announce(tool.workspace_id, Announcement(kind="tools.changed", id=str(tool.server_id)))
    return tool


# The platform's catalogue


@transaction.atomic
def ensure_program(*, seed: ProgramSeed, actor: Actor) -> StdioProgram:
    """Make or update a catalogue entry that comes with the platform.

    Raises:
        PermissionDenied: only the platform itself or its owner may.
    """
    require(actor, Permission.MANAGE_CATALOGUE, workspace_id=None)
    program = StdioProgram.objects.filter(slug=seed.slug).first()
    values: dict[str, Any] = {
        "title": seed.title,
        "description": seed.description,
        "command": seed.command,
        "args": list(seed.args),
        "parameters": [dict(parameter) for parameter in seed.parameters],
    }
    if program is None:
        program = StdioProgram(slug=seed.slug, **values)
        program.full_clean()
        program.save()
        record_created(program, actor=actor)
        return program
    with tracked_change(program, actor=actor):
        for name, value in values.items():
            setattr(program, name, value)
        program.full_clean()
        program.save()
    return program


# What servers say by themselves


def listen_to_servers() -> None:
    """Have tool lists read again when servers say that they changed. Called once at start."""
    hooks.tools_changed = _tools_changed


def _tools_changed(server_id: UUID) -> None:
    from mcp_servers.tasks import hand_out_check

    close_old_connections()
    try:
        server = McpServer.objects.across_workspaces().find(server_id)
        if server is not None:
            health.ask_for_check(server)
            hand_out_check(server.workspace_id, server.pk)
    finally:
        close_old_connections()


def _drop_connections(server_id: UUID) -> None:
    if "mcp_servers.connections.pool" not in sys.modules:
        return  # nothing was ever connected in this process
    from mcp_servers.connections import runtime
    from mcp_servers.connections.pool import pool

    runtime.current().submit(pool.drop(server_id))


# Drafts


def _apply(server: McpServer, draft: ServerDraft) -> bool:
    """Put a draft's values into a row; True if stored credentials were dropped because it points elsewhere now."""
    target = _target_of(server)
    if draft.name is not None:
        server.name = _name(draft.name)
    for field in ("is_active", "trusts_annotations", "allows_new_tools"):
        value = getattr(draft, field)
        if value is not None:
            setattr(server, field, value)
    if draft.transport is not None:
        server.transport = draft.transport
    if draft.protocol is not None:
        server.protocol = draft.protocol.value
    if draft.connection_config is not None:
        server.connection_config = ConnectionConfig.read(dict(draft.connection_config)).as_json()
    _apply_target(server, draft)
    lost = _target_of(server) != target and bool(server.headers or server.env or server.auth_config)
    if lost:
        server.headers = server.env = server.auth_config = None
    _apply_secrets(server, draft)
    return lost and not (server.headers or server.env or server.auth_config)


def _apply_target(server: McpServer, draft: ServerDraft) -> None:
    if server.transport == Transport.STDIO:
        server.url = ""
        if draft.program is not None:
            if not draft.program.is_enabled and draft.program.pk != server.program_id:
                raise InvalidInput(fields={"program": ["This program is not on offer."]})
            server.program = draft.program
        if draft.url:
            raise InvalidInput(fields={"url": ["A program has no URL."]})
        if server.program is not None:
            values = draft.parameters if draft.parameters is not None else server.parameters
            server.parameters = catalogue.check_values(server.program.typed_parameters(), values)
        return
    if draft.program is not None or draft.parameters:
        raise InvalidInput(fields={"program": ["Only a server that is a program has one."]})
    server.program, server.parameters = None, {}
    if draft.url is not None:
        try:
            server.url = str(outbound.parse_endpoint(draft.url.strip()))
        except InvalidEndpoint as error:
            raise InvalidInput(fields={"url": [error.message]}) from error


def _apply_secrets(server: McpServer, draft: ServerDraft) -> None:
    if draft.headers is not None:
        headers = _merge(server.headers, draft.headers, "headers")
        try:
            outbound.check_headers(headers)
        except InvalidEndpoint as error:
            raise InvalidInput(fields={"headers": [error.message]}) from error
        server.headers = headers
    if draft.env is not None:
        env = _merge(server.env, draft.env, "env")
        allowed = set(server.program.env_names) if server.program is not None else set()
        if set(env) - allowed:
            raise InvalidInput(fields={"env": ["This program takes no such variable."]})
        if any("\0" in value for value in env.values()):
            raise InvalidInput(fields={"env": ["A value holds a NUL."]})
        server.env = env
    if draft.auth_type is not None and draft.auth_type != server.auth_type:
        server.auth_type = draft.auth_type
        server.auth_config = None
    if draft.auth is not None:
        server.auth_config = _auth(
            AuthType(server.auth_type), _merge(server.auth_config, draft.auth, "auth")
        )


def _merge(stored: Any, given: Mapping[str, str], field: str) -> dict[str, str]:
    """The given values; where one is the mask, what is stored under that name."""
    kept = stored.reveal_json("keeping credentials that were not changed") if stored else {}
    merged: dict[str, str] = {}
    for name, value in given.items():
        if len(name) + len(value) > _MAX_SECRET_LENGTH:
            raise InvalidInput(fields={field: ["A value is too long."]})
        if value == MASK:
            if name in kept:
                merged[name] = kept[name]
        else:
            merged[name] = value
    return merged


def _auth(auth_type: AuthType, values: dict[str, str]) -> dict[str, str]:
    wanted = _AUTH_FIELDS[auth_type]
    if set(values) - set(wanted):
        raise InvalidInput(
            fields={"auth": [f"{auth_type.label} takes {', '.join(wanted) or 'nothing'}."]}
        )
    if auth_type is AuthType.API_KEY and values:
        _check_header(values.get("header", ""), values.get("value", ""))
    elif auth_type is AuthType.BEARER and values:
        _check_header("X-Token", values.get("token", ""))
    elif auth_type is AuthType.BASIC and ":" in values.get("username", ""):
        raise InvalidInput(fields={"auth": ["A user name holds no colon."]})
    return values


def _check_header(name: str, value: str) -> None:
    try:
        outbound.check_headers({name: value})
    except InvalidEndpoint as error:
        raise InvalidInput(fields={"auth": [error.message]}) from error


def _check_auth(server: McpServer) -> None:
    """The kind of authentication and the credentials must belong together."""
    wanted = _AUTH_FIELDS[AuthType(server.auth_type)]
    if not wanted:
        return
    if server.transport == Transport.STDIO:
        raise InvalidInput(
            fields={"auth_type": ["A program is given its credentials by its environment."]}
        )
    if server.status == ServerStatus.AUTH_REQUIRED and not server.auth_config:
        return  # dropped earlier, and not yet entered again
    values = (
        server.auth_config.reveal_json("checking that credentials are complete")
        if server.auth_config
        else {}
    )
    missing = [name for name in wanted if not values.get(name)]
    if missing:
        raise InvalidInput(
            fields={"auth": [f"{AuthType(server.auth_type).label} needs {', '.join(missing)}."]}
        )


def _target_of(server: McpServer) -> tuple[str, str]:
    """What stored credentials belong to: an origin, or a program."""
    if server.transport == Transport.STDIO:
        return ("stdio", str(server.program_id))
    try:
        return ("http", outbound.parse_endpoint(server.url).origin)
    except InvalidEndpoint:
        return ("http", server.url)


def _name(name: str) -> str:
    cleaned = " ".join(name.split())
    if not cleaned or not cleaned.isprintable() or len(cleaned) > MAX_NAME_LENGTH:
        raise InvalidInput(fields={"name": ["A name of 1 to 60 visible characters is needed."]})
    return cleaned


def _tell(server: McpServer) -> None:
    announce(server.workspace_id, Announcement(kind="server.changed", id=str(server.pk)))
