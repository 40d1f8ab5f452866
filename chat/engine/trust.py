"""Words from outside: whether the model is about to read some, and how people are shown them.

What is said there may be meant to steer the model; from then on tools that could carry something out ask first,
whatever an administrator or a person has allowed, until the turn ends and the person speaks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from chat.engine.reading import servers_of_attachments
from chat.engine.rows import calls_of
from chat.models import Turn
from mcp_servers.hidden_text import show_hidden
from mcp_servers.models import McpTool
from mcp_servers.values import ToolAnnotations


def is_from_outside(annotations: Mapping[str, Any]) -> bool:
    """Whether a tool's result may hold words of strangers: unless a trusted server says that it reaches nothing."""
    return not (annotations.get("is_trusted") and annotations.get("open_world") is False)


def reads_untrusted(turn: Turn, step: int) -> bool:
    """Whether what this turn's model reads for this step holds anything from outside."""
    if _attached(turn):
        return True
    if step == 0:
        return False  # no call of this turn comes before its first answer
    results = calls_of(turn).filter(result__isnull=False).values_list("annotations", flat=True)
    return any(is_from_outside(one) for one in results)


def shown(value: Any) -> Any:
    """A server's JSON as people see it: with hidden characters written out. The log keeps what came."""
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else show_hidden(value)
    if isinstance(value, Mapping):
        return {shown(key): part if key == "data" else shown(part) for key, part in value.items()}
    return [shown(part) for part in value] if isinstance(value, list) else value


def _attached(turn: Turn) -> bool:
    """Also what could not be read counts: the server has answered."""
    servers = servers_of_attachments(turn.workspace_id, turn.user_message_id)
    return any(not _reaches_nothing(one, turn.workspace_id) for one in servers)


def _reaches_nothing(server_id: UUID, workspace_id: UUID) -> bool:
    """Whether a trusted server says so of each of its tools.

    Resources have no such hint of their own, and those of a mailbox hold words of strangers however much the
    server that keeps it is trusted.
    """
    tools = McpTool.objects.for_workspace(workspace_id).filter(
        server_id=server_id, server__trusts_annotations=True
    )
    hints = list(tools.values_list("annotations", flat=True))
    return bool(hints) and all(ToolAnnotations.from_wire(one).open_world is False for one in hints)
