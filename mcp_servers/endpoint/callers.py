"""Who a client stands for, and what its token lets it do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from workspaces.actors import Actor, Source

if TYPE_CHECKING:
    from workspaces.models import ApiToken

READ: Final = "mcp:read"
CALL: Final = "mcp:call"
_IN_THE_PRODUCT: Final = frozenset({"chat"})
"""What a client's call asks for at the gate: the same as a call of its person's chat."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A client at the endpoint of one workspace."""

    actor: Actor
    user_id: UUID
    workspace_id: UUID
    workspace_name: str
    reads_only: bool
    """It may call nothing but tools that just read."""


def caller_of(actor: Actor, token: ApiToken) -> Caller | None:
    """The caller with this token; None: the token is for something else.

    Args:
        actor: as the request was bound, with the token's scopes.
    """
    scopes = frozenset(token.scopes) & {READ, CALL}
    if not scopes:
        return None
    return Caller(
        actor=replace(actor, source=Source.GATEWAY, scopes=_IN_THE_PRODUCT),
        user_id=token.user_id,
        workspace_id=token.workspace_id,
        workspace_name=token.workspace.name,
        reads_only=CALL not in scopes,
    )
