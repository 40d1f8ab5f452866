"""Lists of servers in the `mcpServers` format: what an import would do, doing it, and the way out without secrets.

An import connects to nothing and starts nothing. What it brings is switched off, so that nothing of it is used before
an administrator has looked; tools come later, and rest like those of every other server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from mcp_servers.client import transports
from mcp_servers.client.values import Protocol
from mcp_servers.models import (
    OAUTH_TYPES,
    AccountUse,
    AuthType,
    McpServer,
    ServerScope,
    StdioProgram,
    version_pins,
)
from mcp_servers.models.programs import build_argv, without_secrets
from mcp_servers.registry.bud_choices import EVERYWHERE, WhereUsed
from mcp_servers.registry.files.file_format import (
    MAX_TEXT_LENGTH,
    Entry,
    MissingVariable,
    read_server_list,
)
from mcp_servers.registry.services.drafts import ServerDraft
from mcp_servers.registry.services.servers import add_server, check_draft, refuse_taken_name
from workspaces.actors import Actor
from workspaces.errors import DomainError, InvalidInput
from workspaces.roles import Permission, require
from workspaces.words.formats import whole

if TYPE_CHECKING:
    from mcp_servers.client.values import JsonValue

Plan: TypeAlias = Literal["add", "ask", "refuse"]

_ESCAPED_PARAMETER: Final = re.compile(r"\\\{([a-z][a-z0-9_]*)\\\}")
_CONSENT: Final = frozenset({"-y", "--yes"})
"""With which a package runner asks nobody; it has nobody to ask here."""
_NO_VALUES: Final[Mapping[str, str]] = {}
_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedImport:
    """What an import would do with one entry."""

    name: str
    plan: Plan
    transport: str = ""
    where: str = ""
    """The address without its query, or the program's title."""
    reason: str = ""
    """Why it is refused, or what it lacks."""
    secrets: tuple[str, ...] = ()
    """What is taken in and stored encrypted, by name only."""
    placeholders: tuple[str, ...] = ()
    """Variables that stand in the entry. A workspace has none, so their values come with the list."""
    draft: ServerDraft | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """As the REST interface shows it."""
        return {
            "name": self.name,
            "plan": self.plan,
            "transport": self.transport,
            "where": self.where,
            "reason": self.reason,
            "secrets": list(self.secrets),
            "placeholders": list(self.placeholders),
        }


def preview_import(
    *, workspace_id: UUID, text: str | bytes, actor: Actor, values: Mapping[str, str] = _NO_VALUES
) -> list[PlannedImport]:
    """What an import of this text would do; nothing is stored, started or connected to.

    Args:
        values: of variables, by their names.

    Raises:
        PermissionDenied: the actor may not manage servers here.
        Malformed: the text is no list of servers.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    listed = read_server_list(text)
    planned = [
        PlannedImport(name=name, plan="refuse", reason=reason)
        for name, reason in listed.problems.items()
    ]
    seen: set[str] = set()
    for entry in listed.entries:
        one = _plan(entry, workspace_id, values)
        if one.plan != "refuse" and entry.name in seen:
            one = _refused(entry, _("The list has another server of this name."))
        seen.add(entry.name)
        planned.append(one)
    return planned


@transaction.atomic
def apply_import(
    *,
    workspace_id: UUID,
    text: str | bytes,
    actor: Actor,
    where: WhereUsed = EVERYWHERE,
    values: Mapping[str, str] = _NO_VALUES,
) -> list[McpServer]:
    """Add what the preview says would be added, switched off; what is refused is left out.

    Args:
        where: where they are used once they are switched on.
        values: of variables, by their names.

    Raises:
        PermissionDenied, Malformed: as preview_import().
        InvalidInput: a variable has no value; a bud named here is not there, or does not take a server now.
    """
    planned = preview_import(workspace_id=workspace_id, text=text, actor=actor, values=values)
    if lacking := [f"{one.name}: {one.reason}" for one in planned if one.plan == "ask"]:
        raise InvalidInput(fields={"values": lacking})
    return [
        add_server(workspace_id=workspace_id, draft=one.draft.used(where), actor=actor)
        for one in planned
        if one.draft is not None
    ]


def export_servers(*, workspace_id: UUID, actor: Actor) -> dict[str, Any]:
    """The workspace's own servers in the format; where something secret stands, a variable's name stands instead.

    Raises:
        PermissionDenied: the actor may not manage servers here.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    rows: Iterable[McpServer] = (
        McpServer.objects.for_workspace(workspace_id)
        # What a provider hosts is reached with a secret alone, so nothing of it can be told.
        .filter(scope=ServerScope.WORKSPACE, hosted_by="")
        .select_related("program")
    )
    return {"mcpServers": {row.name: _exported(row) for row in rows}}


def _plan(entry: Entry, workspace_id: UUID, values: Mapping[str, str]) -> PlannedImport:
    try:
        refuse_taken_name(workspace_id=workspace_id, name=entry.name)
        if entry.longest_with(values) > MAX_TEXT_LENGTH:
            raise InvalidInput(
                _("With these values, one of its texts is longer than %(most)s characters.")
                % {"most": whole(MAX_TEXT_LENGTH)}
            )
        filled = entry.filled(values)
        draft = _program_draft(filled) if entry.is_stdio else _remote_draft(filled)
        check_draft(workspace_id=workspace_id, draft=draft)
    except MissingVariable as error:
        names = ", ".join(error.names)
        return PlannedImport(
            name=entry.name,
            plan="ask",
            transport=entry.transport,
            where=entry.command or entry.url.partition("?")[0],
            reason=_("Enter a value for %(names)s.") % {"names": names},
            placeholders=entry.variables(),
        )
    except DomainError as error:
        return replace(_refused(entry, error.message), placeholders=entry.variables())
    secrets = [*(draft.headers or {}), *(draft.env or {}), *(draft.auth or {})]
    return PlannedImport(
        name=entry.name,
        plan="add",
        transport=str(draft.transport),
        where=draft.program.title if draft.program else entry.url.partition("?")[0],
        secrets=tuple(secrets),
        placeholders=entry.variables(),
        draft=draft,
    )


def _refused(entry: Entry, reason: str) -> PlannedImport:
    return PlannedImport(name=entry.name, plan="refuse", transport=entry.transport, reason=reason)


def _remote_draft(entry: Entry) -> ServerDraft:
    if "${" in entry.url:
        raise InvalidInput(_("The address has a variable. Workspaces have no variables."))
    return ServerDraft(
        name=entry.name,
        transport=entry.transport,
        url=entry.url,
        headers=dict(entry.headers),
        protocol=entry.protocol,
        auth_type=AuthType.OAUTH if entry.uses_sign_in else None,
        account_use=AccountUse.WORKSPACE if entry.has_shared_account else None,
        oauth_scope=entry.scope if entry.uses_sign_in else None,
        is_active=False,
    )


def _program_draft(entry: Entry) -> ServerDraft:
    """A program only if it is one that the platform's owner has put on offer; what runs is the owner's command.

    Raises:
        InvalidInput: it is not, or it is given variables that it does not take here.
    """
    foreign: set[str] = set()
    for program in StdioProgram.objects.filter(is_enabled=True):
        values = _parameters_of(entry, program)
        if values is None:
            continue
        if foreign := set(entry.env) - set(program.env_names):
            continue
        return ServerDraft(
            name=entry.name,
            transport=transports.STDIO,
            program=program,
            parameters=values,
            env=dict(entry.env),
            is_active=False,
        )
    if foreign:
        raise InvalidInput(
            _(
                "The program catalogue has this one, but without the variable %(names)s."
                " The platform's owner can add it there, under “Environment”."
            )
            % {"names": ", ".join(sorted(foreign))[:200]}
        )
    if " " in entry.command and not entry.args:
        raise InvalidInput(
            _(
                "“command” holds the arguments, too. Put them into “args”, each as a text of its own."
            )
        )
    raise InvalidInput(
        _(
            "This program, with these arguments, is not in the program catalogue. The platform's owner can add it"
            " there, with an exact version. Then import this again."
        )
    )


def _parameters_of(entry: Entry, program: StdioProgram) -> dict[str, str] | None:
    """The parameters with which the catalogue's entry becomes exactly this command; None: with none."""
    # People write "npx", and the owner had to say which one.
    names = (program.command, Path(program.command).name, *build_argv(program.command, [], {}))
    if entry.command not in names:
        return None
    templates, given = list(program.args), list(entry.args)
    if is_runner := version_pins.runs_packages(program.command):
        templates, given = (
            [one for one in args if one not in _CONSENT] for args in (templates, given)
        )
    values: dict[str, str] = {}
    for template in templates:
        match = re.fullmatch(_pattern_of(template), given[0]) if given else None
        if match is not None:
            values.update(match.groupdict())
            given.pop(0)
        elif is_runner and given and version_pins.stands_for(given[0], template):
            given.pop(0)
        elif "{" not in template:
            return None
    return values if not given else None


def _pattern_of(template: str) -> str:
    """What an argument of the catalogue looks like once it is filled in; a parameter has one value throughout."""
    seen: set[str] = set()

    def group(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>.+)"

    return _ESCAPED_PARAMETER.sub(group, re.escape(template))


def _exported(row: McpServer) -> dict[str, Any]:
    if row.transport == transports.STDIO and row.program is not None:
        program = row.program
        values = {name: str(one) for name, one in without_secrets(row.parameters).items()}
        args = build_argv(program.command, program.args, values)[1:]
        entry: dict[str, Any] = {"command": program.command, "args": list(args)}
        names = _names(row.env.reveal_json("names of an export") if row.env else {})
        if names:
            entry["env"] = {name: _placeholder(row.name, name) for name in names}
        return entry
    entry = {"type": transports.keyword_of(row.transport), "url": row.url.partition("?")[0]}
    if "?" in row.url:
        entry["url"] += "?" + _placeholder(row.name, "query")
    headers = _names(row.headers.reveal_json("names of an export") if row.headers else {})
    if row.auth_config and row.auth_type not in OAUTH_TYPES:
        headers = [*headers, _auth_header(row)]
    if headers:
        entry["headers"] = {name: _placeholder(row.name, name) for name in headers}
    own: dict[str, str] = {}
    if row.protocol != Protocol.AUTO.value:
        own["protocol"] = row.protocol
    if row.auth_type == AuthType.OAUTH:
        own |= {"auth": "oauth", "accounts": row.account_use, "scope": row.oauth_scope}
    if own:
        entry["trellis"] = {name: value for name, value in own.items() if value}
    return entry


def _auth_header(row: McpServer) -> str:
    if row.auth_type == "api_key" and row.auth_config:
        return str(row.auth_config.reveal_json("names of an export").get("header", "X-API-Key"))
    return "Authorization"


def _names(values: Mapping[str, str]) -> list[str]:
    return sorted(values)


def _placeholder(server: str, name: str) -> str:
    words = _NOT_A_NAME.sub("_", f"{server}_{name}").strip("_").upper()
    return "${" + (words if words[:1].isalpha() else f"V_{words}")[:100] + "}"
