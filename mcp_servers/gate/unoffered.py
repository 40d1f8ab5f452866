"""What programs ask for by a name that they are not offered: nothing is sent, and the log has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from django.conf import settings
from django.utils.translation import gettext_noop as _
from django.utils.translation import override
from uuid_utils.compat import uuid7

from audit.actions import Action, RefusedBy
from audit.services import EntryDraft, Ref, record
from mcp_servers.client.canonical import clean_text
from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.gate.admission import GatedCall
from workspaces.words.formats import written_for

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.client.values import ToolCallRequest
    from workspaces.actors import Actor

LONGEST_NAME: Final = 256
_RULES: Final = {
    Action.TOOL_CALL_REFUSED: ("tool.not_found", _("There was no such tool.")),
    Action.RESOURCE_READ_REFUSED: ("resource.uri", _("There was no such resource.")),
    Action.PROMPT_GET_REFUSED: ("prompt.not_found", _("There was no such prompt.")),
}


def refuse_unoffered(request: ToolCallRequest) -> NoReturn:
    """Record that somebody called a tool that is there and that they are not offered, with the reason.

    Raises:
        CallRefused: always, unless one of the others fits better.
        ToolNotFound, PermissionDenied, InvalidArguments: as call_tool().
    """
    with override(settings.LANGUAGE_CODE), written_for(None):
        GatedCall(request).refuse_unoffered()


def refuse_unknown(action: Action, *, workspace_id: UUID, actor: Actor, name: str) -> None:
    """Record that somebody asked for what is not there. The name is theirs, so it is cleaned and cut.

    Args:
        action: that of a refused call, read or prompt.
    """
    rule, reason = _RULES[action]
    record(
        EntryDraft(
            action=action,
            actor=actor,
            workspace_id=workspace_id,
            call_id=uuid7(),
            tool=Ref(id=None, name=show_hidden(clean_text(name[:LONGEST_NAME]))[:LONGEST_NAME]),
            refused_by=RefusedBy.NOT_FOUND,
            rule=rule,
            details={"reason": reason},
        )
    )
