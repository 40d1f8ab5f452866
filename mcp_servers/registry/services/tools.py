"""What people decide about tools, resources and prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from mcp_servers.models import ApprovalOverride, McpPrompt, McpResource, McpServer, McpTool
from mcp_servers.registry import discovery
from mcp_servers.registry.rights import require_to_manage
from mcp_servers.registry.services.server_notices import tell
from workspaces.actors import Actor
from workspaces.changes import tracked_change
from workspaces.errors import Conflict, InvalidInput

MAX_CACHE_SECONDS: Final = 24 * 3600


@transaction.atomic
def set_tool_enabled(*, tool: McpTool, is_enabled: bool, actor: Actor) -> McpTool:
    """Offer a tool or stop offering it; a call that already runs may finish."""
    return _change_tool(tool, actor, is_enabled=is_enabled)


@transaction.atomic
def set_approval_override(*, tool: McpTool, override: ApprovalOverride, actor: Actor) -> McpTool:
    """Say for one tool whether it runs by itself, asks first, or is blocked.

    Raises:
        InvalidInput: a tool of somebody's own server is to run by itself; what its owner remembers is enough.
    """
    if override is ApprovalOverride.AUTO and tool.server.owner_id is not None:
        raise InvalidInput(
            fields={
                "approval_override": [
                    _("Tools of a personal server can only ask first or be blocked.")
                ]
            }
        )
    return _change_tool(tool, actor, approval_override=override)


@transaction.atomic
def set_tool_cache(*, tool: McpTool, seconds: int | None, actor: Actor) -> McpTool:
    """Say for how long the result of an identical call is used again; None: not at all.

    Raises:
        InvalidInput: the tool does more than read, its server is not trusted to say so, or the time is out of range.
    """
    if seconds is not None:
        if not may_keep_results(tool):
            raise InvalidInput(
                fields={
                    "cache_seconds": [_("Only read-only tools of a trusted server can be cached.")]
                }
            )
        if not 1 <= seconds <= MAX_CACHE_SECONDS:
            raise InvalidInput(
                fields={
                    "cache_seconds": [
                        _("Between 1 and %(most)s seconds.") % {"most": MAX_CACHE_SECONDS}
                    ]
                }
            )
    return _change_tool(tool, actor, cache_seconds=seconds)


def may_keep_results(tool: McpTool) -> bool:
    """Whether results of this tool may be used again: it only reads, and its server is trusted to say so."""
    hints = tool.typed_annotations
    return (
        tool.server.trusts_annotations and hints.read_only is True and hints.destructive is not True
    )


@transaction.atomic
def accept_definition(*, tool: McpTool, actor: Actor, seen_hash: str | None = None) -> McpTool:
    """Accept a tool's present definition, so that it may be used.

    Args:
        seen_hash: the definition that the person looked at.

    Raises:
        Conflict: it is another one by now.
    """
    require_to_manage(actor, tool.server)
    tool = _locked(tool)
    if seen_hash is not None and seen_hash != tool.definition_hash:
        raise Conflict(_("The definition has changed again. Review it once more."))
    with tracked_change(tool, actor=actor):
        discovery.accept(tool)
        tool.save(update_fields=["approved_hash", "approved_definition", "updated_at"])
    tell(tool.server, kind="tools.changed")
    return tool


@transaction.atomic
def accept_definitions(
    *, server: McpServer, seen: Mapping[UUID, str], actor: Actor
) -> list[McpTool]:
    """Accept several tools of a server as they were looked at; all of them or none.

    Args:
        seen: the definition of each tool that the person looked at, by the tool's id.

    Raises:
        InvalidInput: one is no tool of this server.
        Conflict: one of them is another one by now, is gone, or has to be looked at by itself.
    """
    require_to_manage(actor, server)
    rows = McpTool.objects.for_workspace(server.workspace_id).filter(server=server, pk__in=seen)
    tools = list(rows.select_related("server").order_by("pk"))
    if len(tools) != len(seen):
        raise InvalidInput(fields={"tools": [_("Name tools of this server, each of them once.")]})
    if any(tool.warnings or tool.is_removed for tool in tools):
        raise Conflict(_("The list of tools has changed. Review it once more."))
    return [accept_definition(tool=tool, actor=actor, seen_hash=seen[tool.pk]) for tool in tools]


@transaction.atomic
def set_offer_enabled(
    *, offer: McpResource | McpPrompt, is_enabled: bool, actor: Actor
) -> McpResource | McpPrompt:
    """Let people attach a resource or all that a template stands for, or use a prompt; or no longer."""
    require_to_manage(actor, offer.server)
    with tracked_change(offer, actor=actor):
        offer.is_enabled = is_enabled
        offer.save(update_fields=["is_enabled", "updated_at"])
    tell(offer.server, kind="tools.changed")
    return offer


def _change_tool(tool: McpTool, actor: Actor, **values: Any) -> McpTool:
    require_to_manage(actor, tool.server)
    tool = _locked(tool)
    with tracked_change(tool, actor=actor):
        for name, value in values.items():
            setattr(tool, name, value)
        tool.save(update_fields=[*values, "updated_at"])
    tell(tool.server, kind="tools.changed")
    return tool


def _locked(tool: McpTool) -> McpTool:
    rows = McpTool.objects.for_workspace(tool.workspace_id).select_for_update()
    return rows.fetch(tool.pk)
