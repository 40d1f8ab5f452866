"""From a server's row to what the connections need. The only place where a server's secrets are revealed."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.conf import settings

from mcp_servers import catalogue, outbound
from mcp_servers.canonical import canonical_json
from mcp_servers.connections.spec import ConnectionSpec, HttpSpec, StdioSpec
from mcp_servers.models.servers import AuthType, McpServer, Transport
from mcp_servers.values import Protocol
from workspaces.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from workspaces.secrets import Secret

WORKSPACE_PRINCIPAL: Final = "workspace"
"""Connections with the credentials that the workspace stored."""


def connection_spec(server: McpServer, *, principal: str = WORKSPACE_PRINCIPAL) -> ConnectionSpec:
    """What it takes to connect to this server.

    Raises:
        InvalidEndpoint, InvalidInput: the row is not whole.
        SecretUnreadable: a stored credential cannot be decrypted.
    """
    config = server.config
    return ConnectionSpec(
        workspace_id=server.workspace_id,
        server_id=server.pk,
        principal=principal,
        server_name=server.name,
        target=_stdio(server) if server.transport == Transport.STDIO else _http(server),
        fingerprint=_fingerprint(server),
        protocol=Protocol(server.protocol),
        connect_seconds=config.connect_seconds,
        idle_seconds=config.idle_seconds,
        max_concurrent_calls=config.max_concurrent_calls,
    )


def home_of(server_id: UUID) -> Path:
    """The folder of a stdio server's own."""
    folder: Path = settings.TRELLIS.data_dir / "stdio" / str(server_id)
    return folder


def _http(server: McpServer) -> HttpSpec:
    headers = _reveal(server.headers, "request headers of an MCP server")
    outbound.check_headers(headers)
    return HttpSpec(
        endpoint=outbound.parse_endpoint(server.url),
        headers={**headers, **_auth_headers(server)},
    )


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
        raise InvalidInput("The program of this server is no longer on offer.")
    values = catalogue.check_values(program.typed_parameters(), server.parameters)
    env = _reveal(server.env, "environment of an MCP server")
    return StdioSpec(
        argv=catalogue.build_argv(program.command, program.args, values),
        home=home_of(server.pk),
        env={name: value for name, value in env.items() if name in program.env_names},
    )


def _reveal(secret: Secret | None, purpose: str) -> dict[str, str]:
    return secret.reveal_json(purpose) if secret else {}


def _fingerprint(server: McpServer) -> str:
    """Changes with every setting that an open connection was made from; secrets count by their ciphertext."""
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
    ]
    return hashlib.sha256(canonical_json(parts)).hexdigest()
