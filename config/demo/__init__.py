"""The demo workspace: people, servers and buds to try things with. Safe to run again.

Servers and buds stand in ``workspace.yaml``, a workspace's file like any other.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from chat.models import Bud
from config.demo.people import PASSWORD, PEOPLE, SLUG, seed_people, takes_known_password
from mcp_servers.models import McpServer, ServerStatus
from mcp_servers.registry.demo.programs import PROGRAMS
from mcp_servers.registry.services import ensure_program, refresh_tools
from workspaces.actors import Actor, Source
from workspaces.errors import DomainError
from workspaces.middleware import actor_for
from workspaces.models import User, Workspace
from workspaces.yaml_text import read_yaml

__all__ = ["PASSWORD", "PEOPLE", "SLUG", "seed_demo", "takes_known_password"]

logger = logging.getLogger(__name__)

CONTENT = Path(__file__).with_name("workspace.yaml")


def seed_demo() -> Workspace:
    """Make what is missing of the demo; what people have changed stays as they changed it."""
    workspace = seed_people()
    platform = Actor.system(label="demo content", source=Source.COMMAND, workspace_id=workspace.pk)
    for seed in PROGRAMS:
        ensure_program(seed=seed, actor=platform)
    # The demo's admin looks at the servers first, and so accepts the tools that they have today.
    admin = User.objects.filter(email=PEOPLE[0].email).first()
    if admin is None:  # under another address, this is somebody's own workspace
        return workspace
    actor = actor_for(admin, workspace, source=Source.COMMAND)
    document = read_yaml(CONTENT.read_text())
    missing = _missing(document, workspace)
    if any(missing.values()):
        # With all that it needs, this takes longer to load than everything else here.
        from config.workspace_files import WorkspaceTarget, apply_file

        try:
            notes = apply_file(WorkspaceTarget(workspace, actor), missing).notes
        except DomainError as error:
            # Such as for an administrator who was removed. What is there serves all the same.
            notes = (error.message,)
        for note in notes:
            logger.warning("demo_note", extra={"note": note})
    _look_again(workspace, [one["name"] for one in document["servers"]], actor)
    return workspace


def _missing(document: Any, workspace: Workspace) -> dict[str, list[Any]]:
    """What is not there in any form, and what it needs is: a server may have another name, or its name another server."""
    kept = McpServer.objects.for_workspace(workspace).shared().select_related("program")
    known = {server.program.slug for server in kept if server.program is not None}
    names = {server.name for server in kept}
    servers = [
        one
        for one in document["servers"]
        if one["program"] not in known and one["name"] not in names
    ]
    names |= {one["name"] for one in servers}
    slugs = set(Bud.objects.for_workspace(workspace).values_list("slug", flat=True))
    buds = [
        one
        for one in document["buds"]
        if one["slug"] not in slugs and names.issuperset(one["tools"].get("servers", ()))
    ]
    return {"servers": servers, "buds": buds}


def _look_again(workspace: Workspace, names: list[str], actor: Actor) -> None:
    """Read the tools of the demo's servers that could not be reached before."""
    for server in McpServer.objects.for_workspace(workspace).shared().filter(name__in=names):
        if server.state.status == ServerStatus.CONNECTED and server.tools.exists():
            continue
        try:
            refresh_tools(server=server, actor=actor)
        except DomainError as error:
            # The health checks try again; the demo starts all the same.
            logger.warning(
                "demo_server_failed", extra={"server": server.name, "why": error.message}
            )
