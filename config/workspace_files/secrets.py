"""Secrets of what a workspace's file holds. The file never shows them, so changes of them are told by their places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from audit.models import AlertRule, AuditStream
from chat.models import ModelProvider
from config.workspace_files.servers import own_servers
from config.workspace_files.target import WorkspaceTarget
from mcp_servers.models import McpServer, programs
from workspaces.secret_memory import MASK, without_secrets

Place: TypeAlias = tuple[str, str, str]
"""Where a secret stands in the file: the part, the name of the row, and what of it."""

_SERVER: Final = (("auth", "auth_config"), ("headers", "headers"), ("env", "env"))
_STREAM: Final = (("headers", "headers"), ("client_key", "client_key"))


def secrets_in_force(target: WorkspaceTarget) -> dict[Place, str]:
    """Everything that the file leaves out or masks, by its place in the file. For comparing only: keys are sealed.

    Of alerts and of streams with one name it has the first, as the file means that one.
    """
    found: dict[Place, str] = {}
    for server in own_servers(target.pk):
        found |= _sealed(server, "servers", _SERVER)
        found |= _masked(("servers", server.name, "url"), server.url)
        written = programs.without_secrets(server.parameters)
        found |= {
            ("servers", server.name, f"parameters.{name}"): str(server.parameters[name])
            for name, value in written.items()
            if MASK in str(value)
        }
    for provider in ModelProvider.objects.for_workspace(target.pk).filter(shared=None):
        found |= _sealed(provider, "providers", [("api_key", "api_key")])
        found |= _masked(("providers", provider.name, "base_url"), provider.base_url)
    for rule in AlertRule.objects.for_workspace(target.pk).order_by("-id"):
        found |= _masked(("alerts", rule.name, "webhook_url"), rule.webhook_url)
    for stream in AuditStream.objects.for_workspace(target.pk).order_by("-id"):
        found |= _sealed(stream, "streams", _STREAM)
        found |= _masked(("streams", stream.name, "target"), stream.target)
    return found


def changed_secrets(before: Mapping[Place, str], after: Mapping[Place, str]) -> list[Place]:
    """The places whose secret is new, another or gone, in order."""
    places = before.keys() | after.keys()
    return sorted(one for one in places if before.get(one) != after.get(one))


def _sealed(
    row: McpServer | ModelProvider | AuditStream, part: str, names: Iterable[tuple[str, str]]
) -> dict[Place, str]:
    secrets = {(part, row.name, written): getattr(row, name) for written, name in names}
    return {place: secret.sealed for place, secret in secrets.items() if secret is not None}


def _masked(place: Place, address: str) -> dict[Place, str]:
    return {place: address} if MASK in without_secrets(address) else {}
