"""Which servers a conversation uses: what the bud, the conversation and the platform name, as one list with reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from uuid import UUID

from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _

from chat.models import Bud, Conversation
from chat.values import McpConfigOverrides
from mcp_servers.registry.scopes.effective import EffectiveServer, ServerSource, effective_servers
from workspaces.errors import NotFound

_OFF_HERE: Final = gettext_noop("You switched it off in this chat.")


def servers_of(
    bud: Bud,
    conversation: Conversation | None = None,
    *,
    user_id: UUID | None = None,
    overrides: McpConfigOverrides | None = None,
) -> tuple[EffectiveServer, ...]:
    """Every server considered for a conversation of this bud, in the order of precedence.

    Args:
        user_id: for whom, where there is no conversation yet.
        overrides: what that one will change of its bud.

    Raises:
        InvalidInput: a stored configuration does not fit its schema.
    """
    if conversation is not None:
        overrides = conversation.overrides
    overrides = overrides or McpConfigOverrides()
    judged = effective_servers(
        workspace_id=bud.workspace_id,
        user_id=conversation.owner_id if conversation is not None else user_id,
        bud_servers=bud.mcp.servers,
        added=overrides.additional_servers,
        takes_all_tools=bud.takes_all_tools,
    )
    off = set(overrides.disabled_servers)
    return tuple(_switched_off(one) if _may_be_off(one, off) else one for one in judged)


def usable_server(conversation: Conversation, server_id: UUID) -> EffectiveServer:
    """One server that this conversation may use. Needs `bud` loaded.

    Raises:
        NotFound: it may not, for whatever reason.
    """
    for one in servers_of(conversation.bud, conversation):
        if one.server_id == server_id and one.is_usable:
            return one
    raise NotFound(_("This server is not available in this chat."))


def _may_be_off(one: EffectiveServer, off: set[UUID]) -> bool:
    is_required = one.source is ServerSource.REQUIRED
    return one.is_usable and one.server_id in off and not is_required


def _switched_off(one: EffectiveServer) -> EffectiveServer:
    return replace(one, is_usable=False, code="off_here", reason=gettext(_OFF_HERE))
