"""What a workspace's file decides about what servers offer: their tools, resources and prompts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from config.workspace_files.shapes import OffersFile, ToolSettings
from config.workspace_files.target import WorkspaceTarget, faults_at
from mcp_servers.models import ApprovalOverride, McpPrompt, McpResource, McpServer, McpTool
from mcp_servers.registry.services import (
    set_approval_override,
    set_offer_enabled,
    set_tool_cache,
    set_tool_enabled,
)
from workspaces.errors import InvalidInput


def decided_of(workspace_id: UUID) -> dict[UUID, OffersFile]:
    """Give what is decided about each server's offers, by the server. Three statements."""
    decided: dict[UUID, OffersFile] = {}
    tools = McpTool.objects.for_workspace(workspace_id).filter(removed_at=None)
    for tool in tools.order_by("name"):
        settings = _settings_of(tool)
        if settings != ToolSettings():
            decided.setdefault(tool.server_id, OffersFile()).tools[tool.name] = settings
    resources = McpResource.objects.for_workspace(workspace_id).filter(removed_at=None)
    for server_id, uri in _switched_off(resources, "uri"):
        decided.setdefault(server_id, OffersFile()).resources_off.append(uri)
    prompts = McpPrompt.objects.for_workspace(workspace_id).filter(removed_at=None)
    for server_id, name in _switched_off(prompts, "name"):
        decided.setdefault(server_id, OffersFile()).prompts_off.append(name)
    return decided


def _switched_off(rows: Any, named: str) -> list[tuple[UUID, str]]:
    off = rows.filter(is_enabled=False).order_by(named).values_list("server_id", named)
    return list(dict.fromkeys(off))  # a template may have the address of a resource


def put_offers(target: WorkspaceTarget, server: McpServer, wanted: OffersFile, where: str) -> None:
    """Decide about a server's offers; what the file does not name goes back to its usual settings.

    Args:
        where: the server's place in the file.

    Raises:
        InvalidInput: there is no such tool, resource or prompt, or a setting does not fit it.
    """
    _put_tools(target, server, wanted.tools, where)
    resources = McpResource.objects.for_workspace(target.pk).filter(server=server, removed_at=None)
    with faults_at(f"{where}.resources_off"):
        for resource, is_enabled in _to_switch(
            resources.select_related("server"), lambda row: row.uri, wanted.resources_off
        ):
            set_offer_enabled(offer=resource, is_enabled=is_enabled, actor=target.actor)
    prompts = McpPrompt.objects.for_workspace(target.pk).filter(server=server, removed_at=None)
    with faults_at(f"{where}.prompts_off"):
        for prompt, is_enabled in _to_switch(
            prompts.select_related("server"), lambda row: row.name, wanted.prompts_off
        ):
            set_offer_enabled(offer=prompt, is_enabled=is_enabled, actor=target.actor)


def _to_switch(
    rows: Any, name_of: Callable[[Any], str], off: Collection[str]
) -> list[tuple[Any, bool]]:
    """Give the rows whose switch stands otherwise, and how it is to stand. A server that was not looked at has none."""
    known = list(rows)
    missing = set(off) - {name_of(row) for row in known}
    if known and missing:
        message = _("The server has no “%(name)s”.") % {"name": min(missing)[:200]}
        raise InvalidInput(message)
    changed = []
    for row in known:
        is_enabled = name_of(row) not in off
        if row.is_enabled != is_enabled:
            changed.append((row, is_enabled))
    return changed


def _settings_of(tool: McpTool) -> ToolSettings:
    return ToolSettings(
        is_enabled=tool.is_enabled,
        approval=ApprovalOverride(tool.approval_override),
        cache_seconds=tool.cache_seconds,
    )


def _put_tools(
    target: WorkspaceTarget, server: McpServer, wanted: Mapping[str, ToolSettings], where: str
) -> None:
    rows = McpTool.objects.for_workspace(target.pk).filter(server=server, removed_at=None)
    tools = {tool.name: tool for tool in rows.select_related("server")}
    if not tools and wanted:
        target.notes.append(
            _("“%(name)s” has not told its tools yet. Apply the file again once it has.")
            % {"name": server.name}
        )
        return
    for name in sorted(tools.keys() | wanted.keys()):
        with faults_at(f"{where}.tools.{name}"):
            if name not in tools:
                raise InvalidInput(_("There is no such tool."))
            _set_tool(target, tools[name], wanted.get(name, ToolSettings()))


def _set_tool(target: WorkspaceTarget, tool: McpTool, wanted: ToolSettings) -> None:
    now = _settings_of(tool)
    if wanted.is_enabled != now.is_enabled:
        set_tool_enabled(tool=tool, is_enabled=wanted.is_enabled, actor=target.actor)
    if wanted.approval is not now.approval:
        set_approval_override(tool=tool, override=wanted.approval, actor=target.actor)
    if wanted.cache_seconds != now.cache_seconds:
        set_tool_cache(tool=tool, seconds=wanted.cache_seconds, actor=target.actor)
