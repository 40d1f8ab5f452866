"""The servers of a workspace's file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

from config.workspace_files.offers import decided_of
from config.workspace_files.shapes import OffersFile, ServerFile
from config.workspace_files.target import WorkspaceTarget, faults_at, stored_or_given
from mcp_servers.models import (
    LogLevel,
    McpServer,
    ServerScope,
    StdioProgram,
    programs,
)
from mcp_servers.registry.model_choices import providers_of
from mcp_servers.registry.services import (
    ServerDraft,
    add_server,
    has_secrets_of,
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


def server_files(target: WorkspaceTarget) -> list[ServerFile]:
    """Every server as the file has it, by name."""
    rows = own_servers(target.pk).select_related("program").order_by("name")
    decided = decided_of(target.pk)
    providers = dict(providers_of(target.pk))
    return [_server_file(row, providers, decided.get(row.pk, OffersFile())) for row in rows]


def _server_file(
    server: McpServer, providers: Mapping[UUID, str], decided: OffersFile
) -> ServerFile:
    values: dict[str, Any] = {name: getattr(server, name) for name in _SAME_NAME}
    values["program"] = server.program.slug if server.program else None
    values["url"] = without_secrets(server.url)
    values["parameters"] = programs.without_secrets(server.parameters)
    values["sampling_provider"] = providers.get(server.sampling_provider_id or UUID(int=0))
    return ServerFile.model_validate({**values, **dict(decided)})


def put_server(
    target: WorkspaceTarget, wanted: ServerFile, present: Mapping[str, ServerFile]
) -> McpServer:
    """Add a server or change the one of that name, without its tools.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    now = present.get(wanted.name)
    with faults_at(f"servers.{wanted.name}", {"sampling_provider_id": "sampling_provider"}):
        if now is None:
            taken = McpServer.objects.for_workspace(target.pk).shared().filter(name=wanted.name)
            if taken.exists():
                raise InvalidInput(
                    _("This name belongs to a server of the platform or of a provider.")
                )
            draft = _draft(target, wanted, None, None)
            return add_server(workspace_id=target.pk, draft=draft, actor=target.actor)
        server: McpServer = own_servers(target.pk).get(name=wanted.name)
        draft = _draft(target, wanted, now, server)
        if _as_written(wanted, now, server) == now and has_secrets_of(server, draft):
            return server
        return update_server(server=server, draft=draft, actor=target.actor)


def _as_written(wanted: ServerFile, now: ServerFile, stored: McpServer) -> ServerFile:
    """What a file says of a server itself, as it would be written: without its secrets."""
    values: dict[str, Any] = {name: getattr(now, name) for name in OffersFile.model_fields}
    values |= {"auth": None, "headers": None, "env": None}
    if wanted.url == stored.url:
        values["url"] = now.url
    if wanted.parameters == stored.parameters:
        values["parameters"] = now.parameters
    return wanted.model_copy(update=values)


def _draft(
    target: WorkspaceTarget, wanted: ServerFile, now: ServerFile | None, stored: McpServer | None
) -> ServerDraft:
    values: dict[str, Any] = {name: getattr(wanted, name) for name in _SAME_NAME}
    values["parameters"] = _parameters(wanted, now, stored)
    values |= {"auth": wanted.auth, "headers": wanted.headers, "env": wanted.env}
    values["program"] = _program(wanted.program, now)
    if wanted.program is None:
        values["parameters"] = values["parameters"] or None
    values["log_level"] = LogLevel(wanted.log_level) if wanted.log_level else None
    stored_url = stored.url if stored is not None else None
    url = stored_or_given("url", wanted.url, now.url if now is not None else None, stored_url)
    values["url"] = url if wanted.program is None else None
    provider = wanted.sampling_provider
    found = {name: pk for pk, name in providers_of(target.pk)}
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


def _parameters(
    wanted: ServerFile, now: ServerFile | None, stored: McpServer | None
) -> dict[str, Any]:
    """A program's values, the stored ones where the file masks what is secret in them. Another program gets none."""
    is_same = now is not None and stored is not None and now.program == wanted.program
    written = now.parameters if now is not None and is_same else {}
    kept = stored.parameters if stored is not None and is_same else {}
    return {
        name: stored_or_given(f"parameters.{name}", value, str(written.get(name)), kept.get(name))
        if isinstance(value, str)
        else value
        for name, value in wanted.parameters.items()
    }


def _program(slug: str | None, now: ServerFile | None) -> StdioProgram | None:
    if slug is None or (now is not None and now.program == slug):
        return None
    program = StdioProgram.objects.filter(slug=slug, is_enabled=True).first()
    if program is None:
        raise InvalidInput(
            fields={"program": [_("The program “%(slug)s” is not on offer.") % {"slug": slug}]}
        )
    return program
