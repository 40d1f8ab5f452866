"""Who acts, for whom, from where: a frozen value that every service is given. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Role(StrEnum):
    """A member's role in one workspace, strongest first."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class ActorKind(StrEnum):
    USER = "user"
    SYSTEM = "system"
    ANONYMOUS = "anonymous"


class Source(StrEnum):
    """The door through which somebody came."""

    CHAT = "chat"
    WEB = "web"
    API = "api"
    ADMIN = "admin"
    GATEWAY = "gateway"
    TASK = "task"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    kind: ActorKind
    label: str
    """E-mail address of a person, or the name of the part of the system, in words that auditors read."""
    source: Source
    user_id: UUID | None = None
    workspace_id: UUID | None = None
    role: Role | None = None
    is_auditor: bool = False
    is_superuser: bool = False
    ip_address: str | None = None
    request_id: str = ""
    on_behalf_of: str = ""
    """Whom a part of the system acts for; "" if for nobody or for itself."""
    sign_in: str = ""
    """How the actor proved who it is: "password", "session", "token", "client", or "command" for whoever has the machine.

    With single sign-on it is "sso" in place of "password", and "passkey" with a passkey alone. With two-step
    verification it is "password+code", "password+passkey", or "password+recovery" for a recovery code.
    """
    is_address_confirmed: bool = True
    """Whether a person has answered a mail to the address in `label`."""
    token_id: UUID | None = None
    client: str = ""
    """The MCP client that the person came with, by the name that they read when they signed in with it."""
    scopes: frozenset[str] | None = None
    """What an API token is limited to; None for a person's own session."""

    @classmethod
    def system(
        cls,
        *,
        label: str = "system",
        source: Source,
        workspace_id: UUID | None,
        on_behalf_of: str = "",
    ) -> Actor:
        """The platform itself, at work in one workspace (or in none), for a person or for itself."""
        return cls(
            kind=ActorKind.SYSTEM,
            label=label,
            source=source,
            workspace_id=workspace_id,
            on_behalf_of=on_behalf_of,
        )

    @classmethod
    def anonymous(cls, *, source: Source, ip_address: str | None, request_id: str) -> Actor:
        return cls(
            kind=ActorKind.ANONYMOUS,
            label="anonymous",
            source=source,
            ip_address=ip_address,
            request_id=request_id,
        )
