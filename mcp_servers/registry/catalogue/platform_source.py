"""The platform's own source of the catalogue: the file that comes with it, and the owner's."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _

from mcp_servers.client import transports
from mcp_servers.models import McpServer, StdioProgram
from mcp_servers.models.server_credentials import AuthType
from mcp_servers.models.servers import MAX_NAME_LENGTH
from mcp_servers.registry import services
from mcp_servers.registry.bud_choices import WhereUsed
from mcp_servers.registry.catalogue.file_format import KnownServer, KnownServers, read_known_servers
from mcp_servers.registry.catalogue.values import (
    AuthKind,
    CatalogueEntry,
    InstalledServer,
    Installing,
)
from mcp_servers.registry.rights import may_manage
from mcp_servers.registry.services import ServerDraft
from workspaces.actors import Actor
from workspaces.errors import Conflict, InvalidInput, NotFound
from workspaces.models import Workspace

logger = logging.getLogger(__name__)

KEY: Final = "known"

_FILE: Final = Path(__file__).with_name("servers.json")
_MOST_OF_ONE_NAME: Final = 20
_AUTH_TYPES: Final = {
    AuthKind.NONE: AuthType.NONE,
    AuthKind.BEARER: AuthType.BEARER,
    AuthKind.API_KEY: AuthType.API_KEY,
    AuthKind.OAUTH: AuthType.OAUTH,
}


@lru_cache(maxsize=1)
def shipped_servers() -> KnownServers:
    """The entries that come with the platform."""
    return read_known_servers(_FILE)


@lru_cache(maxsize=1)
def _owners_servers(path: Path, changed: int) -> KnownServers | None:
    try:
        return read_known_servers(path)
    except InvalidInput as error:
        logger.error("catalogue_file_unreadable", extra={"reason": error.message})
        return None


def known_servers() -> dict[str, KnownServer]:
    """All entries by their slugs: the shipped ones, changed by the owner's file. One that cannot be read adds nothing."""
    found = {server.slug: server for server in shipped_servers().servers}
    path: Path | None = settings.TRELLIS.catalogue_file
    if path is None:
        return found
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0
    own = _owners_servers(path, changed)
    if own is None:
        return found
    kept = {slug: server for slug, server in found.items() if slug not in own.hidden}
    return kept | {server.slug: server for server in own.servers}


def moved_to(url: str) -> KnownServer | None:
    """The well-known server that was at this address before, and is at another one now."""
    wanted = url.rstrip("/")
    return next(
        (
            known
            for known in known_servers().values()
            if wanted in {one.rstrip("/") for one in known.former_urls}
        ),
        None,
    )


class PlatformSource:
    """Well-known servers, which become ordinary rows."""

    key = KEY

    def entries(self, *, workspace: Workspace, actor: Actor) -> Sequence[CatalogueEntry]:
        """Every known server, and which of them are here already."""
        programs = {program.slug: program for program in StdioProgram.objects.all()}
        rows = list(
            McpServer.objects.for_workspace(workspace)
            .filter(global_server__isnull=True)
            .select_related("program", "workspace")
        )
        mine = [row for row in rows if row.owner_id in (None, actor.user_id)]
        return [_entry(known, programs, mine, actor) for known in known_servers().values()]

    def install(
        self,
        *,
        workspace: Workspace,
        entry: CatalogueEntry,
        actor: Actor,
        for_workspace: bool,
        secret: str,
        where: WhereUsed,
    ) -> Installing:
        """Add a server as the entry describes it; one that people sign in to leads to its sign-in."""
        known = known_servers().get(entry.slug)
        if known is None:
            raise NotFound
        named = _draft(known, secret, _free_name(known.title, workspace, actor, for_workspace))
        draft = named.used(where)
        if for_workspace:
            server = services.add_server(workspace_id=workspace.pk, draft=draft, actor=actor)
        else:
            server = services.add_personal_server(workspace=workspace, draft=draft, actor=actor)
        if known.auth is AuthKind.OAUTH:
            return Installing(
                server=server, url=reverse("mcp_servers:sign_in", args=[workspace.slug, server.pk])
            )
        # What comes of it shows on the server's card.
        services.begin_first_look(server=server, actor=actor)
        home = reverse("mcp_servers:servers", args=[workspace.slug])
        return Installing(server=server, url=f"{home}#server-{server.pk}")

    def uninstall(self, *, server: McpServer, entry: CatalogueEntry, actor: Actor) -> None:
        """Delete the server, as its card does."""
        services.delete_server(server=server, actor=actor)


def _entry(
    known: KnownServer,
    programs: dict[str, StdioProgram],
    rows: list[McpServer],
    actor: Actor,
) -> CatalogueEntry:
    recipe = known.program
    program = programs.get(known.slug) if recipe is not None else None
    problem = owner_url = ""
    if recipe is not None and (program is None or not program.is_enabled):
        problem = (
            _("The platform's owner has not put this program into the program catalogue.")
            if program is None
            else _("The platform's owner has switched this program off.")
        )
        if actor.is_superuser and program is None and recipe.package:
            problem += " " + _(
                "Install it on this machine first (in a container: in its image): %(package)s"
            ) % {"package": recipe.package}
        if actor.is_superuser:
            owner_url = (
                f"{reverse('admin:mcp_servers_stdioprogram_add')}?known={known.slug}"
                if program is None
                else reverse("admin:mcp_servers_stdioprogram_change", args=[program.pk])
            )
    installed = tuple(
        InstalledServer(
            id=row.pk,
            name=row.name,
            is_own=row.owner_id is not None,
            can_uninstall=may_manage(actor, row),
        )
        for row in rows
        if _is_from(row, known)
    )
    return CatalogueEntry(
        source=KEY,
        slug=known.slug,
        title=known.title,
        description=known.description,
        categories=known.categories,
        letters=known.letters,
        is_program=recipe is not None,
        transport_label=transports.label_of(transports.STDIO if recipe else known.transport),
        where=known.url.partition("://")[2].partition("/")[0] if known.url else "",
        auth=known.auth,
        notes=known.notes,
        docs_url=known.docs_url,
        problem=problem,
        owner_url=owner_url,
        installed=installed,
        needs_secret=_secret_label(known),
        needs_parameters=_missing_parameters(program),
    )


def _is_from(row: McpServer, known: KnownServer) -> bool:
    if known.program is not None:
        return row.program is not None and row.program.slug == known.slug
    return row.url.rstrip("/") == known.url.rstrip("/")


def _secret_label(known: KnownServer) -> str:
    if known.auth not in (AuthKind.BEARER, AuthKind.API_KEY):
        return ""
    return known.secret_label or (_("Token") if known.auth is AuthKind.BEARER else _("API key"))


def _missing_parameters(program: StdioProgram | None) -> tuple[str, ...]:
    if program is None:
        return ()
    return tuple(
        one.title for one in program.typed_parameters() if one.required and not one.default
    )


def _free_name(title: str, workspace: Workspace, actor: Actor, for_workspace: bool) -> str:
    rows = McpServer.objects.for_workspace(workspace).filter(
        owner_id=None if for_workspace else actor.user_id
    )
    taken = set(rows.values_list("name", flat=True))
    base = title[: MAX_NAME_LENGTH - 3]
    names = [title, *(f"{base} {number}" for number in range(2, _MOST_OF_ONE_NAME))]
    free = next((name for name in names if name not in taken), None)
    if free is None:
        raise Conflict(_("There are too many servers of this name already."))
    return free


def _draft(known: KnownServer, secret: str, name: str) -> ServerDraft:
    if known.program is not None:
        program = StdioProgram.objects.filter(slug=known.slug, is_enabled=True).first()
        if program is None:
            raise InvalidInput(fields={"program": [_("This program is not on offer.")]})
        defaults = {one.name: one.default for one in program.typed_parameters() if one.default}
        return ServerDraft(
            name=name, transport=transports.STDIO, program=program, parameters=defaults
        )
    auth: dict[str, str] | None = None
    if known.auth is AuthKind.BEARER:
        auth = {"token": secret}
    elif known.auth is AuthKind.API_KEY:
        auth = {"header": known.header, "value": secret}
    is_oauth = known.auth is AuthKind.OAUTH
    return ServerDraft(
        name=name,
        transport=known.transport,
        url=known.url,
        auth_type=_AUTH_TYPES[known.auth],
        auth=auth,
        account_use=known.account_use if is_oauth else None,
        oauth_scope=known.scope if is_oauth else None,
    )
