"""What stands in the catalogue, and what a source of entries can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from django.utils.translation import gettext_noop

if TYPE_CHECKING:
    from mcp_servers.models import McpServer
    from mcp_servers.registry.bud_choices import WhereUsed
    from workspaces.actors import Actor
    from workspaces.models import Workspace


class AuthKind(StrEnum):
    """What a person needs before the server answers."""

    NONE = "none"
    BEARER = "bearer"
    API_KEY = "api_key"
    OAUTH = "oauth"


AUTH_LABELS = {
    AuthKind.NONE: gettext_noop("No sign-in"),
    AuthKind.BEARER: gettext_noop("Access token"),
    AuthKind.API_KEY: gettext_noop("API key"),
    AuthKind.OAUTH: gettext_noop("Sign-in"),
}


class InstallableBy(StrEnum):
    """Who may install an entry."""

    ADMINS = "admins"
    EVERYBODY = "everybody"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledServer:
    """A server that came from an entry, as far as the reader may know it."""

    id: UUID
    name: str
    is_own: bool
    """The reader's own, and not the workspace's."""
    can_uninstall: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """One server on offer. Its texts are shown as they are, escaped."""

    source: str
    """The key of the source it is from."""
    slug: str
    """Unique in its source: small letters, digits and hyphens."""
    title: str
    description: str
    categories: tuple[str, ...] = ()
    letters: str = ""
    """One or two, for its tile; empty: the first of the title."""
    is_program: bool = False
    transport_label: str
    where: str = ""
    """A host, or a program's slug."""
    auth: AuthKind = AuthKind.NONE
    provider: str = ""
    """Who runs it between us and the service, if somebody does."""
    notes: str = ""
    docs_url: str = ""
    problem: str = ""
    """Why it cannot be installed here, in plain words."""
    owner_url: str = ""
    """Where the platform's owner can remove that problem."""
    audience: InstallableBy = InstallableBy.ADMINS
    """Filled in by the listing."""
    installed: tuple[InstalledServer, ...] = ()
    needs_secret: str = ""
    """The label of the one secret that installing asks for; empty: none."""
    needs_parameters: tuple[str, ...] = ()
    """Names of a program's parameters that have to be filled in on the form of the servers page."""

    @property
    def is_shared_here(self) -> bool:
        """The workspace has it."""
        return any(not one.is_own for one in self.installed)

    @property
    def is_mine(self) -> bool:
        """The reader has one of their own."""
        return any(one.is_own for one in self.installed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installing:
    """What came of an install."""

    server: McpServer | None
    url: str
    """Where the person goes next, in our own site: to the sign-in, or to the server."""


class CatalogueSource(Protocol):
    """Adds entries to the catalogue, and installs them. Both are asked within a request, and wait for no network longer than its own bound."""

    key: str

    def entries(self, *, workspace: Workspace, actor: Actor) -> Sequence[CatalogueEntry]:
        """What is on offer for this reader; an empty list where the source is not set up."""
        ...

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
        """Make a server of an entry: the workspace's, or the actor's own. Who may was asked before.

        Raises:
            DomainError: in plain words.
        """
        ...

    def uninstall(self, *, server: McpServer, entry: CatalogueEntry, actor: Actor) -> None:
        """Remove a server that came from an entry, and what the source keeps of it.

        Raises:
            PermissionDenied: it is not the actor's to remove.
        """
        ...
