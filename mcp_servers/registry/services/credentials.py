"""Credentials as somebody enters them: which a kind of authentication takes, and whether they are whole."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_servers.client import transports
from mcp_servers.models import McpServer, ServerScope
from mcp_servers.models.server_credentials import OAUTH_TYPES, AuthType
from mcp_servers.registry.files.file_format import looks_unfilled
from workspaces import outbound
from workspaces.errors import InvalidEndpoint, InvalidInput
from workspaces.redaction import MASK
from workspaces.secrets import SecretUnreadable

_MAX_SECRET_LENGTH: Final = 8192
_AUTH_FIELDS: Final = {
    AuthType.NONE: (),
    AuthType.BEARER: ("token",),
    AuthType.API_KEY: ("header", "value"),
    AuthType.BASIC: ("username", "password"),
    AuthType.OAUTH: ("client_id", "client_secret", "private_key"),
    AuthType.OAUTH_CLIENT: ("client_id", "client_secret", "private_key"),
}


_WORDS: Final = {
    "token": gettext_lazy("token"),
    "header": gettext_lazy("name of the header"),
    "value": gettext_lazy("key"),
    "username": gettext_lazy("user name"),
    "password": gettext_lazy("password"),
    "client_id": gettext_lazy("client ID"),
    "client_secret": gettext_lazy("client secret"),
}


def merge_secrets(stored: Any, given: Mapping[str, str], field: str) -> dict[str, str]:
    """The given values; where one is the mask, what is stored under that name."""
    kept: dict[str, str] = {}
    if stored and MASK in given.values():
        try:
            kept = stored.reveal_json("keeping credentials that were not changed")
        except SecretUnreadable as error:
            message = _("What is stored can no longer be read. Enter every value again.")
            raise InvalidInput(fields={field: [message]}) from error
    merged: dict[str, str] = {}
    for name, value in given.items():
        if len(name) + len(value) > _MAX_SECRET_LENGTH:
            raise InvalidInput(fields={field: [_("This value is too long.")]})
        if value == MASK:
            if name in kept:
                merged[name] = kept[name]
        else:
            merged[name] = value
    return merged


def unfilled_values(server: McpServer) -> tuple[str, ...]:
    """Which headers, variables and parameters seem to lack their value, by name, while it never listed its tools.

    Lists of servers were once taken in with their variables. This hinders nothing: a password may look like one. It
    takes no query, and reads the secrets only of a server that never listed its tools.
    """
    if server.scope == ServerScope.GLOBAL or server.state.tools_listed_at is not None:
        return ()
    values = {name: str(value) for name, value in server.parameters.items()}
    for secret in (server.headers, server.env):
        values |= _readable(secret)
    credentials = _readable(server.auth_config)
    match server.auth_type:
        case AuthType.BEARER:
            values["Authorization"] = credentials.get("token", "")
        case AuthType.BASIC:
            values["Authorization"] = credentials.get("password", "")
        case AuthType.API_KEY:
            values[credentials.get("header", "")] = credentials.get("value", "")
    return tuple(name for name, value in values.items() if looks_unfilled(value))


def _readable(secret: Any) -> dict[str, str]:
    values: dict[str, str] = {}
    with contextlib.suppress(SecretUnreadable):  # a call of the server says so
        values |= secret.reveal_json("whether a value is missing") if secret else {}
    return values


def read_auth(auth_type: AuthType, values: dict[str, str]) -> dict[str, str]:
    wanted = _AUTH_FIELDS[auth_type]
    if values and not wanted:
        kinds = ", ".join(kind.value for kind, names in _AUTH_FIELDS.items() if names)
        message = _("auth_type is “none”, so leave this empty, or choose another: %(kinds)s.")
        raise InvalidInput(fields={"auth": [message % {"kinds": kinds}]})
    if set(values) - set(wanted):
        message = _("%(label)s takes %(wanted)s.")
        raise InvalidInput(
            fields={"auth": [message % {"label": auth_type.label, "wanted": ", ".join(wanted)}]}
        )
    if auth_type is AuthType.API_KEY and values:
        _check_header(values.get("header", ""), values.get("value", ""))
    elif auth_type is AuthType.BEARER and values:
        _check_header("X-Token", values.get("token", ""))
    elif auth_type is AuthType.BASIC and ":" in values.get("username", ""):
        raise InvalidInput(fields={"auth": [_("A user name can't contain a colon.")]})
    elif auth_type in OAUTH_TYPES:
        return _client({name: value for name, value in values.items() if value})
    return values


def _client(values: dict[str, str]) -> dict[str, str]:
    """A client that somebody registered at the issuer, RFC 6749, A.1 and A.2; a key is PEM, for RFC 7523."""
    plain = [value for name, value in values.items() if name != "private_key"]
    if any(not (value.isascii() and value.isprintable()) for value in plain):
        raise InvalidInput(fields={"auth": [_("Use visible ASCII characters only.")]})
    if values and "client_id" not in values:
        raise InvalidInput(fields={"auth": [_("Enter the client ID as well.")]})
    if len(values.get("client_id", "")) > outbound.MAX_URL_LENGTH:
        raise InvalidInput(fields={"auth": [_("The client ID is too long.")]})
    return values


def _check_header(name: str, value: str) -> None:
    try:
        outbound.check_headers({name: value})
    except InvalidEndpoint as error:
        raise InvalidInput(fields={"auth": [error.message]}) from error


def auth_of(server: McpServer) -> tuple[object, ...]:
    """What check_auth() looks at: while it stays as it is, an old flaw of it hinders no other change."""
    return (
        *(server.auth_type, bool(server.auth_config), server.transport, server.url),
        *(server.program_id, server.is_active),
    )


def check_auth(server: McpServer, *, may_lack: bool = False) -> None:
    """The kind of authentication and the credentials must belong together.

    Args:
        may_lack: they were dropped earlier, and are entered again later.
    """
    wanted = _AUTH_FIELDS[AuthType(server.auth_type)]
    if not wanted:
        return
    if server.transport == transports.STDIO:
        raise InvalidInput(
            fields={
                "auth_type": [_("A program gets its credentials from its environment variables.")]
            }
        )
    if server.auth_type == AuthType.OAUTH:
        return  # who has no client at the issuer registers one without anybody's help
    if may_lack:
        return
    values = (
        server.auth_config.reveal_json("checking that credentials are complete")
        if server.auth_config
        else {}
    )
    if values.get("private_key"):
        wanted = ("client_id",)
    elif server.auth_type == AuthType.OAUTH_CLIENT:
        wanted = ("client_id", "client_secret")
    missing = [name for name in wanted if not values.get(name)]
    if missing:
        raise InvalidInput(
            fields={
                "auth": [
                    _("%(label)s is not complete. Enter the %(missing)s.")
                    % {
                        "label": AuthType(server.auth_type).label,
                        "missing": _(" and the ").join(str(_WORDS[name]) for name in missing),
                    }
                ]
            }
        )
