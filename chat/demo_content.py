"""The demo workspace: people, servers and buds to try things with. Safe to run again."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from django.db import transaction

from chat.models import Bud
from chat.services.buds import create_bud
from mcp_servers.client import transports
from mcp_servers.models import McpServer, ServerStatus, StdioProgram
from mcp_servers.registry.demo.programs import NOTES_SERVER, PROGRAMS, TIME_SERVER, ProgramSeed
from mcp_servers.registry.services import ServerDraft, add_server, ensure_program, refresh_tools
from workspaces.actors import Actor, Role, Source
from workspaces.changes import record_created
from workspaces.errors import DomainError
from workspaces.middleware import actor_for
from workspaces.models import Membership, User, Workspace

logger = logging.getLogger(__name__)

SLUG = "demo"
PASSWORD = "trellis-demo"  # noqa: S105 - printed at the start, and only for the demo


@dataclass(frozen=True, slots=True)
class DemoPerson:
    email: str
    name: str
    role: Role
    is_auditor: bool
    what: str


PEOPLE = (
    DemoPerson("admin@demo.example", "Ada Admin", Role.OWNER, False, "workspace admin"),
    DemoPerson("member@demo.example", "Max Member", Role.MEMBER, False, "end user"),
    DemoPerson("auditor@demo.example", "Olga Ops", Role.MEMBER, True, "auditor"),
)


@dataclass(frozen=True, slots=True)
class DemoBud:
    slug: str
    name: str
    avatar: str
    description: str
    system_prompt: str
    starter_prompts: tuple[str, ...]
    programs: tuple[ProgramSeed, ...]
    makes_artifacts: bool = False
    takes_all_tools: bool = False


BUDS = (
    DemoBud(
        slug="clock",
        name="Clock",
        avatar="🕰️",
        description="Knows what time it is, anywhere.",
        system_prompt="You tell the time. Use the time tools; never guess a time.",
        starter_prompts=(
            "What time is it in Tokyo?",
            "Convert 14:30 from London to New York",
            "What time is it in Berlin?",
        ),
        programs=(TIME_SERVER,),
    ),
    DemoBud(
        slug="notes",
        name="Notes",
        avatar="🗒️",
        description="Keeps your notes, and asks before it deletes one. Try / for its prompt, and + for its resources.",
        system_prompt="You keep the user's notes with the notes tools. Say what you did, briefly.",
        starter_prompts=(
            "Plan a garden day",
            'Delete the note "old"',
            "Which notes do I have?",
            'Read the note "ideas"',
            "Make a slow report",
        ),
        programs=(NOTES_SERVER,),
    ),
    DemoBud(
        slug="writer",
        name="Writer",
        avatar="🖋️",
        description="Writes files beside the conversation, which you can change and download.",
        system_prompt="You write what the user asks for into files, and say what you did, briefly.",
        starter_prompts=(
            "Write a note about bees",
            "Write a web page about our garden",
            "Write a table about vegetables",
            "List the files",
        ),
        programs=(),
        makes_artifacts=True,
    ),
    DemoBud(
        slug="companion",
        name="Companion",
        avatar="🌱",
        description="Has all tools of this workspace, also those you add later.",
        system_prompt="You are a helpful companion. Use tools where they help.",
        starter_prompts=("What can you do?", "Think aloud: what time is it in Tokyo?"),
        programs=(TIME_SERVER, NOTES_SERVER),
        takes_all_tools=True,
    ),
)


def seed_demo() -> Workspace:
    """Make what is missing of the demo; what people have changed stays as they changed it."""
    workspace = _seed_people()
    platform = Actor.system(label="seed_demo", source=Source.COMMAND, workspace_id=workspace.pk)
    # The demo's admin looks at the servers first, and so accepts the tools that they have today.
    admin = User.objects.get(email=PEOPLE[0].email)
    actor = actor_for(admin, workspace, source=Source.COMMAND)
    for seed in PROGRAMS:
        ensure_program(seed=seed, actor=platform)
    servers = {seed.slug: _seed_server(workspace, seed, actor) for seed in PROGRAMS}
    for bud in BUDS:
        _seed_bud(workspace, bud, servers, actor)
    return workspace


@transaction.atomic
def _seed_people() -> Workspace:
    workspace = Workspace.objects.filter(slug=SLUG).first()
    if workspace is None:
        workspace = Workspace.objects.create(slug=SLUG, name="Demo workspace")
        record_created(workspace, actor=_seeder(workspace))
    for person in PEOPLE:
        if User.objects.filter(email=person.email).exists():
            continue
        user = User.objects.create_user(person.email, PASSWORD, name=person.name, is_confirmed=True)
        membership = Membership.objects.create(
            workspace=workspace,
            user=user,
            role=person.role.value,
            is_auditor=person.is_auditor,
        )
        record_created(membership, actor=_seeder(workspace))
    return workspace


def _seeder(workspace: Workspace) -> Actor:
    return Actor.system(label="seed_demo", source=Source.COMMAND, workspace_id=workspace.pk)


def _seed_server(workspace: Workspace, seed: ProgramSeed, actor: Actor) -> McpServer:
    program = StdioProgram.objects.get(slug=seed.slug)
    server = _find_server(workspace, program)
    if server is None:
        draft = ServerDraft(
            name=seed.slug,
            transport=transports.STDIO,
            program=program,
            # Written by us, and pinned: what they say of their tools holds.
            trusts_annotations=True,
        )
        server = add_server(workspace_id=workspace.pk, draft=draft, actor=actor)
    if server.state.status != ServerStatus.CONNECTED or not server.tools.exists():
        try:
            refresh_tools(server=server, actor=actor)
        except DomainError as error:
            # The health checks try again; the demo starts all the same.
            logger.warning("demo_server_failed", extra={"server": seed.slug, "why": error.message})
    return server


def _find_server(workspace: Workspace, program: StdioProgram) -> McpServer | None:
    return McpServer.objects.for_workspace(workspace).filter(program=program).first()


def _seed_bud(
    workspace: Workspace, bud: DemoBud, servers: dict[str, McpServer], actor: Actor
) -> None:
    if Bud.objects.for_workspace(workspace).filter(slug=bud.slug).exists():
        return
    create_bud(
        workspace_id=workspace.pk,
        actor=actor,
        values={
            "slug": bud.slug,
            "name": bud.name,
            "avatar": bud.avatar,
            "description": bud.description,
            "system_prompt": bud.system_prompt,
            "starter_prompts": list(bud.starter_prompts),
            "makes_artifacts": bud.makes_artifacts,
            "takes_all_tools": bud.takes_all_tools,
            "mcp_config": {"servers": [str(servers[seed.slug].pk) for seed in bud.programs]},
        },
    )
