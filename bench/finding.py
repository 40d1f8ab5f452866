"""`python -m bench.finding`, also `manage.py bench --finding`: search among very many messages, also for the first time on a connection.

Half of the messages are one person's, the other half nine others'. Each has twenty words: some of known frequency, the
rest of a long vocabulary. A call of a tool has 300 such words in its result, and a file 3,000. The older half of the person's chats is archived, every hundredth is in a folder, and every
twentieth is with a bud of its own. One word is said in no chat of these. PostgreSQL where `TEST_DATABASE_URL` names one.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

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
BESIDE: Final = {**SAID, "handed": 0.9, "handful": 1 / 1_000}
"""Words, and the share of calls and files that hold them. The last two are in no message."""
LENGTH_OF_RESULT: Final = 300
LENGTH_OF_FILE: Final = 3_000
ELSEWHERE: Final = "elsewhere"
"""A word in 90 % of the messages of all chats that no filter below asks for."""
FILED: Final = 100
SECOND: Final = 20
"""Every such chat is in the folder, and every such one is with the second bud."""
WITH_FILE: Final = 200
CALLED: Final = 20
SELDOM_CALLED: Final = 10_000
"""Every such message has a file, called a tool, or called one that is seldom called; the one after it is of somebody else."""
QUERIES: Final = {
    "a word in 90 % of messages": "always",
    "a word in one of six": "sixth",
    "two words, each in one of thirty": "thirtieth thirtyish",
    "a word in one of 5,000": "seldom",
    "a rare word": "rarest",
    "a word that nobody said": "unsaid",
    "two letters that thousands of words begin with": "ab",
    "a phrase": '"always sixth"',
    "two words in 90 % of messages": "always alway",
    "a word in 90 % of calls and files, and in no message": "handed",
    "a word in one of 1,000 calls and files": "handful",
    "the same in the archived half": "handful is:archived",
    "the same in calls of a tool": "handful tool:mail.send",
    "a phrase in calls and files": '"handed handful"',
    "the archived half: all chats": "is:archived",
    "the archived half: a word in 90 %": "always is:archived",
    "the archived half: a word in one of 5,000": "seldom is:archived",
    "the archived half: a word that is only elsewhere": f"{ELSEWHERE} is:archived",
    "a folder: a word in 90 %": "always in:Plans",
    "a folder: two words, each in one of thirty": "thirtieth thirtyish in:Plans",
    "a folder: a word that is only elsewhere": f"{ELSEWHERE} in:Plans",
    "a bud: a word in 90 %": "always from:second",
    "a bud: a word in one of 5,000": "seldom from:second",
    "a bud: a word that is only elsewhere": f"{ELSEWHERE} from:second",
    "with a file: a word in one of six": "sixth has:file",
    "with a file: a word in one of 5,000": "seldom has:file",
    "a tool": "tool:mail.send",
    "a tool that is seldom called": "tool:mail.recall",
    "a tool that is seldom called: a word in one of six": "sixth tool:mail.recall",
    "a tool that only others call": "tool:mail.forward",
    "a tool that nobody called": "always tool:mail.unsent",
    "a month": "always after:240d before:210d",
}


def fill(count: int) -> tuple[Workspace, User]:
    """Invent that many messages; gives the person who has half of them."""
    from django.contrib.auth import get_user_model
    from django.db import connection

    from chat.models import Bud, Conversation, Folder, Message
    from workspaces.models import Membership, Workspace

    dice = random.Random(1)  # noqa: S311  invented data
    workspace = Workspace.objects.create(name="Finding", slug="finding")
    bud, second = (
        Bud.objects.create(workspace=workspace, slug=name.lower(), name=name)
        for name in ("Bud", "Second")
    )
    users = get_user_model()
    people = [users.objects.create_user(f"person-{n}@trellis.example") for n in range(1 + OTHERS)]
    Membership.objects.bulk_create(
        [Membership(workspace=workspace, user=one, role="member") for one in people]
    )
    folder = Folder.objects.create(workspace=workspace, owner=people[0], name="Plans")
    talks: list[list[Conversation]] = []
    for one in people:
        length = max(1, count // (2 if one is people[0] else 2 * OTHERS) // IN_ONE)
        talks.append(
            [
                Conversation(
                    workspace=workspace,
                    owner=one,
                    bud=bud if n % SECOND else second,
                    folder=folder if one is people[0] and n % FILED == 1 else None,
                    is_archived=n < length // 2,
                    title=f"Talk {n}",
                )
                for n in range(length)
            ]
        )
    for some in talks:
        Conversation.objects.bulk_create(some, batch_size=500)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(dice.choices(letters, k=7)) for _ in range(50_000)]
    messages = _messages(count, talks, dice, vocabulary)
    made = Message._meta.get_field("created_at")
    with patch.object(made, "auto_now_add", new=False):
        number = 0
        while rows := list(islice(messages, 2_000)):
            Message.objects.bulk_create(rows)
            _add_calls_and_files(workspace, rows, number, partial(_beside, dice, vocabulary))
            number += len(rows)
    for some in talks:
        Conversation.objects.for_workspace(workspace).bulk_update(
            some, ["last_message_at"], batch_size=200
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return workspace, people[0]


def _messages(
    count: int,
    talks: Sequence[Sequence[Conversation]],
    dice: random.Random,
    vocabulary: Sequence[str],
) -> Iterator[Message]:
    """The messages, oldest first: every second is the first person's."""
    from uuid import UUID

    from chat.models import Message
    from chat.values import MessageRole, MessageStatus

    begin = datetime.now(UTC) - timedelta(days=365)
    step = timedelta(days=365) / count
    for number in range(count):
        at = begin + number * step
        some = talks[0] if number % 2 else talks[1 + number // 2 % OTHERS]
        conversation = some[number // (2 * IN_ONE) % len(some)]
        conversation.last_message_at = at
        terms = [word for word, share in SAID.items() if dice.random() < share]
        if _is_elsewhere(conversation) and dice.random() < SAID["always"]:
            terms.append(ELSEWHERE)
        text = " ".join([*terms, *dice.choices(vocabulary, k=20 - len(terms))])
        milliseconds = int(at.timestamp() * 1000)
        yield Message(
            pk=UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | dice.getrandbits(60)),
            workspace_id=conversation.workspace_id,
            conversation=conversation,
            role=MessageRole.USER.value,
            status=MessageStatus.COMPLETE.value,
            text=text,
            order_key=number,
            created_at=at,
        )


def _is_elsewhere(conversation: Conversation) -> bool:
    """Whether no filter that is measured asks for this chat."""
    is_filed = conversation.folder_id is not None
    return not (conversation.is_archived or is_filed or conversation.bud.slug == "second")


def _beside(dice: random.Random, vocabulary: Sequence[str], length: int) -> str:
    """What a tool gave, or a file holds."""
    terms = [word for word, share in BESIDE.items() if dice.random() < share]
    return " ".join([*terms, *dice.choices(vocabulary, k=length - len(terms))])


def _add_calls_and_files(
    workspace: Workspace, rows: Sequence[Message], before: int, text: Callable[[int], str]
) -> None:
    """Give some messages the call of a tool, and some a file."""
    from chat.models import Artifact, ArtifactVersion, Attachment, ToolCall, Turn
    from chat.values import ArtifactOrigin, AttachmentStatus, ToolCallStatus, TurnStatus

    numbered = list(enumerate(rows, before + 1))
    callers = [(_called(number), row) for number, row in numbered if number % CALLED in {0, 1}]
    turns = [
        Turn(
            workspace=workspace,
            conversation=row.conversation,
            user_message=row,
            asked_by_id=row.conversation.owner_id,
            status=TurnStatus.COMPLETED.value,
        )
        for _, row in callers
    ]
    Turn.objects.bulk_create(turns)
    ToolCall.objects.bulk_create(
        [
            ToolCall(
                workspace=workspace,
                turn=turn,
                message=row,
                position=0,
                server_name="mail",
                tool_name=tool,
                status=ToolCallStatus.SUCCEEDED.value,
                model_text=text(LENGTH_OF_RESULT),
            )
            for turn, (tool, row) in zip(turns, callers, strict=True)
        ]
    )
    filed = [row for number, row in numbered if number % WITH_FILE == 0]
    artifacts = [
        Artifact(workspace=workspace, conversation=row.conversation, name=f"{row.pk}.md")
        for row in filed
    ]
    Artifact.objects.bulk_create(artifacts)
    versions = [
        ArtifactVersion(
            workspace=workspace,
            artifact=artifact,
            number=1,
            content_type="text/markdown",
            size=1,
            origin=ArtifactOrigin.UPLOAD.value,
        )
        for artifact in artifacts
    ]
    ArtifactVersion.objects.bulk_create(versions)
    Attachment.objects.bulk_create(
        [
            Attachment(
                workspace=workspace,
                message=row,
                position=0,
                version=version,
                status=AttachmentStatus.READY.value,
                characters=1,
                model_text=text(LENGTH_OF_FILE),
            )
            for row, version in zip(filed, versions, strict=True)
        ]
    )


def _called(number: int) -> str:
    """The tool that a message with this number called."""
    if number % CALLED:
        return "forward"
    return "send" if number % SELDOM_CALLED else "recall"


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
