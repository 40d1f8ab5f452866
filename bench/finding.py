"""`python -m bench.finding`, also `manage.py bench --finding`: search among very many messages, also for the first time on a connection.

Half of the messages are one person's, the other half nine others'. Each has twenty words: some of known frequency, the
rest of a long vocabulary. PostgreSQL where `TEST_DATABASE_URL` names one.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

from bench.installation import forms_of, own_or_none, prepare

if TYPE_CHECKING:
    from chat.models import Conversation, Message
    from workspaces.models import User, Workspace

OTHERS: Final = 9
IN_ONE: Final = 500
"""Messages of a conversation."""
SAID: Final = {
    "always": 0.9,
    "sixth": 1 / 6,
    "thirtieth": 1 / 30,
    "thirtyish": 1 / 30,
    "seldom": 1 / 5_000,
    "rarest": 1 / 100_000,
}
"""Words, and the share of messages that hold them."""
QUERIES: Final = {
    "a word in 90 % of messages": "always",
    "a word in one of six": "sixth",
    "two words, each in one of thirty": "thirtieth thirtyish",
    "a word in one of 5,000": "seldom",
    "a rare word": "rarest",
    "a word that nobody said": "unsaid",
    "two letters that thousands of words begin with": "ab",
    "a phrase": '"always sixth"',
}


def fill(count: int) -> tuple[Workspace, User]:
    """Invent that many messages; gives the person who has half of them."""
    from django.contrib.auth import get_user_model
    from django.db import connection

    from chat.models import Bud, Conversation, Message
    from workspaces.models import Membership, Workspace

    dice = random.Random(1)  # noqa: S311  invented data
    workspace = Workspace.objects.create(name="Finding", slug="finding")
    bud = Bud.objects.create(workspace=workspace, slug="bud", name="Bud")
    users = get_user_model()
    people = [users.objects.create_user(f"person-{n}@trellis.example") for n in range(1 + OTHERS)]
    Membership.objects.bulk_create(
        [Membership(workspace=workspace, user=one, role="member") for one in people]
    )
    talks = [
        [
            Conversation(workspace=workspace, owner=one, bud=bud, title=f"Talk {n}")
            for n in range(max(1, count // (2 if one is people[0] else 2 * OTHERS) // IN_ONE))
        ]
        for one in people
    ]
    for some in talks:
        Conversation.objects.bulk_create(some, batch_size=500)
    said = _messages(count, talks, dice)
    while rows := list(islice(said, 2_000)):
        Message.objects.bulk_create(rows)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return workspace, people[0]


def _messages(
    count: int, talks: Sequence[Sequence[Conversation]], dice: random.Random
) -> Iterator[Message]:
    """The messages, oldest first: every second is the first person's."""
    from uuid import UUID

    from chat.models import Message
    from chat.values import MessageRole, MessageStatus

    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(dice.choices(letters, k=7)) for _ in range(50_000)]
    begin = datetime.now(UTC) - timedelta(days=365)
    step = timedelta(days=365) / count
    for number in range(count):
        at = begin + number * step
        some = talks[0] if number % 2 else talks[1 + number // 2 % OTHERS]
        conversation = some[number // (2 * IN_ONE) % len(some)]
        said = [word for word, share in SAID.items() if dice.random() < share]
        text = " ".join([*said, *dice.choices(vocabulary, k=20 - len(said))])
        milliseconds = int(at.timestamp() * 1000)
        yield Message(
            pk=UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | dice.getrandbits(60)),
            workspace_id=conversation.workspace_id,
            conversation=conversation,
            role=MessageRole.USER.value,
            status=MessageStatus.COMPLETE.value,
            text=text,
            order_key=number,
        )


def take(workspace: Workspace, person: User, query: str, *, is_first: bool) -> float:
    """One search in milliseconds; the first one of a new connection, or not."""
    from django.db import connection

    from chat.services.search import search

    if is_first:
        connection.close()
        if connection.vendor == "postgresql":
            connection.close_pool()  # type: ignore[attr-defined]
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    begin = time.perf_counter()
    search(workspace=workspace, person=person, query=query)
    return (time.perf_counter() - begin) * 1000


def measure(workspace: Workspace, person: User, times: int) -> Iterator[str]:
    """The lines of the table, in ms."""
    yield "| what is looked for | first of a connection: median | worst | later: median | 95 % |"
    yield "|---|---|---|---|---|"
    for name, query in QUERIES.items():
        first = [take(workspace, person, query, is_first=True) for _ in range(times)]
        later = sorted(take(workspace, person, query, is_first=False) for _ in range(4 * times))
        p95 = later[int(len(later) * 0.95)]
        yield (
            f"| {name} | {statistics.median(first):.0f} | {max(first):.0f}"
            f" | {statistics.median(later):.0f} | {p95:.0f} |"
        )


def main(arguments: Sequence[str]) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="manage.py bench --finding")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="trellis-finding-") as folder,
        own_or_none() as database_url,
    ):
        prepare(folder, database_url)
        workspace, person = fill(options.messages)
        sys.stdout.write(f"{forms_of(database_url)}; {options.messages:,} messages:\n\n")
        for line in measure(workspace, person, options.times):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
