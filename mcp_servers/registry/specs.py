"""From a server's row to what the connections need. The only place where a server's secrets are revealed."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext_noop as _

from mcp_servers.client import transports
from mcp_servers.client.canonical import canonical_json
from mcp_servers.client.spec import ConnectionSpec
from mcp_servers.client.transports.targets import (
    LONGEST_CONNECT_SECONDS,
    HttpSpec,
    StdioSpec,
)
from mcp_servers.client.values import Protocol
from mcp_servers.models import (
    McpResource,
    SamplingPolicy,
    ServerScope,
    hosting,
    programs,
    version_pins,
)
from mcp_servers.models.connection_config import ConnectionConfig
from mcp_servers.models.server_credentials import OAUTH_TYPES, AuthType
from mcp_servers.models.servers import McpServer
from mcp_servers.oauth.bearer import GrantAuth
from mcp_servers.oauth.grants import holder_of, principal_of, usable_grant
from mcp_servers.registry.files.platform_file import (
    ServerDefinition,
    argv_of,
    endpoint_of,
    registry,
)
from workspaces import outbound
from workspaces.database.prepared import PreparedRows
from workspaces.errors import InvalidInput
from workspaces.secret_memory import holding_secrets, remember_secret, secrets_in_url
from workspaces.secrets import SecretUnreadable

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_servers.models import OAuthGrant, StdioProgram
    from workspaces.secrets import Secret

MAX_WATCHED: Final = 200
"""Resources of one server whose changes are heard of."""


def connection_spec(server: McpServer, *, user_id: UUID | None = None) -> ConnectionSpec:
    """What it takes to connect to this server.

    Args:
        user_id: the person who is there; where people sign in for themselves, it is their account that is used.

    Raises:
        InvalidEndpoint, InvalidInput: the row is not whole, or the platform's file or catalogue changed under it.
        SecretUnreadable: a stored credential cannot be decrypted.
    """
    config = server.config
    definition = _definition(server) if server.scope == ServerScope.GLOBAL else None
    with holding_secrets() as secrets:
        try:
            target = _target(server, definition)
        except SecretUnreadable as error:
            raise _unreadable(server) from error
    grant = usable_grant(server, user_id) if server.auth_type == AuthType.OAUTH else None
    if isinstance(target, HttpSpec) and server.auth_type in OAUTH_TYPES:
        target = replace(target, auth=_grant_auth(server, user_id, target.endpoint))
    return ConnectionSpec(
        workspace_id=server.workspace_id,
        server_id=server.pk,
        principal=principal_of(server, user_id),
        server_name=server.name,
        target=target,
        fingerprint=_fingerprint(server, definition, grant),
        needs_sign_in=(server.auth_type == AuthType.OAUTH and grant is None)
        or hosting.waits_for_sign_in(server),
        is_draft=server._state.adding,
        protocol=definition.entry.protocol if definition else Protocol(server.protocol),
        connect_seconds=_connect_seconds(config, target),
        idle_seconds=config.idle_seconds,
        max_concurrent_calls=config.max_concurrent_calls,
        max_queued_calls=config.max_queued_calls,
        max_attempts=config.max_attempts,
        allows_elicitation=server.answers_elicitation,
        allows_sampling=server.sampling != SamplingPolicy.OFF,
        roots=_roots(server, target),
        watched=_watched(server),
        log_level=server.log_level,
        secrets=secrets,
    )


def _connect_seconds(config: ConnectionConfig, target: HttpSpec | StdioSpec) -> float:
    """How long it may take to open; what is fetched first gets all there is, for that depends on somebody's network."""
    if isinstance(target, StdioSpec) and version_pins.runs_packages(
        target.argv[0], target.argv[1:]
    ):
        return LONGEST_CONNECT_SECONDS
    return config.connect_seconds


def _unreadable(server: McpServer) -> SecretUnreadable:
    if server.hosted_by:
        message = _(
            "The key of the provider that hosts the server “%(server)s” can no longer be read, because the encryption"
            " key that protected it is gone. A workspace admin can enter the provider's key again."
        )
        return SecretUnreadable(message % {"server": server.name})
    message = (
        _(
            "The credentials of your server “%(server)s” can no longer be read, because the encryption key that"
            " protected them is gone. Enter them again in the server's settings."
        )
        if server.owner_id is not None
        else _(
            "The credentials of the server “%(server)s” can no longer be read, because the encryption key that"
            " protected them is gone. A workspace admin can enter them again in the server's settings."
        )
    )
    return SecretUnreadable(message % {"server": server.name})


def _grant_auth(
    server: McpServer, user_id: UUID | None, endpoint: outbound.Endpoint
) -> GrantAuth | None:
    holder = holder_of(server, user_id)
    if holder is None:
        return None
    return GrantAuth(holder, endpoint, is_client=server.auth_type == AuthType.OAUTH_CLIENT)


def target_label(server: McpServer) -> str:
    """Where a server is, without anything secret: the URL without its query, or the program's title."""
    if server.global_server is not None:
        return server.global_server.target_label
    if server.hosted_by:
        return hosting.label_of(server)
    if server.transport == transports.STDIO:
        return server.program.title if server.program is not None else ""
    return server.url.partition("?")[0]


def home_of(server_id: UUID) -> Path:
    """The folder of a stdio server's own."""
    folder: Path = settings.TRELLIS.data_dir / "stdio" / str(server_id)
    return folder


def _target(server: McpServer, definition: ServerDefinition | None) -> HttpSpec | StdioSpec:
    if definition is not None:
        return _from_file(server, definition)
    if server.hosted_by:
        return hosting.target_of(server)
    return _stdio(server) if server.transport == transports.STDIO else _http(server)


def _definition(server: McpServer) -> ServerDefinition:
    """What the platform's file says of this server.

    Raises:
        InvalidInput: nothing, or it is not usable.
    """
    known = server.global_server
    definition = registry.definition(known.name) if known is not None else None
    if definition is None:
        raise InvalidInput(_("The platform's file does not name this server."))
    if definition.problem:
        raise InvalidInput(definition.problem)
    return definition


def _from_file(server: McpServer, definition: ServerDefinition) -> HttpSpec | StdioSpec:
    entry = definition.entry
    if entry.is_stdio:
        try:
            argv = argv_of(entry)
        except FileNotFoundError as error:
            raise InvalidInput(_("Its program is not installed on this machine.")) from error
        return StdioSpec(argv=argv, home=home_of(server.pk), env=entry.env)
    outbound.check_headers(entry.headers)
    endpoint = endpoint_of(entry)
    return HttpSpec(
        endpoint=endpoint,
        headers=entry.headers,
        transport=transports.for_address(entry.transport, endpoint.scheme),
        remembered=_remembered(server),
    )


def _http(server: McpServer) -> HttpSpec:
    headers = _reveal(server.headers, "request headers of an MCP server")
    outbound.check_headers(headers)
    endpoint = outbound.parse_endpoint(server.url, schemes=transports.schemes_of(server.transport))
    for secret in secrets_in_url(server.url):
        remember_secret(secret, workspace_id=server.workspace_id)
    return HttpSpec(
        endpoint=endpoint,
        headers={**headers, **_auth_headers(server)},
        transport=transports.for_address(server.transport, endpoint.scheme),
        remembered=_remembered(server),
    )


def _remembered(server: McpServer) -> str | None:
    found = server.state.resolved_transport
    return found if found in transports.automatic() else None


def _auth_headers(server: McpServer) -> dict[str, str]:
    credentials = _reveal(server.auth_config, "signing in to an MCP server")
    if not credentials:
        return {}
    if server.auth_type == AuthType.BEARER:
        return {"Authorization": f"Bearer {credentials['token']}"}
    if server.auth_type == AuthType.API_KEY:
        return {credentials["header"]: credentials["value"]}
    if server.auth_type == AuthType.BASIC:
        pair = f"{credentials['username']}:{credentials['password']}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}


def _stdio(server: McpServer) -> StdioSpec:
    program = server.program
    if program is None or not program.is_enabled:
        reason = program.problem if program is not None else ""
        raise InvalidInput(reason or _("The program of this server is no longer on offer."))
    _check_pin(program)
    values = programs.check_values(program.typed_parameters(), server.parameters)
    for secret in programs.secrets_in(values):
        remember_secret(secret, workspace_id=server.workspace_id)
    env = _reveal(server.env, "environment of an MCP server")
    return StdioSpec(
        argv=programs.build_argv(program.command, program.args, values),
        home=home_of(server.pk),
        env={name: value for name, value in env.items() if name in program.env_names},
    )


def _check_pin(program: StdioProgram) -> None:
    """Start nothing that is not what the owner put into the catalogue; the next check switches it off there."""
    reason = version_pins.version_problem(program.command, program.args)
    if reason:
        raise InvalidInput(reason)
    if (
        program.file_hash
        and version_pins.program_hash(program.command, program.args) != program.file_hash
    ):
        raise InvalidInput(version_pins.CHANGED)


def _roots(server: McpServer, target: HttpSpec | StdioSpec) -> tuple[tuple[str, str], ...]:
    """The folders that were entered; of a program that was given none its own.

    A program with a folder among its arguments is told of no other: server-filesystem then works in what it is told
    of, and refuses the folder that it was set up with.
    """
    entered = tuple((str(root["uri"]), str(root.get("name", ""))) for root in server.roots)
    if entered or not isinstance(target, StdioSpec) or target.names_folder():
        return entered
    return ((target.home.absolute().as_uri(), "Its own folder"),)


def _watched(server: McpServer) -> tuple[str, ...]:
    resources = server.state.capabilities.get("resources")
    if not isinstance(resources, dict) or not resources.get("subscribe"):
        return ()
    return tuple(uri for (uri,) in _WATCHED.all_values(server.workspace_id, server.pk))


def _reveal(secret: Secret | None, purpose: str) -> dict[str, str]:
    return secret.reveal_json(purpose) if secret else {}


def _fingerprint(
    server: McpServer, definition: ServerDefinition | None, grant: OAuthGrant | None
) -> str:
    """Changes with every setting that an open connection was made from; secrets count by their ciphertext.

    A new sign-in makes another connection; a renewed token does not.
    """
    program = server.program
    parts = [
        *(
            server.transport,
            server.protocol,
            server.url,
            server.auth_type,
            server.connection_config,
            server.parameters,
        ),
        *(
            secret.sealed if secret else None
            for secret in (server.headers, server.env, server.auth_config)
        ),
        [program.command, program.args, program.env_names] if program is not None else None,
        [
            server.answers_elicitation,
            server.sampling != SamplingPolicy.OFF,
            server.roots,
            server.log_level,
        ],
        definition.digest if definition is not None else None,
        hosting.fingerprint_of(server),
        [str(grant.pk), grant.granted_at.isoformat()] if grant is not None else None,
    ]
    return hashlib.sha256(canonical_json(parts)).hexdigest()


def _watched_of(workspace_id: UUID, server_id: UUID) -> Any:
    rows = McpResource.objects.for_workspace(workspace_id).usable()
    watched = rows.filter(server_id=server_id, is_watched=True, is_template=False).order_by("pk")
    return watched.values_list("uri")[:MAX_WATCHED]


_WATCHED = PreparedRows[McpResource](_watched_of, UUID, UUID)
