"""The servers of a workspace's file, with what is decided about their tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

from config.workspace_files.place import Place, faults_at, stored_or_given
from config.workspace_files.shapes import ServerFile, ToolSettings
from mcp_servers.models import (
    ApprovalOverride,
    LogLevel,
    McpServer,
    McpTool,
    ServerScope,
    StdioProgram,
)
from mcp_servers.registry.model_choices import providers_of
from mcp_servers.registry.services import (
    ServerDraft,
    add_server,
    set_approval_override,
    set_tool_cache,
    set_tool_enabled,
    update_server,
)
from workspaces.errors import InvalidInput
from workspaces.scoping import WorkspaceQuerySet
from workspaces.secret_memory import without_secrets

_SAME_NAME: Final = (
    *("name", "transport", "protocol", "program", "parameters", "auth_type", "account_use"),
    *("oauth_scope", "connection_config", "is_active", "is_used_everywhere", "trusts_annotations"),
    *("allows_new_tools", "answers_elicitation", "uses_instructions", "sampling"),
    *("sampling_daily_tokens", "sampling_model", "roots", "log_level"),
)


def own_servers(workspace_id: UUID) -> WorkspaceQuerySet[McpServer]:
    """Those that the workspace itself has added: of the platform's, a provider's and people's own others decide."""
    rows = McpServer.objects.for_workspace(workspace_id)
    return rows.filter(scope=ServerScope.WORKSPACE, owner=None, hosted_by="")


def server_files(place: Place) -> list[ServerFile]:
    """Every server as the file has it, by name."""
    rows = own_servers(place.pk).select_related("program").order_by("name")
    tools: dict[UUID, dict[str, ToolSettings]] = {}
    for tool in McpTool.objects.for_workspace(place.pk).filter(removed_at=None).order_by("name"):
        settings = _settings_of(tool)
        if settings != ToolSettings():
            tools.setdefault(tool.server_id, {})[tool.name] = settings
    providers = dict(providers_of(place.pk))
    return [_server_file(row, providers, tools.get(row.pk, {})) for row in rows]


def _server_file(
    server: McpServer, providers: Mapping[UUID, str], tools: dict[str, ToolSettings]
) -> ServerFile:
    values: dict[str, Any] = {name: getattr(server, name) for name in _SAME_NAME}
    values["program"] = server.program.slug if server.program else None
    values["url"] = without_secrets(server.url)
    values["sampling_provider"] = providers.get(server.sampling_provider_id or UUID(int=0))
    return ServerFile.model_validate({**values, "tools": tools})


def _settings_of(tool: McpTool) -> ToolSettings:
    return ToolSettings(
        is_enabled=tool.is_enabled,
        approval=ApprovalOverride(tool.approval_override),
        cache_seconds=tool.cache_seconds,
    )


def put_server(place: Place, wanted: ServerFile, present: Mapping[str, ServerFile]) -> McpServer:
    """Add a server or change the one of that name, without its tools.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    now = present.get(wanted.name)
    with faults_at(f"servers.{wanted.name}", {"sampling_provider_id": "sampling_provider"}):
        if now is None:
            taken = McpServer.objects.for_workspace(place.pk).shared().filter(name=wanted.name)
            if taken.exists():
                raise InvalidInput(
                    _("This name belongs to a server of the platform or of a provider.")
                )
            draft = _draft(place, wanted, None, None)
            return add_server(workspace_id=place.pk, draft=draft, actor=place.actor)
        server: McpServer = own_servers(place.pk).get(name=wanted.name)
        secrets = (wanted.auth, wanted.headers, wanted.env)
        is_same = wanted.model_copy(update={"tools": now.tools}) == now
        if is_same and not any(secret is not None for secret in secrets):
            return server
        return update_server(
            server=server, draft=_draft(place, wanted, now, server.url), actor=place.actor
        )


def _draft(
    place: Place, wanted: ServerFile, now: ServerFile | None, stored_url: str | None
) -> ServerDraft:
    values: dict[str, Any] = {name: getattr(wanted, name) for name in _SAME_NAME}
    values |= {"auth": wanted.auth, "headers": wanted.headers, "env": wanted.env}
    values["program"] = _program(wanted.program, now)
    if wanted.program is None:
        values["parameters"] = values["parameters"] or None
    values["log_level"] = LogLevel(wanted.log_level) if wanted.log_level else None
    url = stored_or_given("url", wanted.url, now.url if now is not None else None, stored_url)
    values["url"] = url if wanted.program is None else None
    provider = wanted.sampling_provider
    found = {name: pk for pk, name in providers_of(place.pk)}
    if provider is not None and provider not in found:
        raise InvalidInput(
            fields={
                "sampling_provider": [
                    _("There is no provider “%(provider)s” here.") % {"provider": provider}
                ]
            }
        )
    values["sampling_provider_id"] = found.get(provider) if provider is not None else None
    return ServerDraft(**values, clears_sampling_provider=provider is None)


def _program(slug: str | None, now: ServerFile | None) -> StdioProgram | None:
    if slug is None or (now is not None and now.program == slug):
        return None
    program = StdioProgram.objects.filter(slug=slug, is_enabled=True).first()
    if program is None:
        raise InvalidInput(
            fields={"program": [_("The program “%(slug)s” is not on offer.") % {"slug": slug}]}
        )
    return program


def put_tools(place: Place, server: McpServer, wanted: Mapping[str, ToolSettings]) -> None:
    """Decide about a server's tools; what the file does not name goes back to the usual settings.

    Raises:
        InvalidInput: there is no such tool, or a setting does not fit it.
    """
    rows = McpTool.objects.for_workspace(place.pk).filter(server=server, removed_at=None)
    tools = {tool.name: tool for tool in rows.select_related("server")}
    if not tools and wanted:
        place.notes.append(
            _("“%(name)s” has not told its tools yet. Apply the file again once it has.")
            % {"name": server.name}
        )
        return
    for name in sorted(tools.keys() | wanted.keys()):
        with faults_at(f"servers.{server.name}.tools.{name}"):
            if name not in tools:
                raise InvalidInput(_("There is no such tool."))
            _set_tool(place, tools[name], wanted.get(name, ToolSettings()))


def _set_tool(place: Place, tool: McpTool, wanted: ToolSettings) -> None:
    now = _settings_of(tool)
    if wanted.is_enabled != now.is_enabled:
        set_tool_enabled(tool=tool, is_enabled=wanted.is_enabled, actor=place.actor)
    if wanted.approval is not now.approval:
        set_approval_override(tool=tool, override=wanted.approval, actor=place.actor)
    if wanted.cache_seconds != now.cache_seconds:
        set_tool_cache(tool=tool, seconds=wanted.cache_seconds, actor=place.actor)
