"""Builders of servers, tools and requests."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db.models import Model
from django.utils import timezone
from uuid_utils.compat import uuid7

from mcp_servers.client import transports
from mcp_servers.client.definitions import definition_hash
from mcp_servers.client.values import Progress, ToolCallRequest
from mcp_servers.gate.caller import SilentCaller
from mcp_servers.models import McpPrompt, McpResource, McpServer, McpTool, StdioProgram
from mcp_servers.registry import services
from mcp_servers.registry.demo.programs import PROGRAMS
from tests.factories import Tenant
from workspaces.actors import Actor, ActorKind, Role, Source

ZOO = Path(__file__).parents[1] / "fakes" / "stdio_zoo.py"


def http_server(tenant: Tenant, url: str, **fields: Any) -> McpServer:
    """A server behind Streamable HTTP, not yet looked at."""
    draft = services.ServerDraft(
        **{
            "name": f"server {uuid7()}"[:40],
            "transport": transports.STREAMABLE_HTTP,
            "url": url,
            **fields,
        }
    )
    return services.add_server(workspace_id=tenant.workspace.pk, draft=draft, actor=tenant.actor())


def looked_at(tenant: Tenant, server: McpServer) -> McpServer:
    """The server after an administrator's connection test that went well."""
    report = services.test_connection(server=server, actor=tenant.actor())
    assert report.ok, report
    server.refresh_from_db()
    server.state.refresh_from_db()
    return server


_seen: dict[str, tuple[McpServer, list[Any]]] = {}
_OFFERS: tuple[Any, ...] = (McpTool, McpResource, McpPrompt)
_OWN = frozenset({"id", "workspace", "server", "created_at", "updated_at"})
"""Fields that a copy of a row has of its own."""


def seen(tenant: Tenant, server: McpServer, *, offers: str) -> McpServer:
    """The server as after `looked_at`, for tests that need what it offers and not the look.

    A process looks at one that offers this, all under the same settings. The others get copies of its rows.
    """
    if offers not in _seen:
        first = looked_at(tenant, server)
        found = [row for model in _OFFERS for row in model.objects.for_workspace(tenant.workspace)]
        _seen[offers] = first, found
        return first
    first, rows = _seen[offers]
    for model in _OFFERS:
        model.objects.bulk_create(
            model(workspace=tenant.workspace, server=server, **_values_of(row))
            for row in rows
            if isinstance(row, model)
        )
    checked_at = first.state.last_checked_at
    assert checked_at is not None
    age = timezone.now() - checked_at
    state = _values_of(first.state)
    moments = {name: at + age for name, at in state.items() if isinstance(at, datetime)}
    server.state.write(**state | moments)
    return server


def _values_of(row: Model) -> dict[str, Any]:
    names = [field.attname for field in row._meta.concrete_fields if field.name not in _OWN]
    return {name: getattr(row, name) for name in names}


def zoo_program() -> StdioProgram:
    """The catalogue entry of the misbehaving programs."""
    program, _ = StdioProgram.objects.get_or_create(
        slug="zoo",
        defaults={
            "title": "Zoo",
            "command": "python",
            "args": [str(ZOO), "{mode}"],
            "parameters": [{"name": "mode", "title": "Mode", "required": True}],
            "env_names": ["ZOO_TOKEN"],
        },
    )
    return program


def zoo_server(tenant: Tenant, mode: str, **fields: Any) -> McpServer:
    """A misbehaving program as a server."""
    draft = services.ServerDraft(
        **{
            "name": f"zoo {mode} {uuid7()}"[:60],
            "transport": transports.STDIO,
            "program": zoo_program(),
            "parameters": {"mode": mode},
            **fields,
        }
    )
    return services.add_server(workspace_id=tenant.workspace.pk, draft=draft, actor=tenant.actor())


def demo_server(tenant: Tenant, slug: str, **fields: Any) -> McpServer:
    """One of the programs that come with the platform, as a server."""
    platform = Actor.system(source=Source.COMMAND, workspace_id=None)
    programs = {seed.slug: services.ensure_program(seed=seed, actor=platform) for seed in PROGRAMS}
    draft = services.ServerDraft(
        **{"name": slug, "transport": transports.STDIO, "program": programs[slug], **fields}
    )
    return services.add_server(workspace_id=tenant.workspace.pk, draft=draft, actor=tenant.actor())


def stored_tool(server: McpServer, name: str = "echo", **fields: Any) -> McpTool:
    """A tool in the database alone, sound and accepted."""
    raw = {
        "name": name,
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    }
    digest = definition_hash(raw)
    return McpTool.objects.create(
        **{
            "workspace_id": server.workspace_id,
            "server": server,
            "name": name,
            "input_schema": raw["inputSchema"],
            "annotations": raw["annotations"],
            "definition_hash": digest,
            "approved_hash": digest,
            "last_seen_at": timezone.now(),
            **fields,
        }
    )


def tool_of(server: McpServer, name: str) -> McpTool:
    """A server's tool by its name."""
    return (
        McpTool.objects.for_workspace(server.workspace_id)
        .select_related("server")
        .get(server=server, name=name)
    )


def a_request(
    tenant: Tenant, tool: McpTool, arguments: Mapping[str, Any] | None = None, **fields: Any
) -> ToolCallRequest:
    """A member's call of a tool."""
    return ToolCallRequest(
        **{
            "call_id": uuid7(),
            "workspace_id": tenant.workspace.pk,
            "tool_id": tool.pk,
            "arguments": arguments or {},
            "actor": actor_of(tenant, "member"),
            **fields,
        }
    )


def actor_of(tenant: Tenant, role: str, source: Source = Source.CHAT) -> Actor:
    """The person of that role as an actor, without asking the database, so that async tests may call it."""
    person = tenant.people[role]
    return Actor(
        kind=ActorKind.USER,
        label=person.email,
        source=source,
        user_id=person.pk,
        workspace_id=tenant.workspace.pk,
        role=Role.MEMBER if role == "auditor" else Role(role),
        is_auditor=role == "auditor",
        request_id="test",
    )


def interpreter() -> str:
    """The interpreter that the tests run on."""
    return sys.executable


class ListeningCaller(SilentCaller):
    """The caller's side of a call, remembering what it was told."""

    def __init__(self, *, on_progress: Callable[[Progress], None] = lambda progress: None) -> None:
        self._on_progress = on_progress
        self.checkpoints: list[str] = []
        self.waits: asyncio.Queue[bool] = asyncio.Queue()

    def progressed(self, progress: Progress) -> None:
        self._on_progress(progress)

    async def checkpointed(self, checkpoint: str) -> None:
        self.checkpoints.append(checkpoint)

    async def waiting(self, is_waiting: bool) -> None:
        await self.waits.put(is_waiting)


def shared_server(tenant: Tenant, name: str) -> McpServer:
    """A server that every bud of the workspace uses."""
    host = "".join(filter(str.isalnum, name)).lower() or "x"
    return http_server(tenant, f"https://{host}.example/mcp", name=name, is_used_everywhere=True)
