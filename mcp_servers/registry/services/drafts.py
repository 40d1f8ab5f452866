"""A server as somebody wants it: values put into a row, checked, with the credentials that belong to its address."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from mcp_servers.client import transports
from mcp_servers.client.values import Protocol
from mcp_servers.models import (
    LogLevel,
    McpServer,
    SamplingPolicy,
    ServerScope,
    StdioProgram,
    programs,
)
from mcp_servers.models.connection_config import ConnectionConfig
from mcp_servers.models.server_credentials import AccountUse, AuthType
from mcp_servers.models.servers import MAX_NAME_LENGTH
from mcp_servers.registry.bud_choices import WhereUsed
from mcp_servers.registry.model_choices import providers_of
from mcp_servers.registry.services.credentials import merge_secrets, read_auth
from workspaces import outbound
from workspaces.errors import InvalidEndpoint, InvalidInput
from workspaces.secret_memory import remember_secret, secrets_in_url
from workspaces.secrets import holds, put_secret

MAX_SAMPLING_TOKENS: Final = 100_000_000
MAX_ROOTS: Final = 20
MAX_SCOPE_LENGTH: Final = 1000

_PLAIN_FIELDS: Final = (
    *("is_active", "trusts_annotations", "allows_new_tools"),
    *("answers_elicitation", "uses_instructions", "is_used_everywhere"),
)
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""RFC 6749, 3.3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDraft:
    """A server as somebody wants it. In updates, None leaves a field as it is.

    Of `headers`, `env` and `auth`, the mask as a value keeps what is stored under that name.
    """

    name: str | None = None
    transport: str | None = None
    protocol: Protocol | None = None
    url: str | None = None
    program: StdioProgram | None = None
    parameters: Mapping[str, object] | None = None
    headers: Mapping[str, str] | None = None
    env: Mapping[str, str] | None = None
    auth_type: AuthType | None = None
    auth: Mapping[str, str] | None = None
    """bearer: token; api_key: header, value; basic: username, password; OAuth: client_id, client_secret."""
    account_use: AccountUse | None = None
    oauth_scope: str | None = None
    connection_config: Mapping[str, object] | None = None
    is_active: bool | None = None
    is_used_everywhere: bool | None = None
    """In every bud that takes all tools; a person's own: in all their chats. New servers are, unless told otherwise."""
    bud_ids: Sequence[UUID] = ()
    """Buds that use it from now on, whatever tools they take."""
    trusts_annotations: bool | None = None
    allows_new_tools: bool | None = None
    answers_elicitation: bool | None = None
    uses_instructions: bool | None = None
    sampling: SamplingPolicy | None = None
    sampling_daily_tokens: int | None = None
    sampling_provider_id: UUID | None = None
    sampling_model: str | None = None
    clears_sampling_provider: bool = False
    """Have the bud's own provider serve again."""
    roots: Sequence[Mapping[str, str]] | None = None
    """Folders as {"uri", "name"}."""
    log_level: LogLevel | None = None

    def used(self, where: WhereUsed) -> ServerDraft:
        """The same server, used there."""
        return replace(self, is_used_everywhere=where.is_used_everywhere, bud_ids=where.bud_ids)


def apply_draft(server: McpServer, draft: ServerDraft) -> bool:
    """Put a draft's values into a row; True if stored credentials were dropped because it points elsewhere now."""
    target = target_of(server)
    if draft.name is not None and server.scope != ServerScope.GLOBAL:
        server.name = _name(draft.name)
    for field in _PLAIN_FIELDS:
        value = getattr(draft, field)
        if value is not None:
            setattr(server, field, value)
    if draft.connection_config is not None:
        server.connection_config = ConnectionConfig.read(dict(draft.connection_config)).as_json()
    _apply_behaviour(server, draft)
    if server.scope == ServerScope.GLOBAL:
        _refuse_target(draft)
        return False
    if server.hosted_by:
        _refuse_address(draft)
        if draft.protocol is not None:
            server.protocol = draft.protocol.value
        return False
    if draft.transport is not None and draft.transport != server.transport:
        if draft.transport not in dict(transports.choices()):
            raise InvalidInput(fields={"transport": [_("There is no such transport.")]})
        server.transport = draft.transport
    if draft.protocol is not None:
        server.protocol = draft.protocol.value
    _apply_target(server, draft)
    has_moved = target_of(server) != target
    lost = has_moved and bool(server.headers or server.env or server.auth_config)
    if lost:
        server.headers = server.env = server.auth_config = None
    _apply_secrets(server, draft)
    return lost and not (server.headers or server.env or server.auth_config)


def _apply_behaviour(server: McpServer, draft: ServerDraft) -> None:
    """What the server may ask for, and what it is told."""
    if server.owner_id is not None:
        _check_personal(draft)
    if draft.sampling is not None:
        server.sampling = draft.sampling
    if draft.log_level is not None:
        server.log_level = draft.log_level
    if draft.sampling_daily_tokens is not None:
        if not 0 <= draft.sampling_daily_tokens <= MAX_SAMPLING_TOKENS:
            raise InvalidInput(
                fields={
                    "sampling_daily_tokens": [
                        _("Between 0 and %(most)s.") % {"most": MAX_SAMPLING_TOKENS}
                    ]
                }
            )
        server.sampling_daily_tokens = draft.sampling_daily_tokens
    if draft.clears_sampling_provider:
        server.sampling_provider_id = None
    if draft.sampling_provider_id is not None:
        if draft.sampling_provider_id not in dict(providers_of(server.workspace_id)):
            raise InvalidInput(
                fields={"sampling_provider_id": [_("There is no such provider here.")]}
            )
        server.sampling_provider_id = draft.sampling_provider_id
    if draft.sampling_model is not None:
        server.sampling_model = _line(draft.sampling_model, "sampling_model", 200)
    if draft.roots is not None:
        server.roots = _read_roots(draft.roots)


def _check_personal(draft: ServerDraft) -> None:
    """What a person connects for themselves loosens no rule and spends nobody else's tokens."""
    if draft.trusts_annotations:
        raise InvalidInput(
            fields={
                "trusts_annotations": [
                    _("The tools of a personal server can't be trusted in advance.")
                ]
            }
        )
    if draft.sampling not in (None, SamplingPolicy.OFF):
        raise InvalidInput(fields={"sampling": [_("A personal server may not use the model.")]})


def _read_roots(roots: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    if len(roots) > MAX_ROOTS:
        raise InvalidInput(fields={"roots": [_("At most %(most)s folders.") % {"most": MAX_ROOTS}]})
    checked = []
    for root in roots:
        if set(root) - {"uri", "name"} or not all(isinstance(one, str) for one in root.values()):
            raise InvalidInput(
                fields={"roots": [_("Each folder has a “uri” and perhaps a “name”.")]}
            )
        uri = root.get("uri", "")
        if not uri.startswith("file:///") or not uri.isascii() or not uri.isprintable():
            raise InvalidInput(fields={"roots": [_("A folder's URI begins with file:///.")]})
        checked.append({"uri": uri[:1000], "name": _line(root.get("name", ""), "roots", 100)})
    return checked


def _line(text: str, field: str, length: int) -> str:
    cleaned = " ".join(text.split())
    if not cleaned.isprintable() or len(cleaned) > length:
        raise InvalidInput(
            fields={field: [_("At most %(length)s visible characters.") % {"length": length}]}
        )
    return cleaned


def _refuse_target(draft: ServerDraft) -> None:
    """Where a server of the platform is, and with which secrets, its file says."""
    given = (
        draft.url,
        draft.program,
        draft.parameters,
        draft.headers,
        draft.env,
        draft.auth,
    )
    is_plain = draft.auth_type in (None, AuthType.NONE) and draft.protocol in (None, Protocol.AUTO)
    if any(given) or not is_plain:
        raise InvalidInput(_("The platform's file sets this server's address and transport."))


def _refuse_address(draft: ServerDraft) -> None:
    """Make sure that a draft says nothing of where a hosted server is, and how one signs in to it."""
    given = (draft.url, draft.program, draft.parameters, draft.headers, draft.env, draft.auth)
    is_plain = draft.transport in (None, transports.STREAMABLE_HTTP)
    if any(given) or not is_plain or draft.auth_type not in (None, AuthType.NONE):
        raise InvalidInput(_("The provider sets this server's address and handles its sign-in."))


def _apply_target(server: McpServer, draft: ServerDraft) -> None:
    if server.transport == transports.STDIO:
        server.url = ""
        if draft.program is not None:
            if not draft.program.is_enabled and draft.program.pk != server.program_id:
                raise InvalidInput(fields={"program": [_("This program is not on offer.")]})
            server.program = draft.program
        if draft.url:
            raise InvalidInput(fields={"url": [_("A program has no URL. Leave it empty.")]})
        if server.program is not None:
            values = draft.parameters if draft.parameters is not None else server.parameters
            server.parameters = programs.check_values(server.program.typed_parameters(), values)
            for secret in programs.secrets_in(server.parameters):
                remember_secret(secret, workspace_id=server.workspace_id)
        return
    if draft.program is not None or draft.parameters:
        raise InvalidInput(fields={"program": [_("Only servers that are programs can have this.")]})
    server.program, server.parameters = None, {}
    if draft.url is not None:
        try:
            given = draft.url.strip()
            server.url = str(
                outbound.enter_endpoint(given, schemes=transports.schemes_of(server.transport))
            )
            for secret in secrets_in_url(server.url):
                remember_secret(secret, workspace_id=server.workspace_id)
        except InvalidEndpoint as error:
            raise InvalidInput(fields={"url": [error.message]}) from error


def _apply_secrets(server: McpServer, draft: ServerDraft) -> None:
    if draft.headers is not None:
        headers = merge_secrets(server.headers, draft.headers, "headers")
        try:
            outbound.check_headers(headers)
        except InvalidEndpoint as error:
            raise InvalidInput(fields={"headers": [error.message]}) from error
        put_secret(server, "headers", headers)
    if draft.env is not None:
        env = merge_secrets(server.env, draft.env, "env")
        allowed = set(server.program.env_names) if server.program is not None else set()
        if set(env) - allowed:
            raise InvalidInput(fields={"env": [_("This program takes no such variable.")]})
        if any("\0" in value for value in env.values()):
            raise InvalidInput(fields={"env": [_("A value contains a NUL character.")]})
        put_secret(server, "env", env)
    if draft.auth_type is not None and draft.auth_type != server.auth_type:
        server.auth_type = draft.auth_type
        server.auth_config = None
    if draft.auth is not None:
        given = merge_secrets(server.auth_config, draft.auth, "auth")
        put_secret(server, "auth_config", read_auth(AuthType(server.auth_type), given))
    _apply_oauth(server, draft)


def has_secrets_of(server: McpServer, draft: ServerDraft) -> bool:
    """Whether a server has all secrets of a draft already.

    Raises:
        InvalidInput: one is to stay, and can no longer be read, or is none that its kind of authentication takes.
    """
    if draft.auth is not None:
        given = merge_secrets(server.auth_config, draft.auth, "auth")
        # As it would be stored: OAuth leaves out what is empty.
        if not holds(server, "auth_config", read_auth(AuthType(server.auth_type), given)):
            return False
    return all(
        holds(server, name, merge_secrets(getattr(server, name), values, name))
        for name, values in (("headers", draft.headers), ("env", draft.env))
        if values is not None
    )


def _apply_oauth(server: McpServer, draft: ServerDraft) -> None:
    """Whose account is used, and what is asked for when somebody signs in."""
    if draft.account_use is not None:
        server.account_use = draft.account_use
    if server.owner_id is not None:
        server.account_use = AccountUse.USER
    if draft.oauth_scope is not None:
        words = draft.oauth_scope.split()
        if any(not _SCOPE.fullmatch(word) for word in words):
            raise InvalidInput(fields={"oauth_scope": [_("Separate scopes with spaces.")]})
        if len(" ".join(words)) > MAX_SCOPE_LENGTH:
            raise InvalidInput(
                fields={
                    "oauth_scope": [_("At most %(most)s characters.") % {"most": MAX_SCOPE_LENGTH}]
                }
            )
        server.oauth_scope = " ".join(words)


def target_of(server: McpServer) -> tuple[str, str]:
    """What stored credentials belong to: an origin, or a program."""
    if server.transport == transports.STDIO:
        return ("stdio", str(server.program_id))
    try:
        return (
            "http",
            outbound.parse_endpoint(
                server.url, schemes=transports.schemes_of(transports.AUTO)
            ).origin,
        )
    except InvalidEndpoint:
        return ("http", server.url)


def _name(name: str) -> str:
    cleaned = " ".join(name.split())
    if not cleaned or not cleaned.isprintable() or len(cleaned) > MAX_NAME_LENGTH:
        raise InvalidInput(fields={"name": [_("Use a name of 1 to 60 visible characters.")]})
    return cleaned
