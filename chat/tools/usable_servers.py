"""Which servers a chat uses: what the bud, the chat and the platform name, as one list with reasons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _

from chat.models import Bud, Conversation
from chat.values import McpConfigOverrides
from mcp_servers.registry.scopes.effective import EffectiveServer, ServerSource, effective_servers
from workspaces.errors import NotFound

_OFF_HERE: Final = gettext_noop("You switched it off in this chat.")


@dataclass(frozen=True, slots=True)
class ChatSetting:
    """Which servers a chat can use: of one that is open, or of one that is about to begin."""

    bud: Bud
    user_id: UUID | None
    """Whose chat it is; None: nobody's, so no personal server is used."""
    overrides: McpConfigOverrides
    """What the chat changes of its bud."""
    conversation_id: UUID | None = None
    """None: the chat has not begun."""

    @classmethod
    def of(cls, conversation: Conversation, bud: Bud | None = None) -> ChatSetting:
        """That of an open chat, with the bud that answers; None: its own, which has to be loaded."""
        return cls(
            bud=bud or conversation.bud,
            user_id=conversation.owner_id,
            overrides=conversation.overrides,
            conversation_id=conversation.pk,
        )

    @property
    def workspace_id(self) -> UUID:
        return self.bud.workspace_id

    def servers(self) -> tuple[EffectiveServer, ...]:
        """Every server considered, in the order of precedence.

        Raises:
            InvalidInput: a stored configuration does not fit its schema.
        """
        judged = effective_servers(
            workspace_id=self.workspace_id,
            user_id=self.user_id,
            bud_servers=self.bud.mcp.servers,
            added=self.overrides.additional_servers,
            takes_all_tools=self.bud.takes_all_tools,
        )
        off = set(self.overrides.disabled_servers)
        return tuple(_switched_off(one) if _may_be_off(one, off) else one for one in judged)

    def usable_server(self, server_id: UUID) -> EffectiveServer:
        """One server that the chat may use.

        Raises:
            NotFound: it may not, for whatever reason.
        """
        for one in self.servers():
            if one.server_id == server_id and one.is_usable:
                return one
        raise NotFound(_("This server is not available in this chat."))


def _may_be_off(one: EffectiveServer, off: set[UUID]) -> bool:
    is_required = one.source is ServerSource.REQUIRED
    return one.is_usable and one.server_id in off and not is_required


def _switched_off(one: EffectiveServer) -> EffectiveServer:
    return replace(one, is_usable=False, code="off_here", reason=gettext(_OFF_HERE))
