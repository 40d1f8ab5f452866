"""A server's tools in rows: seen, changed, renamed, gone; and quarantined until somebody has looked at them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from mcp_servers.client.canonical import clean_text
from mcp_servers.client.definitions import ToolDefinition, read_definition, supports_tasks
from mcp_servers.models import ApprovalOverride, McpServer, McpTool, ServerState
from mcp_servers.registry.discovery import sightings
from mcp_servers.registry.discovery.offers import OfferCounts
from mcp_servers.registry.discovery.sightings import SEEN_EVERY
from mcp_servers.registry.discovery.warnings import Neighbours, warnings_of
from mcp_servers.registry.rights import may_manage
from workspaces.actors import ActorKind
from workspaces.changes import record_created, tracked_change

if TYPE_CHECKING:
    from workspaces.actors import Actor

_DEFINED: Final = (
    "title",
    "description",
    "input_schema",
    "output_schema",
    "annotations",
    "meta",
    "icons",
    "task_support",
    "warnings",
    "definition_hash",
    "problem",
    "output_problem",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryResult(OfferCounts):
    """What a new look at a server's tools brought."""

    excluded: int = 0
    """Tools with a problem, among the total."""


@transaction.atomic
def store_tools(
    *,
    server: McpServer,
    raw_tools: Iterable[object],
    actor: Actor,
    viewer: UUID | None = None,
) -> DiscoveryResult:
    """Take over a server's tool list.

    The first look by somebody who manages the server accepts what it sees, as long as nobody has accepted anything of
    that server. Later, a tool that is new or changed waits until somebody accepts it, unless the workspace accepts new
    tools. A tool with hidden characters, or with the name of another tool, always waits. One that changed back to what
    was accepted is accepted.

    Args:
        viewer: the person whose own account was shown this list; it says nothing about what others are shown.
    """
    # One look at a time stores, and nobody who edits the server waits for it.
    ServerState.objects.for_workspace(server.workspace_id).select_for_update().fetch(server.pk)
    now = timezone.now()
    # Held, so that what somebody accepts at this moment is not written over with what it was before.
    rows = McpTool.objects.for_workspace(server.workspace_id).select_for_update(no_key=True)
    known = {tool.name: tool for tool in rows.filter(server=server).order_by("pk")}
    is_first_look = not any(tool.approved_hash for tool in known.values())
    accepts_new = (
        server.allows_new_tools
        or server.workspace.approves_new_tools
        or (is_first_look and actor.kind is ActorKind.USER and may_manage(actor, server))
    )
    definitions, skipped = _unique(raw_tools, supports_tasks(server.state.capabilities))
    missing = [tool for tool in known.values() if tool.name not in definitions]
    if viewer is not None:
        missing = sightings.without_viewers(server, viewer, missing)
    removed = [tool for tool in missing if not tool.is_removed]
    neighbours = _neighbours(server, definitions)

    created: list[McpTool] = []
    changed = 0
    for definition in definitions.values():
        warnings = warnings_of(definition, neighbours)
        tool = known.get(definition.name)
        if tool is None:
            tool = McpTool(workspace_id=server.workspace_id, server=server, name=definition.name)
            _take_over(tool, definition, warnings, now)
            former = _former(definition, removed)
            if former is not None:
                _follow(tool, former)
            elif accepts_new and not warnings:
                accept(tool)
            created.append(tool)
            continue
        if tool.definition_hash != definition.hash:
            changed += 1
            with tracked_change(tool, actor=actor):
                _take_over(tool, definition, warnings, now)
                _save(tool)
        else:
            _refresh(tool, definition, warnings, now)
        if accepts_new and is_first_look and not warnings and tool.is_quarantined:
            accept(tool)
            _save(tool)
    McpTool.objects.bulk_create(created)
    if not is_first_look:
        for tool in created:
            record_created(tool, actor=actor)

    for tool in removed:
        with tracked_change(tool, actor=actor):
            tool.removed_at = now
            tool.save(update_fields=["removed_at", "updated_at"])
    if viewer is not None:
        seen = [*created, *(known[name] for name in definitions if name in known)]
        sightings.keep(server, viewer, seen)
    return DiscoveryResult(
        total=len(definitions),
        added=len(created),
        changed=changed,
        removed=len(removed),
        excluded=sum(1 for definition in definitions.values() if definition.problem),
        skipped=skipped,
    )


def accept(tool: McpTool) -> None:
    """Make the current definition the accepted one. The caller saves and records it."""
    tool.approved_hash = tool.definition_hash
    tool.approved_definition = tool.definition


def _neighbours(server: McpServer, definitions: Iterable[str]) -> Neighbours:
    """The tools that people may confuse this server's with: those they see beside them."""
    others = (
        McpTool.objects.for_workspace(server.workspace_id)
        .offered()
        .filter(Q(server__owner__isnull=True) | Q(server__owner=server.owner_id))
        .exclude(server=server)
        .values_list("name", "server__name")
    )
    return Neighbours([*others, *((name, "the same server") for name in definitions)])


def _former(definition: ToolDefinition, removed: Iterable[McpTool]) -> McpTool | None:
    """The tool that this one was, if exactly one is gone that was the same but for its name."""
    described = (
        definition.description,
        definition.input_schema,
        definition.output_schema,
        definition.annotations,
        definition.meta,
    )
    same = [
        tool
        for tool in removed
        if described
        == (tool.description, tool.input_schema, tool.output_schema, tool.annotations, tool.meta)
    ]
    return same[0] if len(same) == 1 else None


def _follow(tool: McpTool, former: McpTool) -> None:
    """Keep what was decided about a tool that has another name now; a name change must not loosen anything."""
    tool.renamed_from = former.name
    tool.is_enabled = former.is_enabled
    if former.approval_override in (ApprovalOverride.CONFIRM, ApprovalOverride.DENY):
        tool.approval_override = former.approval_override
    tool.approved_definition = former.approved_definition


def _unique(raw_tools: Iterable[object], has_tasks: bool) -> tuple[dict[str, ToolDefinition], int]:
    definitions: dict[str, ToolDefinition] = {}
    skipped = 0
    for raw in raw_tools:
        definition = read_definition(raw, supports_tasks=has_tasks)
        if definition is None or definition.name in definitions:
            skipped += 1
        else:
            definitions[definition.name] = definition
    return definitions, skipped


def _take_over(
    tool: McpTool, definition: ToolDefinition, warnings: list[str], now: datetime
) -> None:
    tool.title = definition.title
    tool.description = definition.description
    tool.input_schema = definition.input_schema
    tool.output_schema = definition.output_schema
    tool.annotations = definition.annotations
    tool.meta = definition.meta
    tool.icons = definition.icons
    tool.task_support = definition.task_support
    tool.warnings = warnings
    tool.definition_hash = definition.hash
    tool.problem = clean_text(definition.problem)
    tool.output_problem = clean_text(definition.output_problem)
    tool.last_seen_at = now
    tool.removed_at = None


def _refresh(tool: McpTool, definition: ToolDefinition, warnings: list[str], now: datetime) -> None:
    """Take over a definition that is the same; write only what is new."""
    before, is_stale = _state_of(tool), now - tool.last_seen_at >= SEEN_EVERY
    _take_over(tool, definition, warnings, now)
    if is_stale or _state_of(tool) != before:
        _save(tool)


def _state_of(tool: McpTool) -> tuple[object, ...]:
    """Everything that a look may change, but for when it was seen."""
    return tuple(getattr(tool, name) for name in (*_DEFINED, "removed_at"))


def _save(tool: McpTool) -> None:
    tool.save(
        update_fields=[
            *_DEFINED,
            *(
                "last_seen_at",
                "removed_at",
                "approved_hash",
                "approved_definition",
                "updated_at",
            ),
        ]
    )
