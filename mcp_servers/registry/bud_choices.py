"""Which buds a workspace has, where a server is added. The app above registers who knows them and changes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from django.utils.translation import gettext as _

from workspaces.errors import InvalidInput

if TYPE_CHECKING:
    from mcp_servers.models import McpServer
    from workspaces.actors import Actor


@dataclass(frozen=True, slots=True)
class BudChoice:
    """A bud that a server can be given to."""

    id: UUID
    name: str
    takes_all_tools: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WhereUsed:
    """Where a new server is used."""

    is_used_everywhere: bool = True
    """In every bud that takes all tools; somebody's own: in all their chats."""
    bud_ids: tuple[UUID, ...] = ()
    """Buds that use it besides, whatever tools they take."""


EVERYWHERE: Final = WhereUsed()

ListBuds: TypeAlias = "Callable[[UUID], Sequence[BudChoice]]"
GiveServer: TypeAlias = "Callable[[McpServer, Sequence[UUID], Actor], None]"

_registered: list[tuple[ListBuds, GiveServer]] = []


def register_buds(list_them: ListBuds, give: GiveServer) -> None:
    """Say who knows the buds, and who gives a server to some of them. Called once at start."""
    _registered[:] = [(list_them, give)]


def buds_of(workspace_id: UUID) -> list[BudChoice]:
    """The buds of a workspace, by name."""
    return [bud for list_them, _give in _registered for bud in list_them(workspace_id)]


def check_buds(workspace_id: UUID, bud_ids: Sequence[UUID]) -> None:
    """See whether these buds are there.

    Raises:
        InvalidInput: one is not in this workspace.
    """
    if not {bud.id for bud in buds_of(workspace_id)}.issuperset(bud_ids):
        raise InvalidInput(fields={"bud_ids": [_("A bud named here is not in this workspace.")]})


def give_to_buds(server: McpServer, bud_ids: Sequence[UUID], actor: Actor) -> None:
    """Have these buds use a server.

    Raises:
        PermissionDenied: the actor may not change buds.
        InvalidInput: there is no such bud in the server's workspace.
    """
    for _list, give in _registered:
        give(server, bud_ids, actor)
