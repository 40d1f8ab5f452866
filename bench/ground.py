"""The workspace that is measured in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chat.models import Bud, ModelProvider
from chat.services.buds import create_bud
from mcp_servers.client import transports
from mcp_servers.models import McpServer, McpTool, StdioProgram
from mcp_servers.registry.services import (
    ServerDraft,
    accept_definition,
    add_server,
    test_connection,
)
from workspaces.actors import Actor, Source
from workspaces.middleware import actor_for
from workspaces.models import Membership, User, Workspace

PEERS = Path(__file__).with_name("peers.py")


@dataclass(frozen=True, slots=True)
class Ground:
    """What the measurements work with."""

    bud: Bud
    user: User
    actor: Actor
    tool: McpTool
    stdio_tool: McpTool
    model_url: str
    tools_url: str
    gateway_url: str | None = None
    """A gateway of others before the same tool server; None: not measured."""


def make_ground(*, model_url: str, tools_url: str, gateway_url: str | None) -> Ground:
    """A workspace with a person, a bud and a tool."""
    workspace = Workspace.objects.create(name="Bench", slug="bench")
    user = User.objects.create_user("bench@trellis.example", None)
    Membership.objects.create(workspace=workspace, user=user, role="owner")
    actor = actor_for(user, workspace, source=Source.COMMAND)
    provider = ModelProvider.objects.create(
        workspace=workspace, name="bench", base_url=model_url, default_model="m"
    )
    bud = create_bud(
        workspace_id=workspace.pk,
        actor=actor,
        values={"slug": "bench", "name": "Bench"},
        provider_id=provider.pk,
    )
    draft = ServerDraft(
        name="echo",
        transport=transports.STREAMABLE_HTTP,
        url=tools_url,
        trusts_annotations=True,
        connection_config={"max_concurrent_calls": 32},
    )
    program = StdioProgram.objects.create(
        slug="bench", title="Bench", command="python", args=[str(PEERS), "stdio"]
    )
    stdio = ServerDraft(
        name="echo here", transport=transports.STDIO, program=program, trusts_annotations=True
    )
    bud.provider = provider
    return Ground(
        bud,
        user,
        actor,
        _looked_at(add_server(workspace_id=workspace.pk, draft=draft, actor=actor), actor),
        _looked_at(add_server(workspace_id=workspace.pk, draft=stdio, actor=actor), actor),
        model_url,
        tools_url,
        gateway_url,
    )


def add_servers(ground: Ground, count: int) -> None:
    """So many more servers, each with a connection and a check of its own; the bud may use all of them."""
    for number in range(count):
        draft = ServerDraft(
            name=f"echo {number}",
            transport=transports.STREAMABLE_HTTP,
            url=ground.tools_url,
            trusts_annotations=True,
        )
        workspace_id = ground.tool.workspace_id
        _looked_at(
            add_server(workspace_id=workspace_id, draft=draft, actor=ground.actor), ground.actor
        )


def _looked_at(server: McpServer, actor: Actor) -> McpTool:
    """The tool of a server that has been looked at and accepted."""
    report = test_connection(server=server, actor=actor)
    assert report.ok, report.message
    tool = McpTool.objects.for_workspace(server.workspace_id).get(server=server, name="echo")
    if tool.is_quarantined:
        accept_definition(tool=tool, actor=actor)
    return tool
