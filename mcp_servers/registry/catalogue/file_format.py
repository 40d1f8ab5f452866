"""The catalogue's file: well-known servers, read strictly.

    {"servers": [{"slug": "notion", "title": "Notion", "description": "…", "categories": ["Documents"],
                  "url": "https://mcp.notion.com/mcp", "auth": "oauth", "docs_url": "https://…"}],
     "hidden": ["stripe"]}

`hidden` is for the owner's own file: it takes entries of the platform's away. Entries of the same slug replace them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Self

import pydantic
from django.utils.translation import gettext as _
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from mcp_servers.client import transports
from mcp_servers.models import AccountUse, programs
from mcp_servers.models.connection_config import describe_errors
from mcp_servers.registry.catalogue.values import AuthKind
from workspaces import outbound
from workspaces.errors import DomainError, InvalidInput

MAX_FILE_BYTES: Final = 1024 * 1024
MAX_ENTRIES: Final = 1000

_SLUG: Final = r"^[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?$"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _known_transport(name: str) -> str:
    if name not in dict(transports.choices()):
        raise ValueError("there is no such transport")
    return name


class ProgramRecipe(_Strict):
    """How the platform's owner would put a program into the program catalogue."""

    command: str = Field(max_length=500)
    args: tuple[str, ...] = ()
    parameters: tuple[programs.Parameter, ...] = ()
    env_names: tuple[str, ...] = ()
    package: str = Field("", max_length=200)
    """What has to be installed on the machine first."""


class KnownServer(_Strict):
    """One well-known server: a remote one, or a program."""

    slug: str = Field(pattern=_SLUG)
    title: str = Field(min_length=1, max_length=60)
    description: str = Field(min_length=1, max_length=300)
    categories: tuple[str, ...] = Field(min_length=1, max_length=5)
    letters: str = Field("", max_length=2)
    transport: Annotated[str, AfterValidator(_known_transport)] = transports.STREAMABLE_HTTP
    url: str = Field("", max_length=outbound.MAX_URL_LENGTH)
    former_urls: tuple[str, ...] = Field((), max_length=10)
    """Where it answers no more. Whoever manages a server with such an address is told the new one."""
    program: ProgramRecipe | None = None
    auth: AuthKind = AuthKind.NONE
    header: str = Field("", max_length=200)
    """In which an API key is sent."""
    secret_label: str = Field("", max_length=100)
    scope: str = Field("", max_length=1000)
    account_use: AccountUse = AccountUse.USER
    notes: str = Field("", max_length=500)
    docs_url: str = Field("", max_length=500)

    @property
    def transport_label(self) -> str:
        """Of its transport, in words."""
        return transports.label_of(self.transport)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if bool(self.url) == (self.program is not None):
            raise ValueError("a server has a URL, or else is a program")
        if self.program is not None and self.auth is not AuthKind.NONE:
            raise ValueError("a program takes its credentials from its environment")
        if (self.auth is AuthKind.API_KEY) != bool(self.header):
            raise ValueError("an API key has a header, and only an API key has one")
        if self.docs_url and not self.docs_url.startswith("https://"):
            raise ValueError("the documentation is at an https:// address")
        try:
            self._check_target()
        except DomainError as error:
            raise ValueError(error.message) from error
        return self

    def _check_target(self) -> None:
        if self.url:
            outbound.parse_endpoint(self.url, schemes=transports.schemes_of(transports.AUTO))
        if self.program is not None:
            programs.check_program(
                command=self.program.command,
                args=list(self.program.args),
                parameters=[one.model_dump(mode="json") for one in self.program.parameters],
                env_names=list(self.program.env_names),
            )


class KnownServers(_Strict):
    """A whole file."""

    servers: tuple[KnownServer, ...] = Field((), max_length=MAX_ENTRIES)
    hidden: tuple[str, ...] = Field((), max_length=MAX_ENTRIES)

    @model_validator(mode="after")
    def _each_slug_once(self) -> Self:
        slugs = [server.slug for server in self.servers]
        if len(set(slugs)) != len(slugs):
            raise ValueError("two servers have the same slug")
        return self


def read_known_servers(path: Path) -> KnownServers:
    """Read a file.

    Raises:
        InvalidInput: it cannot be read, or says where it is wrong.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidInput(
            _("The catalogue file %(name)s cannot be read.") % {"name": path.name}
        ) from error
    if len(raw) > MAX_FILE_BYTES:
        raise InvalidInput(_("The catalogue file %(name)s is too long.") % {"name": path.name})
    try:
        return KnownServers.model_validate_json(raw)
    except pydantic.ValidationError as error:
        raise InvalidInput(
            _("The catalogue file %(name)s is wrong. %(value)s")
            % {"name": path.name, "value": " ".join(describe_errors(error)[:5])}
        ) from error
