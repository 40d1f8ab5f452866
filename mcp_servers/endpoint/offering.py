"""Which tools a client is told of, and by what names."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import mcp_types

from mcp_servers.client.hidden_text import strip_hidden, strip_hidden_json
from mcp_servers.client.tool_names import NamedTool, may_name, name_tools
from mcp_servers.client.values import Effect
from mcp_servers.endpoint.addresses import Addresses
from mcp_servers.endpoint.client_servers import servers_of
from mcp_servers.endpoint.paging import PAGE
from mcp_servers.models import McpTool
from mcp_servers.registry.consent import call_rules, permissions, policy
from mcp_servers.registry.discovery import shown_to

if TYPE_CHECKING:
    from mcp_servers.client.decisions import RuleDecision
    from mcp_servers.endpoint.callers import EndpointCaller

LONGEST_NAME: Final = 44
"""Of a tool. Clients put their own name of the server before it, as `mcp__trellis-demo__`, and models take 64 characters."""
ASKS: Final = "In Trellis a person approves each call of this tool, so calls from other MCP clients are refused."
"""For models, so in English."""


@dataclass(frozen=True, slots=True)
class EndpointTool:
    """One tool under the name that the client knows."""

    name: str
    tool: McpTool
    asks_first: bool
    """A person would have to approve each call, and nobody is there."""

    def as_wire(self) -> mcp_types.Tool:
        """As `tools/list` tells it. What a server says in hidden characters, and its output schema, stay here.

        Results are masked and bounded, so that they need not fit the server's own output schema any more.
        """
        tool = self.tool
        description = strip_hidden(tool.description)
        if self.asks_first:
            description = f"{description}\n\n{ASKS}".strip()
        return mcp_types.Tool(
            name=self.name,
            title=strip_hidden(tool.title) or None,
            description=description,
            input_schema=strip_hidden_json(tool.input_schema),
            annotations=_annotations(tool),
        )


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """How many tools a client may be let use, for the person who is asked."""

    count: int
    reading: int
    """That just read."""
    asking: int
    """A person would have to approve their calls, so these are refused."""


@dataclass(frozen=True, slots=True)
class FoundTool:
    """The tool that a client means by a name, and how addresses of resources are told to it."""

    tool_id: UUID
    definition_hash: str
    server_id: UUID
    addresses: Addresses


def offers_for(caller: EndpointCaller) -> list[EndpointTool]:
    """What this client may use now, by name. Five statements."""
    rules = call_rules.PersonRules(
        call_rules.enabled_rules(caller.workspace_id), call_rules.role_of(caller.actor)
    )
    callable_rows = _callable(caller, [one.pk for one in servers_of(caller)])
    rows = callable_rows.select_related("server", "workspace").order_by("server_id", "name")
    by_id = {row.pk: row for row in rows}
    # A name is the same for whoever is told less of the others.
    names = name_tools(
        (NamedTool(row.server_id, row.server.name, row.pk, row.name) for row in by_id.values()),
        longest=LONGEST_NAME,
    )
    remembered = _remembered(caller)
    asking = frozenset(
        permissions.asking_always(caller.workspace_id, caller.user_id).values_list(
            "tool_id", flat=True
        )
    )

    def asks_first(tool: McpTool) -> bool:
        if tool.pk in asking:
            return True
        return _asks_first(tool, remembered, rules.every_call(tool))

    return [
        EndpointTool(name, tool, asks_first(tool))
        for name, tool in sorted((name, by_id[tool_id]) for name, tool_id in names.items())
        if _may_be_called(tool, reads_only=caller.reads_only) and not rules.why_blocked(tool)
    ]


def count_offers(caller: EndpointCaller) -> OfferedTools:
    """Count what this client may use now."""
    offers = offers_for(caller)
    return OfferedTools(
        count=len(offers),
        reading=sum(offer.tool.facts().only_reads for offer in offers),
        asking=sum(offer.asks_first for offer in offers),
    )


def find(caller: EndpointCaller, name: str) -> FoundTool | None:
    """The tool with this name among those that could be offered, without looking at all others. Two statements.

    What rules, its person and the client's token say of it, the gate knows.
    """
    servers = servers_of(caller)
    near = {one.pk: one.name for one in servers if may_name(one.name, name, longest=LONGEST_NAME)}
    if not near:
        return None
    rows = {
        tool_id: (NamedTool(server_id, near[server_id], tool_id, tool_name), definition_hash)
        for tool_id, server_id, tool_name, definition_hash in _callable(caller, list(near))
        .order_by()
        .values_list("pk", "server_id", "name", "definition_hash")
    }
    names = name_tools((named for named, _hash in rows.values()), longest=LONGEST_NAME)
    tool_id = names.get(name)
    if tool_id is None:
        return None
    named, definition_hash = rows[tool_id]
    return FoundTool(tool_id, definition_hash, named.server_id, Addresses(servers))


def page_after(
    offers: Sequence[EndpointTool], cursor: str
) -> tuple[Sequence[EndpointTool], str | None]:
    """The tools after this name, and the cursor of the next page; None: there is none."""
    start = bisect_right(offers, cursor, key=lambda offer: offer.name) if cursor else 0
    page = offers[start : start + PAGE]
    return page, page[-1].name if start + PAGE < len(offers) else None


def _callable(caller: EndpointCaller, server_ids: Sequence[UUID]) -> Any:
    rows: Any = McpTool.objects.for_workspace(caller.workspace_id).callable()
    return rows.filter(shown_to(caller.user_id), server_id__in=server_ids)


def _may_be_called(tool: McpTool, *, reads_only: bool) -> bool:
    facts = tool.facts()
    if reads_only and not facts.only_reads:
        return False
    return policy.decide(facts).effect is not Effect.DENY


def _remembered(caller: EndpointCaller) -> frozenset[UUID]:
    """Tools that the person lets run in all their chats without being asked."""
    rows = permissions.valid_permissions(caller.workspace_id)
    mine = rows.filter(user_id=caller.user_id, conversation_id__isnull=True, action="")
    return frozenset(mine.values_list("tool_id", flat=True))


def _asks_first(tool: McpTool, remembered: frozenset[UUID], ruled: RuleDecision | None) -> bool:
    facts = tool.facts()
    decision = policy.apply_rule(policy.decide(facts), facts, ruled)
    decision = policy.relax(decision, facts, is_remembered=tool.pk in remembered)
    return decision.effect is Effect.CONFIRM


def _annotations(tool: McpTool) -> mcp_types.ToolAnnotations:
    hints = tool.typed_annotations
    return mcp_types.ToolAnnotations(
        read_only_hint=hints.read_only,
        destructive_hint=hints.destructive,
        idempotent_hint=hints.idempotent,
        open_world_hint=hints.open_world,
    )
