"""Secrets of what a workspace's file holds. The file never shows them, so changes of them are told by their places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from django.db import models

from audit.models import AlertRule, AuditStream
from chat.models import ModelProvider
from config.workspace_files.servers import own_servers
from config.workspace_files.target import WorkspaceTarget
from mcp_servers.models import programs
from workspaces.secret_memory import MASK, without_secrets

_SERVER: Final = (("auth", "auth_config"), ("headers", "headers"), ("env", "env"))
_STREAM: Final = (("headers", "headers"), ("client_key", "client_key"))


def secrets_in_force(target: WorkspaceTarget) -> dict[str, str]:
    """Everything that the file leaves out or masks, by its place in the file. For comparing only: keys are sealed."""
    found: dict[str, str] = {}
    for server in own_servers(target.pk):
        place = f"servers.{server.name}"
        found |= _sealed(server, place, _SERVER) | _masked(f"{place}.url", server.url)
        written = programs.without_secrets(server.parameters)
        found |= {
            f"{place}.parameters.{name}": str(server.parameters[name])
            for name, value in written.items()
            if MASK in str(value)
        }
    for provider in ModelProvider.objects.for_workspace(target.pk).filter(shared=None):
        place = f"providers.{provider.name}"
        found |= _sealed(provider, place, [("api_key", "api_key")])
        found |= _masked(f"{place}.base_url", provider.base_url)
    for rule in AlertRule.objects.for_workspace(target.pk):
        found |= _masked(f"alerts.{rule.name}.webhook_url", rule.webhook_url)
    for stream in AuditStream.objects.for_workspace(target.pk):
        place = f"streams.{stream.name}"
        found |= _sealed(stream, place, _STREAM) | _masked(f"{place}.target", stream.target)
    return found


def changed_secrets(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """The places whose secret is new, another or gone, in order."""
    places = before.keys() | after.keys()
    return tuple(sorted(one for one in places if before.get(one) != after.get(one)))


def _sealed(row: models.Model, place: str, names: Iterable[tuple[str, str]]) -> dict[str, str]:
    secrets = {f"{place}.{written}": getattr(row, name) for written, name in names}
    return {name: secret.sealed for name, secret in secrets.items() if secret is not None}


def _masked(place: str, address: str) -> dict[str, str]:
    return {place: address} if MASK in without_secrets(address) else {}
