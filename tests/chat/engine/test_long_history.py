"""A turn reads as much of a conversation as its model's window can hold, and no more."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from chat.engine.context_window import ContextWindow, FittedHistory, fit
from chat.engine.history import History, history_of, read_past
from chat.engine.trust import known_destinations
from chat.engine.turn_cache import RecentPath
from chat.models import Attachment, Conversation, Message, ToolCall, Turn
from chat.summaries import Summary, keep_summary
from chat.values import AttachmentStatus, MessageRole, MessageStatus, TurnStatus
from mcp_servers.client.values import ToolAnnotations
from tests import factories
from tests.factories import Tenant
from workspaces.database.prepared import PreparedRows

HUGE = ContextWindow(context_tokens=1_000_000_000)
CLOSED = {"is_trusted": True, "open_world": False}


class Said(NamedTuple):
    """A question with its answer, as a test makes them."""

    question: str = "What?"
    answer: str = "That."
    results: tuple[str, ...] = ()
    annotations: dict[str, Any] = CLOSED
    measured: tuple[int, int] | None = None


tenant = factories.tenant


def say(conversation: Conversation, *lines: Said, below: UUID | None = None) -> Turn:
    """Put these into a conversation, and the question of a turn below them."""
    common = {
        "workspace_id": conversation.workspace_id,
        "conversation": conversation,
        "status": MessageStatus.COMPLETE.value,
    }
    user, assistant = MessageRole.USER.value, MessageRole.ASSISTANT.value
    rows: list[Message] = []
    calls: list[tuple[Message, int, str, dict[str, Any]]] = []
    here = Message.objects.for_workspace(conversation.workspace_id)
    start = here.filter(conversation=conversation).count()
    parent = below
    for one in lines:
        question = Message(
            pk=uuid7(),
            parent_id=parent,
            role=user,
            text=one.question,
            order_key=start + len(rows) + 1,
            **common,
        )
        meta: dict[str, Any] = {
            "tool_calls": [
                {"id": str(at), "type": "function", "function": {"name": "f", "arguments": "{}"}}
                for at in range(len(one.results))
            ]
        }
        if one.measured:
            meta["measured"] = list(one.measured)
        answer = Message(
            pk=uuid7(),
            parent_id=question.pk,
            role=assistant,
            text=one.answer,
            json_meta=meta,
            order_key=start + len(rows) + 2,
            **common,
        )
        rows += [question, answer]
        calls += [(answer, at, text, one.annotations) for at, text in enumerate(one.results)]
        parent = answer.pk
    asked = Message(
        pk=uuid7(),
        parent_id=parent,
        role=user,
        text="And now?",
        order_key=start + len(rows) + 1,
        **common,
    )
    Message.objects.bulk_create([*rows, asked], batch_size=500)
    turn = Turn.objects.create(
        workspace_id=conversation.workspace_id,
        conversation=conversation,
        user_message=asked,
        asked_by=conversation.owner,
        source="web",
        status=TurnStatus.COMPLETED.value,
    )
    ToolCall.objects.bulk_create(
        [
            ToolCall(
                workspace_id=conversation.workspace_id,
                turn=turn,
                message=answer,
                position=at,
                provider_call_id=str(at),
                function_name="f",
                tool_name="f",
                server_id=uuid7(),
                server_name="counting",
                annotations=annotations,
                model_text=text,
                result={},
            )
            for answer, at, text, annotations in calls
        ],
        batch_size=500,
    )
    return turn


def answer(turn: Turn, history: History) -> UUID:
    """Answer it, and keep with the answer what a turn keeps of a path that its window cannot hold."""
    asked = Message.objects.for_workspace(turn.workspace_id).get(pk=turn.user_message_id)
    row = Message.objects.create(
        workspace_id=turn.workspace_id,
        conversation_id=turn.conversation_id,
        turn=turn,
        parent=asked,
        role=MessageRole.ASSISTANT.value,
        status=MessageStatus.COMPLETE.value,
        text="Yes.",
        order_key=asked.order_key + 1,
        json_meta={"path": dict(history.noted)},
    )
    return row.pk


def whole(turn: Turn) -> RecentPath:
    past = read_past(turn, HUGE)
    assert past.older_id is None
    return past


def sent(
    past: RecentPath, turn: Turn, window: ContextWindow, fixed: int = 0
) -> tuple[History, FittedHistory]:
    history = history_of(past, turn, attached_characters=window.attached_characters)
    window = replace(window, factor=history.factor, too_long=history.too_long)
    before = history.questions_before
    return history, fit(history.turns, window, fixed=fixed, questions_before=before)


class Read(NamedTuple):
    """What was asked of the database."""

    rows: list[int]
    """Of each statement that is compiled once."""
    statements: list[str]


@contextmanager
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[Read]:
    read = Read([], [])
    fetch = PreparedRows._fetch

    def counted(self: Any, *arguments: Any) -> Any:
        rows = fetch(self, *arguments)
        read.rows.append(len(rows))
        return rows

    with monkeypatch.context() as patch, CaptureQueriesContext(connection) as captured:
        patch.setattr(PreparedRows, "_fetch", counted)
        yield read
    read.statements.extend(one["sql"] for one in captured)


def test_ten_thousand_messages_cost_a_turn_what_a_hundred_do(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-470: rows, statements and memory, once the window is full; the next turn need not even count the rest."""
    window = ContextWindow(context_tokens=3_000)
    text = "word " * 20
    short = say(conversation, *[Said(text, text)] * 49)
    long = say(conversation, *[Said(text, text)] * 4_900)
    first = history_of(read_past(long, window), long)
    assert first.questions_before + len(first.turns) == 4_901
    again = say(conversation, below=answer(long, first))
    costs = []
    for turn in (short, again):
        read_past(turn, window)
        tracemalloc.start()
        with reading(monkeypatch) as read:
            past = read_past(turn, window)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        costs.append((sum(read.rows), len(read.statements), memory))
    assert past.older_id is not None
    assert costs[1][0] <= 1.2 * costs[0][0] <= 120
    assert costs[1][1] == costs[0][1] <= 2
    assert costs[1][2] < 1.5 * costs[0][2] < 3_000_000


texts = st.sampled_from(["a", "word " * 30, "ü" * 120, "x" * 900])
results = st.lists(st.sampled_from(["r", "r" * 700, "r" * 6_000]), max_size=2).map(tuple)
measures = st.sampled_from([None, (100, 80), (100, 250), (100, 10)])


@given(
    lines=st.lists(st.builds(Said, texts, texts, results, st.just(CLOSED), measures), max_size=12),
    tokens=st.integers(min_value=40, max_value=6_000),
    fixed=st.sampled_from([0, 300]),
    is_halved=st.booleans(),
    characters=st.sampled_from([0, 60, 500]),
)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_the_request_is_that_of_the_whole_conversation(
    conversation: Conversation,
    lines: list[Said],
    tokens: int,
    fixed: int,
    is_halved: bool,
    characters: int,
) -> None:
    """REL-471: whatever was said, and however much fits: the same turns, sizes and notice; also read in tiny parts."""
    add = Conversation.objects.create(
        workspace_id=conversation.workspace_id, owner=conversation.owner, bud=conversation.bud
    )
    turn = say(add, *lines)
    window = ContextWindow(context_tokens=tokens, answer_tokens=1, is_halved=is_halved)
    _, wanted = sent(whole(turn), turn, window, fixed)
    _, found = sent(read_past(turn, window, fixed=fixed), turn, window, fixed)
    assert found == wanted
    with pytest.MonkeyPatch.context() as tiny:
        tiny.setattr(ContextWindow, "least_characters", lambda *_: characters)
        past = read_past(turn, window, fixed=fixed)
        _, found = sent(past, turn, window, fixed)
    assert found == wanted


def test_words_from_outside_count_although_the_window_does_not_hold_them(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-370: calls and attachments above the part are looked for once, and then known."""
    window = ContextWindow(context_tokens=2_000)
    filler = [Said("word " * 50, "word " * 50)] * 60
    turn = say(conversation, Said("Read it", results=("a page",), annotations={}), *filler)
    wanted = history_of(whole(turn), turn).untrusted_source
    assert wanted == "a result of “counting.f” was read"
    past = read_past(turn, window)
    history = history_of(past, turn)
    assert past.older_id is not None
    assert history.untrusted_source == wanted
    assert history.noted == {"questions": 62, "factor": 1.0, "outside": wanted}
    # The next one takes the answer's word for it.
    more = say(conversation, below=answer(turn, history))
    with reading(monkeypatch) as read:
        history = history_of(read_past(more, window), more)
    assert history.untrusted_source == wanted
    assert history.noted["questions"] == 63
    assert len(read.statements) == 2  # messages, attachments


def test_words_from_outside_count_although_they_were_summarised(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-410: above a summary they are looked for once, and then known; also after a person has changed it."""
    filler = [Said()] * 6
    turn = say(conversation, Said("Read it", results=("a page",), annotations={}), *filler)
    wanted = history_of(whole(turn), turn).untrusted_source
    last = whole(turn).path[5]
    assert last.role == MessageRole.ASSISTANT
    keep_summary(last, Summary(text="Nothing was read", questions=3, is_edited=True))
    past = read_past(turn, HUGE)
    history = history_of(past, turn)
    assert [one.question for one in history.turns] == ["What?"] * 4 + ["And now?"]
    assert history.summary is not None
    assert history.untrusted_source == wanted
    assert history.noted == {"questions": 8, "factor": 1.0, "outside": wanted}
    more = say(conversation, below=answer(turn, history))
    with reading(monkeypatch) as read:
        history = history_of(read_past(more, HUGE), more)
    assert history.untrusted_source == wanted
    assert len(read.statements) == 3  # messages, calls, attachments
    keep_summary(last, Summary(text="Nothing was read", questions=3, is_used=False))
    history = history_of(read_past(more, HUGE), more)
    assert history.summary is None
    assert not history.may_summarise
    assert len(history.turns) == 9


def test_a_servers_own_word_is_asked_for_again(
    tenant: Tenant, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-370: what was attached of a server that was trusted then counts as soon as it is not."""
    turn = say(conversation, Said("Look"), *[Said("word " * 50, "word " * 50)] * 60)
    first = Message.objects.for_workspace(tenant.workspace).get(text="Look")
    Attachment.objects.create(
        workspace_id=tenant.workspace.pk,
        message=first,
        server_id=uuid7(),
        server_name="mail",
        uri="mail://1",
        title="1",
        status=AttachmentStatus.READY.value,
        position=0,
    )
    closed = [ToolAnnotations]
    monkeypatch.setattr("chat.engine.trust._reaches_nothing", lambda *_: bool(closed))
    history = history_of(read_past(turn, ContextWindow(context_tokens=2_000)), turn)
    assert history.untrusted_source == ""
    assert "outside" not in history.noted
    more = say(conversation, below=answer(turn, history))
    closed.clear()
    found = history_of(read_past(more, ContextWindow(context_tokens=2_000)), more).untrusted_source
    assert found == "“mail://1” of the server “mail” was attached"


def test_what_a_person_named_long_ago_is_still_named(conversation: Conversation) -> None:
    """SEC-371: on the turn's path, and not on another one."""
    window = ContextWindow(context_tokens=2_000)
    filler = [Said("word " * 50, "word " * 50)] * 60
    turn = say(conversation, Said("Send it to shop.example.org"), *filler)
    say(conversation, Said("Or to other.example.org"))
    call = ToolCall(
        workspace_id=turn.workspace_id,
        server_id=uuid7(),
        server_name="counting",
        tool_name="f",
        arguments={"a": "https://shop.example.org/x", "b": "https://other.example.org/x"},
    )
    for past in (read_past(turn, window), whole(turn), None):
        found = known_destinations(call, turn, conversation.bud, past)
        assert found == {"shop.example.org"}
