"""Which servers a conversation of one person may use, and why or why not. One query; the rest is pure.

Precedence, from the first to the last:

1. servers that the platform requires everywhere;
2. the bud's own, in the bud's order;
3. those that every bud uses that takes all tools, by name;
4. those added in the conversation that belong to the workspace or to the platform;
5. the person's own: those for all their chats, and those that the conversation names.

A name belongs to the first server that has it: a later one whose name is the same, or looks the same (case, accents
and letters of other alphabets do not count), is not used and says so. So nobody's own server can pass for one of the
workspace. Among a workspace's own servers a name is unique in the database; there the rule only meets look-alikes.

A server of somebody else, of another workspace, or that no longer exists is one and the same to the reader: unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from mcp_servers.client.errors import NOTHING_ENTERED
from mcp_servers.client.hidden_text import skeleton
from mcp_servers.models import McpServer, ServerScope, ServerStatus
from workspaces.database.prepared import PreparedRows

if TYPE_CHECKING:
    from mcp_servers.client.values import JsonValue


class ServerSource(StrEnum):
    """Why a server is considered for a conversation."""

    REQUIRED = "required"
    BUD = "bud"
    ALL_TOOLS = "all_tools"
    CONVERSATION = "conversation"
    PERSONAL = "personal"


_NOBODY: Final = UUID(int=0)
_RANKS: Final = {source: rank for rank, source in enumerate(ServerSource)}
_UNKNOWN: Final = gettext_noop("It does not exist in this workspace, or belongs to somebody else.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveServer:
    """One server, and whether this conversation may use it."""

    server_id: UUID
    server: McpServer | None
    """None: an id that is nobody's business here."""
    source: ServerSource
    is_usable: bool
    code: str = ""
    """Empty, unknown, off, not_present, not_allowed, collision, auth_required,
    credentials_refused or error."""
    reason: str = ""
    """In words for people; of a usable server: what they should know."""

    @property
    def label(self) -> str:
        """The name that its tools are shown under."""
        return self.server.name if self.server is not None else ""

    def as_json(self) -> dict[str, JsonValue]:
        """As the REST interface and the chat show it."""
        server = self.server
        return {
            "id": str(self.server_id),
            "name": self.label,
            "scope": server.scope if server is not None else None,
            "source": self.source.value,
            "is_usable": self.is_usable,
            "code": self.code,
            "reason": self.reason,
            "status": server.state.status if server is not None else None,
            "transport": (server.state.resolved_transport or server.transport)
            if server is not None
            else None,
        }


def effective_servers(
    *,
    workspace_id: UUID,
    user_id: UUID | None,
    bud_servers: Sequence[UUID],
    added: Sequence[UUID] = (),
    takes_all_tools: bool = False,
) -> tuple[EffectiveServer, ...]:
    """Every server that is considered for a conversation, in the order of precedence, with a reason for each.

    Args:
        user_id: whose conversation it is; None: nobody's, so no personal server is used.
        bud_servers: what the bud names.
        added: what the conversation names besides.
        takes_all_tools: whether the bud uses what is meant for all buds.
    """
    wanted = list(dict.fromkeys([*bud_servers, *added]))
    statement = _candidates(len(wanted), takes_all_tools)
    rows = statement.all(workspace_id, user_id or _NOBODY, *wanted)
    known = {row.pk: row for row in rows}
    required = [row.pk for row in known.values() if _is_required(row)]
    everywhere = [row for row in known.values() if row.is_used_everywhere and row.is_active]
    for_all = [row.pk for row in everywhere if row.owner_id is None and takes_all_tools]
    own = [row.pk for row in everywhere if row.owner_id is not None and row.owner_id == user_id]
    of_bud, of_all = set(bud_servers), set(for_all)
    considered = [
        (
            server_id,
            _source(known.get(server_id), in_bud=server_id in of_bud, in_all=server_id in of_all),
        )
        for server_id in dict.fromkeys([*required, *wanted, *for_all, *own])
    ]
    considered.sort(key=lambda one: _RANKS[one[1]])
    return tuple(_judge(considered, known, user_id))


@lru_cache(maxsize=128)
def _candidates(count: int, takes_all_tools: bool) -> PreparedRows[McpServer]:
    """The statement for so many ids."""

    def build(workspace_id: UUID, user_id: UUID, *ids: UUID) -> Any:
        everywhere = Q(is_used_everywhere=True, is_active=True)
        wanted = Q(pk__in=ids) | Q(global_server__is_required=True)
        wanted |= everywhere & Q(owner=user_id, workspace__allows_personal_servers=True)
        if takes_all_tools:
            wanted |= everywhere & Q(owner=None)
        return (
            McpServer.objects.for_workspace(workspace_id)
            .filter(wanted)
            .select_related("workspace", "global_server", "program")
            .order_by("name", "id")
        )

    return PreparedRows(build, *[UUID] * (count + 2))


def usable_ids(servers: Iterable[EffectiveServer]) -> list[UUID]:
    """The ids of those that may be used, in their order."""
    return [one.server_id for one in servers if one.is_usable]


def _is_required(row: McpServer) -> bool:
    return row.global_server is not None and row.global_server.is_required


def _source(row: McpServer | None, *, in_bud: bool, in_all: bool) -> ServerSource:
    if row is not None and _is_required(row):
        return ServerSource.REQUIRED
    if row is not None and row.scope == ServerScope.PERSONAL:
        return ServerSource.PERSONAL
    if in_bud:
        return ServerSource.BUD
    return ServerSource.ALL_TOOLS if in_all else ServerSource.CONVERSATION


def _judge(
    considered: Iterable[tuple[UUID, ServerSource]],
    known: dict[UUID, McpServer],
    user_id: UUID | None,
) -> Iterable[EffectiveServer]:
    holders: dict[str, str] = {}
    for server_id, source in considered:
        row = known.get(server_id)
        if row is None or (row.owner_id is not None and row.owner_id != user_id):
            # Somebody else's looks like one that never was, also in its source.
            announced = ServerSource.CONVERSATION if source is ServerSource.PERSONAL else source
            yield EffectiveServer(
                server_id=server_id,
                server=None,
                source=announced,
                is_usable=False,
                code="unknown",
                reason=_(_UNKNOWN),
            )
            continue
        code, reason = _obstacle(row)
        if not code:
            name = skeleton(row.name)
            if name in holders:
                code = "collision"
                reason = _("Its name is that of “%(holders)s”, or looks like it.") % {
                    "holders": holders[name]
                }
            else:
                holders[name] = row.name
        if code:
            yield EffectiveServer(
                server_id=server_id,
                server=row,
                source=source,
                is_usable=False,
                code=code,
                reason=reason,
            )
            continue
        code, reason = _hint(row)
        yield EffectiveServer(
            server_id=server_id, server=row, source=source, is_usable=True, code=code, reason=reason
        )


def _obstacle(row: McpServer) -> tuple[str, str]:
    if row.owner_id is not None and not row.workspace.allows_personal_servers:
        return "not_allowed", _("This workspace does not allow personal servers.")
    if row.global_server is not None and not row.global_server.is_present:
        return "not_present", _("The platform's file no longer names it.")
    if not row.is_active:
        return "off", _("It is switched off.")
    return "", ""


def _hint(row: McpServer) -> tuple[str, str]:
    """What is wrong with a server that may be used all the same: its calls say so themselves, and may heal it."""
    if row.state.status == ServerStatus.AUTH_REQUIRED:
        if row.waits_for_people:
            return "auth_required", _("It needs a sign-in.")
        if row.state.status_reason.partition("\n")[0] == NOTHING_ENTERED:
            return "credentials_refused", _(
                "It asks for a sign-in or a key. Whoever manages it has to enter one."
            )
        return "credentials_refused", _(
            "It refuses its credentials. Whoever manages it has to enter others."
        )
    if row.state.status == ServerStatus.ERROR:
        return "error", row.state.status_reason.partition("\n")[0]
    return "", ""
