"""A workspace written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from chat.models import Bud
from chat.services.bud_yaml import BudFile, bud_document, files_left_out
from config.workspace_files.call_rules import call_rule_files
from config.workspace_files.given_servers import given_server_files
from config.workspace_files.log import (
    alert_files,
    schedule_files,
    schedules_left_out,
    stream_files,
    view_files,
)
from config.workspace_files.providers import provider_files
from config.workspace_files.servers import server_files
from config.workspace_files.spending import spending_file
from config.workspace_files.target import WorkspaceTarget
from mcp_servers.registry.services.rules import RULES
from workspaces.models import Workspace
from workspaces.roles import Permission, require
from workspaces.yaml_text import write_yaml


def workspace_document(target: WorkspaceTarget) -> dict[str, Any]:
    """Give a workspace as plain values, in the order of the file; usual values are left out.

    Raises:
        PermissionDenied: the actor does not own the workspace.
    """
    require(target.actor, Permission.MANAGE_WORKSPACE, workspace_id=target.pk)
    now = Workspace.objects.get(pk=target.pk)
    parts: dict[str, Sequence[BaseModel]] = {
        "providers": provider_files(target),
        "servers": server_files(target),
        "given_servers": given_server_files(target),
        "call_rules": call_rule_files(target),
        "buds": [BudFile.model_validate(bud_document(bud)) for bud in _buds_of(target)],
        "alerts": alert_files(target),
        "streams": stream_files(target),
        "views": view_files(target),
        "schedules": schedule_files(target),
    }
    document: dict[str, Any] = {"rules": {name: getattr(now, name) for name in RULES}}
    if spending := spending_file(target):
        document["spending"] = spending.model_dump(mode="json", exclude_defaults=True)
    for name, rows in parts.items():
        document[name] = [row.model_dump(mode="json", exclude_defaults=True) for row in rows]
    return {name: rows for name, rows in document.items() if rows}


def _buds_of(target: WorkspaceTarget) -> list[Bud]:
    """The buds of the workspace; drafts and people's own are not its settings."""
    rows = Bud.objects.for_workspace(target.pk).shared().select_related("provider")
    return list(rows.order_by("slug"))


def write_workspace(target: WorkspaceTarget) -> str:
    """Give a workspace as YAML.

    Raises:
        PermissionDenied: the actor does not own the workspace.
    """
    document = write_yaml(workspace_document(target))
    return files_left_out(_buds_of(target)) + schedules_left_out(target) + document
