"""The scratch workspace of the self-check: made for it, and removed afterwards; its log stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from django.utils.translation import gettext_noop as _

from mcp_servers.client import transports
from mcp_servers.models import McpServer, McpTool
from mcp_servers.registry import demo, services
from mcp_servers.registry.demo.programs import ProgramSeed
from mcp_servers.registry.specs import home_of
from workspaces.actors import Actor, Source
from workspaces.changes import record_deleted
from workspaces.errors import DomainError
from workspaces.middleware import actor_for
from workspaces.models import Membership, User, Workspace
from workspaces.people.services import create_workspace

SERVER: Final = Path(demo.__file__).with_name("counting_server.py")


class SelfCheckImpossible(DomainError):
    """What the self-check needs could not be had."""

    code = "selfcheck_impossible"
    status = 503


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What the calls are made with."""

    workspace: Workspace
    person: User
    stranger: User
    """Somebody who is in no workspace."""
    server: McpServer
    tools: dict[str, McpTool]

    def actor(self, source: Source, *, is_stranger: bool = False) -> Actor:
        """The person, through one of the doors."""
        person = self.stranger if is_stranger else self.person
        return actor_for(person, self.workspace, source=source, request_id="audit_selfcheck")

    def seen(self) -> list[str]:
        """The cases that reached the server, in order."""
        path = home_of(self.server.pk) / "calls.jsonl"
        if not path.exists():
            return []
        return [json.loads(line)[1] for line in path.read_text(encoding="utf-8").splitlines()]


@contextmanager
def scratch_ground() -> Iterator[Ground]:
    """Make the workspace with a person and the counting server; take all of it away at the end.

    Raises:
        SelfCheckImpossible: the counting server could not be started.
    """
    mark = uuid4().hex[:12]
    platform = Actor.system(label="audit_selfcheck", source=Source.COMMAND, workspace_id=None)
    person, stranger = (
        User.objects.create_user(f"{name}-{mark}@selfcheck.invalid", None)
        for name in ("person", "stranger")
    )
    workspace = create_workspace(
        name=f"Self-check {mark}", slug=f"selfcheck-{mark}", owner=person, actor=platform
    )
    seed = ProgramSeed(
        slug=f"selfcheck-{mark}",
        title="Self-check",
        description="Counts what it is asked for.",
        args=(str(SERVER),),
    )
    program = services.ensure_program(seed=seed, actor=platform)
    owner = actor_for(person, workspace, source=Source.COMMAND, request_id="audit_selfcheck")
    try:
        draft = services.ServerDraft(
            name="counting", transport=transports.STDIO, program=program, trusts_annotations=True
        )
        server = services.add_server(workspace_id=workspace.pk, draft=draft, actor=owner)
        report = services.test_connection(server=server, actor=owner)
        if not report.ok:
            raise SelfCheckImpossible(
                _("The counting server could not be started: %(message)s")
                % {"message": report.message}
            )
        rows = McpTool.objects.for_workspace(workspace).select_related("server__workspace")
        tools = {tool.name: tool for tool in rows.filter(server=server)}
        services.set_tool_enabled(tool=tools["off"], is_enabled=False, actor=owner)
        server.refresh_from_db()
        yield Ground(
            workspace=workspace, person=person, stranger=stranger, server=server, tools=tools
        )
    finally:
        for server in McpServer.objects.for_workspace(workspace):
            services.delete_server(server=server, actor=owner)
        record_deleted(program, actor=platform)
        program.delete()
        for membership in Membership.objects.for_workspace(workspace):
            record_deleted(membership, actor=platform)
            membership.delete()
        record_deleted(workspace, actor=platform)
        workspace.delete()
        person.delete()
        stranger.delete()
