"""`python -m bench.growth`, also `manage.py bench --growth`: pages and turns of a large installation beside an empty one.

It invents the data in a database of its own (PostgreSQL where `TEST_DATABASE_URL` names one). Every measure is taken
before the data is there and again afterwards, in this process, so the ratio shows what the data alone costs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from bench.installation import forms_of, own_or_none, prepare
from bench.words import WORDS

if TYPE_CHECKING:
    from uuid import UUID

    from django.test import Client

    from chat.models import Bud, Conversation
    from workspaces.actors import Actor
    from workspaces.models import User, Workspace

BUD_SERVERS = 50
"""The most that a bud names."""
HOST = {"host": "localhost:8000"}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is invented."""

    messages: int
    branches: int
    servers: int
    tools: int
    bud_tools: int
    conversations: int
    workspaces: int
    entries: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What a measure costs once."""

    milliseconds: float
    cpu: float
    statements: int


@dataclass(slots=True)
class Place:
    """What is measured: a workspace's owner, their bud and their conversations."""

    workspace: Workspace
    owner: User
    actor: Actor
    bud: Bud
    small: Conversation
    long: Conversation
    wide: Conversation
    client: Client


def make_place() -> Place:
    """A workspace with an owner, a bud of the demo model and three short conversations."""
    from django.test import Client

    from chat.services.buds import create_bud
    from chat.services.conversations import create_conversation
    from workspaces.actors import Source
    from workspaces.middleware import actor_for
    from workspaces.models import Membership, User, Workspace

    workspace = Workspace.objects.create(name="Growth", slug="growth")
    owner = User.objects.create_superuser("growth@trellis.example", None)
    Membership.objects.create(workspace=workspace, user=owner, role="owner", is_auditor=True)
    actor = actor_for(owner, workspace, source=Source.COMMAND)
    values = {"slug": "growth", "name": "Growth"}
    bud = create_bud(workspace_id=workspace.pk, actor=actor, values=values)
    client = Client(headers=HOST)
    client.force_login(owner, backend="allauth.account.auth_backends.AuthenticationBackend")
    small, long, wide = (
        create_conversation(bud=bud, owner=owner, actor=actor) for _ in ("small", "long", "wide")
    )
    for conversation in (small, long, wide):
        add_messages(conversation, 2)
    return Place(workspace, owner, actor, bud, small, long, wide, client)


def add_messages(conversation: Conversation, count: int, *, is_wide: bool = False) -> None:
    """Questions and answers in turn.

    Args:
        is_wide: every question is another branch of the first one, with an answer of its own.
    """
    from uuid_utils.compat import uuid7

    from chat.models import Conversation, Message
    from chat.values import MessageRole, MessageStatus

    rows: list[Message] = []
    start = Message.objects.for_workspace(conversation.workspace_id)
    key = start.filter(conversation=conversation).count()
    parent: UUID | None = None if is_wide else conversation.leaf_id
    for number in range(count):
        is_answer = bool(number % 2)
        row = Message(
            pk=uuid7(),
            workspace_id=conversation.workspace_id,
            conversation=conversation,
            parent_id=rows[-1].pk if is_wide and is_answer else parent,
            role=(MessageRole.ASSISTANT if is_answer else MessageRole.USER).value,
            status=MessageStatus.COMPLETE.value,
            text=" ".join(WORDS[(number + n) % len(WORDS)] for n in range(20)),
            order_key=key + number + 1,
        )
        rows.append(row)
        if not is_wide:
            parent = row.pk
    Message.objects.bulk_create(rows, batch_size=500)
    conversation.leaf_id = rows[-1].pk
    Conversation.objects.for_workspace(conversation.workspace_id).filter(pk=conversation.pk).update(
        leaf_id=rows[-1].pk
    )


def fill(place: Place, sizes: Sizes) -> None:
    """Put the invented data beside what is there."""
    from django.utils import timezone

    from bench.invented_log import generate
    from chat.models import Conversation
    from workspaces.models import Membership, Workspace

    add_messages(place.long, sizes.messages - 2)
    add_messages(place.wide, sizes.branches * 2, is_wide=True)
    Conversation.objects.bulk_create(
        [
            Conversation(
                workspace=place.workspace, owner=place.owner, bud=place.bud, title=f"{word} {n}"
            )
            for n in range(sizes.conversations)
            for word in [WORDS[n % len(WORDS)]]
        ],
        batch_size=500,
    )
    others = Workspace.objects.bulk_create(
        [Workspace(name=f"Other {n}", slug=f"other-{n}") for n in range(sizes.workspaces)],
        batch_size=500,
    )
    Membership.objects.bulk_create(
        [Membership(workspace=other, user=place.owner, role="owner") for other in others],
        batch_size=500,
    )
    add_servers(place, sizes)
    now = timezone.now()
    for _ in generate(others[0].pk, sizes.entries, since=now - timedelta(days=90), until=now):
        pass
    _analyze()


def add_servers(place: Place, sizes: Sizes) -> None:
    """Servers with accepted tools; the bud may use the first of them, which have its tools."""
    from django.utils import timezone

    from chat.models import Bud
    from mcp_servers.models import McpServer, McpTool
    from mcp_servers.models.server_state import ServerState

    servers = McpServer.objects.bulk_create(
        [
            McpServer(
                workspace=place.workspace,
                name=f"server {n}",
                transport="streamable_http",
                url=f"http://127.0.0.1:9/{n}",
            )
            for n in range(sizes.servers)
        ],
        batch_size=500,
    )
    ServerState.objects.bulk_create(
        [ServerState(workspace=place.workspace, server=server) for server in servers],
        batch_size=500,
    )
    McpTool.objects.bulk_create(
        [
            McpTool(
                workspace=place.workspace,
                server=server,
                name=f"tool_{n}",
                description=f"Find the {WORDS[n % len(WORDS)]}.",
                input_schema={"type": "object", "properties": {"text": {"type": "string"}}},
                definition_hash="a" * 64,
                approved_hash="a" * 64,
                last_seen_at=timezone.now(),
            )
            for number, server in enumerate(servers)
            for n in range(sizes.bud_tools // BUD_SERVERS if number < BUD_SERVERS else sizes.tools)
        ],
        batch_size=500,
    )
    place.bud.mcp_config = {
        "servers": [str(server.pk) for server in servers[:BUD_SERVERS]],
        "tool_exposure": "on_demand",
    }
    Bud.objects.for_workspace(place.workspace.pk).filter(pk=place.bud.pk).update(
        mcp_config=place.bud.mcp_config
    )


def _analyze() -> None:
    """Give the planner what it has in a database that is some hours old."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def measures(place: Place) -> Iterable[tuple[str, Callable[[], Any]]]:
    """Each with its name."""
    from chat.services.search import search
    from chat.snapshots import read_snapshot

    slug = place.workspace.slug
    headers = {"X-Workspace": slug}

    def page(path: str) -> Callable[[], None]:
        def get() -> None:
            more = headers if path.startswith("/api/") else {}
            response = place.client.get(path, headers=more)
            if response.status_code != 200:
                raise RuntimeError(f"{path} answered {response.status_code}.")

        return get

    yield "start page of the chat", page(f"/w/{slug}/")
    yield "list of conversations", page("/api/conversations/")
    yield "conversations found by title", page("/api/conversations/?search=harbour")
    yield "a short conversation", lambda: read_snapshot(place.small)
    yield "the long conversation", lambda: read_snapshot(place.long)
    yield "the conversation with many branches", lambda: read_snapshot(place.wide)
    yield (
        "search",
        lambda: search(workspace=place.workspace, person=place.owner, query="harbour ledger"),
    )
    yield "servers, page", page(f"/w/{slug}/servers/")
    yield "servers, REST", page("/api/servers/")
    yield "tools, REST", page("/api/tools/")
    yield "list of buds", page(f"/w/{slug}/buds/")
    yield "editor of a bud", page(f"/w/{slug}/buds/{place.bud.pk}/")
    yield "start page of the admin", page("/admin/")
    yield "audit log", page(f"/w/{slug}/audit/")
    yield "a turn without its model, short conversation", lambda: begin_turn(place, place.small)
    yield "a turn without its model, long conversation", lambda: begin_turn(place, place.long)


def begin_turn(place: Place, conversation: Conversation) -> None:
    """From the message to the request that the model would be sent; then answer it, so that the next one can begin."""
    from unittest.mock import patch

    from uuid_utils.compat import uuid7

    from chat.engine import asking, runner, steps
    from chat.engine.answers import AnsweredStep
    from chat.services.turns import send_message

    taken: list[Any] = []
    with (
        patch.object(runner, "start", lambda *given: taken.append(given)),
        patch.object(runner, "can_take", lambda: True),
    ):
        send_message(
            conversation=conversation, client_id=str(uuid7()), text="go", actor=place.actor
        )
    [(lease, answer)] = taken
    task, _answer = asking._begin_step(lease, 0, answer)
    steps.finish_step(lease, answer, AnsweredStep(text="Yes.", noted=task.noted))


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements of all threads: a view runs in another one than its test client."""
    from unittest.mock import patch

    from django.db.backends.utils import CursorWrapper

    asked: list[str] = []
    execute = CursorWrapper.execute

    def note(self: CursorWrapper, sql: Any, params: Any = None) -> Any:
        asked.append(str(sql))
        return execute(self, sql, params)

    with patch.object(CursorWrapper, "execute", note):
        yield asked


def take(once: Callable[[], Any], times: int) -> Taken:
    """Do it so often, after once for the caches."""
    once()
    with counted() as asked:
        once()
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        once()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    # The least: what else runs on the machine only adds.
    return Taken(min(walls) * 1000, min(cpus) * 1000, len(asked))


def head_of(form: str, sizes: Sizes) -> str:
    """What stands above the lines."""
    numbers = ", ".join(
        f"{name.replace('_', ' ')} {count:,}" for name, count in asdict(sizes).items()
    )
    return (
        f"{form}; {numbers}:\n\n"
        "| measure | empty | large | time | CPU | statements |\n|---|---|---|---|---|---|\n"
    )


def line_of(name: str, before: Taken, after: Taken) -> str:
    """One line of the table, with the ratio of the clock and of CPU."""
    return (
        f"| {name} | {before.milliseconds:.1f} ms | {after.milliseconds:.1f} ms"
        f" | {after.milliseconds / before.milliseconds:.2f} ×"
        f" | {after.cpu / before.cpu:.2f} × | {before.statements}, {after.statements} |\n"
    )


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """What is to be invented, and how often each measure is taken."""
    parser = argparse.ArgumentParser(prog="manage.py bench --growth")
    for name, size in (
        ("messages", 10_000),
        ("branches", 1_000),
        ("servers", 500),
        ("tools", 20),
        ("bud-tools", 5_000),
        ("conversations", 10_000),
        ("workspaces", 1_000),
        ("entries", 100_000),
    ):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--times", type=int, default=11)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Measure, and print the table."""
    options = vars(options_of(arguments))
    times = options.pop("times")
    sizes = Sizes(**options)
    with (
        tempfile.TemporaryDirectory(prefix="trellis-growth-") as folder,
        own_or_none() as database_url,
    ):
        prepare(folder, database_url)
        place = make_place()
        empty = {name: take(once, times) for name, once in measures(place)}
        fill(place, sizes)
        sys.stdout.write(head_of(forms_of(database_url), sizes))
        for name, once in measures(place):
            sys.stdout.write(line_of(name, empty[name], take(once, times)))
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
