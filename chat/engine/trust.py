"""Words from outside: whether the model reads some, where they came from, and how people are shown them.

What is said there may be meant to steer the model. As long as it is on the path that the model reads, tools that could
carry something out ask first, whatever an administrator or a person has allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from chat.engine.path_reading import has_result, parts_up_to
from chat.engine.turn_cache import RecentPath
from chat.models import Attachment, Bud, Message, ToolCall, Turn
from chat.tools.builtin.files import RESOURCE, arguments_for_people
from chat.values import ORIGIN, AttachmentStatus, BuiltinTool, Decision, MessageOrigin, MessageRole
from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.client.values import ToolAnnotations
from mcp_servers.gate.destinations import destinations_of, names_host, names_server, server_key
from mcp_servers.models import McpResource, McpTool
from mcp_servers.registry.consent.policy import UNTRUSTED_CONTENT
from workspaces.database.prepared import PreparedRows

_LONGEST_SOURCE = 200
_FROM_OUTSIDE = {
    MessageOrigin.FILE: "this chat was imported from a file",
    MessageOrigin.SHARED: "this chat was copied from one that somebody shared",
}


def is_from_outside(annotations: Mapping[str, Any]) -> bool:
    """Whether a tool's result may hold words of strangers: unless a trusted server says that it reaches nothing."""
    return not (annotations.get("is_trusted") and annotations.get("open_world") is False)


class ContentSource(NamedTuple):
    """Where words from outside came from."""

    text: str
    """As a clause; empty: there are none."""
    is_final: bool = True
    """Whether that stays so: no server's own word of today was taken for it."""


def find_source(
    path: Sequence[Message],
    calls: Mapping[UUID, Iterable[ToolCall]],
    attached: Mapping[UUID, Iterable[Attachment]],
) -> ContentSource:
    """The newest words from outside on the path that a model reads."""
    closed: dict[UUID, bool] = {}
    for message in reversed(path):
        if origin := message.json_meta.get(ORIGIN):
            return ContentSource(_FROM_OUTSIDE[MessageOrigin(origin)])
        for call in reversed(list(calls.get(message.id, ()))):
            if has_result(call) and is_from_outside(call.annotations):
                return ContentSource(call_in_words(call))
        for one in attached.get(message.id, ()):
            if one.status == AttachmentStatus.QUEUED:
                continue
            if one.server_id is None:
                return ContentSource(f"the file {_quoted(one.title)} was attached")
            # Also what could not be read counts: the server has answered.
            if one.server_id not in closed:
                closed[one.server_id] = _reaches_nothing(one.server_id, one.workspace_id)
            if not closed[one.server_id]:
                return ContentSource(
                    f"{_quoted(one.uri)} of the server {_quoted(one.server_name)} was attached"
                )
    return ContentSource("", is_final=not closed)


def call_in_words(call: ToolCall) -> str:
    """What a call has brought before the model, as a clause for people."""
    if call.builtin == BuiltinTool.SEARCH_KNOWLEDGE:
        return "the assistant's knowledge files were searched"
    if call.builtin and call.server_id is None:
        return f"the file {_quoted(str(call.arguments.get('name', '')))} was read"
    given = arguments_for_people(call) if call.builtin else call.arguments
    for value in (given or {}).values():
        if isinstance(value, str) and (page := _page(value)):
            return f"the page {_quoted(page)} was read"
    return f"a result of {_quoted(f'{call.server_name}.{call.tool_name}')} was read"


def known_destinations(
    call: ToolCall, turn: Turn, bud: Bud, past: RecentPath | None = None
) -> frozenset[str]:
    """Where a call may carry data although words from outside were read.

    Those are the servers that the bud or the conversation lists, the hosts and servers that the bud's prompt or the
    person's messages name, and what the person has approved in this conversation.
    """
    if call.server_id is None:
        return frozenset()
    here = server_key(call.server_id)
    reached = frozenset(_reached_by(call))
    unknown = set(reached)
    if call.server_id in (*bud.mcp.servers, *turn.conversation.overrides.additional_servers):
        unknown.discard(here)

    def is_named(key: str, text: str) -> bool:
        return names_server(text, call.server_name) if key == here else names_host(text, key)

    for text in (bud.system_prompt, *_said_by_person(turn, past)):
        if not unknown:
            return reached
        unknown -= {key for key in unknown if is_named(key, text)}
    if unknown:
        for row in _approved_calls(turn, past):
            if row.annotations.get("is_trusted") and row.annotations.get("read_only"):
                unknown -= set(_reached_by(row))
    return reached - unknown


def _approved_calls(turn: Turn, past: RecentPath | None) -> list[ToolCall]:
    if past is None or not past.is_all:
        return _APPROVED.all(turn.workspace_id, turn.conversation_id)
    return [call for call in past.calls if _is_approved(call)]


def _is_approved(call: ToolCall) -> bool:
    return (
        call.server_id is not None
        and call.approval_rule == UNTRUSTED_CONTENT
        and call.decision == Decision.APPROVED
        and call.approval_id is not None
    )


def _approved(workspace_id: UUID, conversation_id: UUID) -> Any:
    rows = ToolCall.objects.for_workspace(workspace_id).filter(
        turn__conversation_id=conversation_id,
        server_id__isnull=False,
        approval_rule=UNTRUSTED_CONTENT,
        decision=Decision.APPROVED.value,
        approval_id__isnull=False,  # the calls of a fork are copies, of what was approved elsewhere
    )
    named = ("server_id", "server_name", "tool_name", "builtin", "arguments", "annotations")
    return rows.only(*named).order_by()


_APPROVED = PreparedRows[ToolCall](_approved, UUID, UUID)


def may_read_resource(call: ToolCall, turn: Turn, bud: Bud) -> bool:
    """Whether the model may have its server read an address, although the address could carry something out.

    It may if everything that the address reaches is known, or if the server itself lists it or has named it.
    """
    if not turn.has_read_untrusted or turn.workspace.reads_outside_unasked:
        return True
    assert call.server_id is not None
    uri = str(call.arguments["resource"])
    listed = McpResource.objects.for_workspace(turn.workspace_id).filter(
        server_id=call.server_id, uri=uri, is_template=False
    )
    given = ToolCall.objects.for_workspace(turn.workspace_id).filter(
        turn__conversation_id=turn.conversation_id,
        server_id=call.server_id,
        model_text__contains=uri,
        result__isnull=False,
    )
    is_known = set(_reached_by(call)) <= known_destinations(call, turn, bud)
    return (
        is_known
        or listed.exists()
        or given.exists()
        or _reaches_nothing(call.server_id, turn.workspace_id)
    )


def shown(value: Any) -> Any:
    """A server's JSON as people see it: with hidden characters written out. The log keeps what came."""
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else show_hidden(value)
    if isinstance(value, Mapping):
        return {shown(key): part if key == "data" else shown(part) for key, part in value.items()}
    return [shown(part) for part in value] if isinstance(value, list) else value


def _said_by_person(turn: Turn, past: RecentPath | None) -> Iterator[str]:
    """Their own messages on the path of the turn, the newest first.

    What they attached is not among their words, and neither is what was said elsewhere.
    """
    end: UUID | None = turn.user_message_id
    parts: Iterator[Sequence[Message]] = iter(())
    if past is not None:
        parts = iter([past.path])
        end = past.older_id
    for part in chain(parts, parts_up_to(turn.workspace_id, end)):
        own = (row for row in reversed(part) if row.role == MessageRole.USER)
        yield from (row.text for row in own if not row.json_meta.get(ORIGIN))


def _reached_by(call: ToolCall) -> dict[str, str]:
    """Where a call can carry its arguments; what is in a file that it sends is not looked at."""
    assert call.server_id is not None
    arguments = dict(call.arguments)
    if call.builtin:
        uri = call.arguments.get("resource")
        # Other addresses are names that mean something to the server alone.
        is_web = call.tool_name == RESOURCE and _page(str(uri))
        arguments = {"uri": uri} if is_web else dict(call.arguments.get("arguments") or {})
    return destinations_of(call.server_id, call.server_name, arguments)


def _page(value: str) -> str:
    """An address of the web without what may be secret in it; empty if it is none."""
    try:
        parts = urlsplit(value.strip())
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _quoted(text: str) -> str:
    text = show_hidden(text)
    return f"“{text[:_LONGEST_SOURCE]}…”" if len(text) > _LONGEST_SOURCE else f"“{text}”"


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
