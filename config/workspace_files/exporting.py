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
from config.workspace_files.place import WorkspaceTarget
from config.workspace_files.providers import provider_files
from config.workspace_files.servers import server_files
from config.workspace_files.spending import spending_file
from mcp_servers.registry.services.rules import RULES
from workspaces.models import Workspace
from workspaces.roles import Permission, require
from workspaces.yaml_text import write_yaml


def workspace_document(place: WorkspaceTarget) -> dict[str, Any]:
    """Give a workspace as plain values, in the order of the file; usual values are left out.

    Raises:
        PermissionDenied: the actor does not own the workspace.
    """
    require(place.actor, Permission.MANAGE_WORKSPACE, workspace_id=place.pk)
    now = Workspace.objects.get(pk=place.pk)
    parts: dict[str, Sequence[BaseModel]] = {
        "providers": provider_files(place),
        "servers": server_files(place),
        "given_servers": given_server_files(place),
        "call_rules": call_rule_files(place),
        "buds": [BudFile.model_validate(bud_document(bud)) for bud in _buds_of(place)],
        "alerts": alert_files(place),
        "streams": stream_files(place),
        "views": view_files(place),
        "schedules": schedule_files(place),
    }
    document: dict[str, Any] = {"rules": {name: getattr(now, name) for name in RULES}}
    if spending := spending_file(place):
        document["spending"] = spending.model_dump(mode="json", exclude_defaults=True)
    for name, rows in parts.items():
        document[name] = [row.model_dump(mode="json", exclude_defaults=True) for row in rows]
    return {name: rows for name, rows in document.items() if rows}


def _buds_of(place: WorkspaceTarget) -> list[Bud]:
    """The buds of the workspace; drafts and people's own are not its settings."""
    rows = Bud.objects.for_workspace(place.pk).shared().select_related("provider")
    return list(rows.order_by("slug"))


def write_workspace(place: WorkspaceTarget) -> str:
    """Give a workspace as YAML.

    Raises:
        PermissionDenied: the actor does not own the workspace.
    """
    document = write_yaml(workspace_document(place))
    return files_left_out(_buds_of(place)) + schedules_left_out(place) + document
