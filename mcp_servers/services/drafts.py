"""A server as somebody wants it: values put into a row, checked, with the credentials that belong to its address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_servers import catalogue, outbound
from mcp_servers.connection_config import ConnectionConfig
from mcp_servers.errors import InvalidEndpoint
from mcp_servers.models import McpServer, ServerStatus, StdioProgram, Transport
from mcp_servers.models.servers import MAX_NAME_LENGTH, AuthType
from mcp_servers.values import Protocol
from workspaces.errors import InvalidInput
from workspaces.redaction import MASK

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


def apply_draft(server: McpServer, draft: ServerDraft) -> bool:
    """Put a draft's values into a row; True if stored credentials were dropped because it points elsewhere now."""
    target = target_of(server)
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
    lost = target_of(server) != target and bool(server.headers or server.env or server.auth_config)
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


def check_auth(server: McpServer) -> None:
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


def target_of(server: McpServer) -> tuple[str, str]:
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
