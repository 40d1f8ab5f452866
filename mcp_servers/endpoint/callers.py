"""Who a client stands for, and what its token lets it do: one that a person pasted, or one of a sign-in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from mcp_servers.endpoint.sign_in.scopes import CALL, READ
from mcp_servers.models import ClientSignIn
from workspaces.actors import Actor, Source

if TYPE_CHECKING:
    from workspaces.models import ApiToken, Workspace

_IN_THE_PRODUCT: Final = frozenset({"chat"})
"""What a client's call asks for at the gate: the same as a call of its person's chat."""


@dataclass(frozen=True, slots=True)
class EndpointCaller:
    """A client at the endpoint of one workspace."""

    actor: Actor
    user_id: UUID
    workspace_id: UUID
    workspace_name: str
    reads_only: bool
    """It may call nothing but tools that just read."""


def widest_caller(actor: Actor, workspace: Workspace) -> EndpointCaller:
    """A client that this person lets use all they may."""
    assert actor.user_id is not None
    return EndpointCaller(
        actor=actor,
        user_id=actor.user_id,
        workspace_id=workspace.pk,
        workspace_name=workspace.name,
        reads_only=False,
    )


def caller_of(actor: Actor, credential: ApiToken | ClientSignIn) -> EndpointCaller | None:
    """The caller with this token or sign-in; None: the token is for something else.

    Args:
        actor: as the request was bound, with the token's scopes.
    """
    scopes = frozenset(credential.scopes) & {READ, CALL}
    if not scopes:
        return None
    if isinstance(credential, ClientSignIn):
        sign_in, name = "client", credential.client_name
    else:
        sign_in, name = actor.sign_in, credential.name
    return EndpointCaller(
        actor=replace(
            actor,
            source=Source.GATEWAY,
            scopes=_IN_THE_PRODUCT,
            sign_in=sign_in,
            client=name,
        ),
        user_id=credential.user_id,
        workspace_id=credential.workspace_id,
        workspace_name=credential.workspace.name,
        reads_only=CALL not in scopes,
    )
