"""Streams that break after their end, pieces that contradict each other, and what people are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from chat.providers import openai_compatible
from chat.providers.accumulator import Accumulator, CallsUnclear
from chat.providers.answer_reader import EVENT_TOO_LONG, AnswerReader
from chat.providers.base import Completion, CompletionRequest, ProviderSpec, TextPiece
from chat.providers.errors import ProviderBadAnswer, ProviderError
from chat.providers.failures import error_of, read_error, wait_of
from chat.providers.openai_compatible import OpenAICompatible
from tests.fakes.scripted_model import DONE, Answer, ScriptedModel, chunk, event, usage
from workspaces import outbound
from workspaces.words.waiting_times import duration_in_words, wait_in_words


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    monkeypatch.setattr(openai_compatible, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(openai_compatible, "AFTER_END_SECONDS", 0.3)
    monkeypatch.setattr(openai_compatible, "BETWEEN_PIECES_SECONDS", 30.0)
    scripted = ScriptedModel()
    yield scripted
    scripted.stop()


async def ask(model: ScriptedModel, **bounds: Any) -> Completion:
    spec = ProviderSpec(name="t", base_url=model.base_url, model="m")
    async with outbound.client(bounds=outbound.Bounds(**bounds)) as http:
        request = CompletionRequest(model="m", messages=[{"role": "user", "content": "?"}])
        async for piece in OpenAICompatible(spec, http).stream(request):
            if isinstance(piece, Completion):
                return piece
    raise AssertionError("no completion came")


def call_delta(**parts: Any) -> bytes:
    return chunk({"tool_calls": [parts]})


ODD_ENDS: dict[str, Answer] = {
    "breaks": Answer([], breaks=True),
    "hangs": Answer([], hangs=True),
    "just ends": Answer([]),
    "sends rubbish": Answer([b"data: {{{\n\n"]),
    "sends an error": Answer([event({"error": {"message": "overloaded", "code": 503}})]),
    "never ends an event": Answer([b"data: " + b"x" * 5_000_000]),
}


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "length"])
@pytest.mark.parametrize("end", ODD_ENDS)
async def test_an_answer_is_whole_once_its_reason_has_come(
    model: ScriptedModel, end: str, reason: str
) -> None:
    """REL-203, REL-33: whatever the connection does then; the request is not sent again."""
    odd = ODD_ENDS[end]
    begun = [
        chunk({"content": "all of it"}),
        call_delta(index=0, id="a", function={"name": "f", "arguments": "{}"}),
        chunk({}, reason),
    ]
    model.give(Answer([*begun, *odd.parts], hangs=odd.hangs, breaks=odd.breaks))
    whole = await ask(model)
    assert (whole.text, whole.finish_reason) == ("all of it", reason)
    assert [(call.name, call.arguments) for call in whole.calls] == [("f", "{}")]
    assert len(model.requests) == 1


async def test_token_counts_behind_the_end_are_still_read(model: ScriptedModel) -> None:
    """REL-203: the end is not the last that is listened to."""
    model.give(Answer([chunk({"content": "a"}, "stop"), usage(7, 5)], hangs=True))
    whole = await ask(model)
    assert (whole.prompt_tokens, whole.completion_tokens) == (7, 5)


@pytest.mark.parametrize("end", ["breaks", "just ends", "sends rubbish"])
async def test_an_answer_without_a_reason_is_not_whole(model: ScriptedModel, end: str) -> None:
    """REL-33: nothing is taken for an end that is none."""
    odd = ODD_ENDS[end]
    model.give(Answer([chunk({"content": "half"}), *odd.parts], breaks=odd.breaks))
    with pytest.raises(ProviderError):
        await ask(model)


async def test_a_reason_of_the_providers_own_failure_is_no_end(model: ScriptedModel) -> None:
    """REL-33: the answer broke off, and says so."""
    model.give(Answer([chunk({"content": "half"}, "error")], breaks=True))
    with pytest.raises(ProviderError):
        await ask(model)


def calls_of(*deltas: dict[str, Any]) -> list[tuple[str, str]]:
    accumulator = Accumulator()
    for delta in deltas:
        accumulator.take({"choices": [{"delta": {"tool_calls": [delta]}}]})
    accumulator.close()
    return [(call.name, call.arguments) for call in accumulator.completion().calls]


def piece(call_id: str | None, name: str | None, arguments: str, index: int | None = 0) -> Any:
    values: dict[str, Any] = {"function": {"arguments": arguments}}
    if index is not None:
        values["index"] = index
    if call_id is not None:
        values["id"] = call_id
    if name is not None:
        values["function"]["name"] = name
    return values


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([("a", "f", "{}"), ("b", "g", "[]")], [("f", "{}"), ("g", "[]")]),
        ([(None, "f", ""), (None, "g", "[]")], [("f", ""), ("g", "[]")]),
        ([(None, "f", '{"x":'), (None, "g", "[]")], [("f", '{"x":'), ("g", "[]")]),
        ([("a", "f", ""), (None, "g", "[]")], [("f", ""), ("g", "[]")]),
        ([(None, "f", "{}"), ("b", "g", "[]")], [("f", "{}"), ("g", "[]")]),
        (
            [("a", "f", "{"), ("b", "g", "["), ("a", None, "}"), ("b", None, "]")],
            [("f", "{}"), ("g", "[]")],
        ),
        ([("a", "f", "{"), ("a", "f", "}")], [("f", "{}")]),
        ([("a", "f", "{"), (None, None, "}")], [("f", "{}")]),
    ],
)
def test_another_name_or_id_is_another_call(
    index: int | None, pieces: list[Any], expected: list[Any]
) -> None:
    """REL-203: also under the same index; arguments never move from one call to another."""
    assert calls_of(*(piece(one[0], one[1], one[2], index) for one in pieces)) == expected


@pytest.mark.parametrize(
    "pieces",
    [
        [("a", "f", "{}"), ("a", "g", "[]")],
        [("a", "f", "{}"), ("b", "g", "[]"), ("a", "h", "1")],
        [(None, None, "{}")],
        [(f"id{number}", "f", "{}") for number in range(200)],
    ],
    ids=["one id, two names", "the first id, a third name", "no name at all", "too many"],
)
def test_calls_that_contradict_each_other_fail_the_step(pieces: list[Any]) -> None:
    """REL-203: rather none than one with another's arguments."""
    with pytest.raises(CallsUnclear):
        calls_of(*(piece(*one) for one in pieces))


async def test_contradicting_calls_are_told_in_plain_words_and_none_is_made(
    model: ScriptedModel,
) -> None:
    """REL-203, REL-33: also where the end has come behind them."""
    model.give(
        Answer(
            [
                call_delta(index=0, id="a", function={"name": "f", "arguments": "{}"}),
                call_delta(index=0, id="a", function={"name": "g", "arguments": "{}"}),
                chunk({}, "tool_calls"),
                DONE,
            ]
        )
    )
    with pytest.raises(ProviderBadAnswer, match="contradict each other"):
        await ask(model)


SMILE = json.dumps("\N{GRINNING FACE}")[1:-1]
FIRST, SECOND = SMILE[:6], SMILE[6:]


def read(*datas: str) -> tuple[str, Completion]:
    reader = AnswerReader()
    pieces = []
    for data in datas:
        pieces += list(reader.feed(f"data: {data}\n\n".encode()))
    pieces += list(reader.close())
    text = "".join(one.text for one in pieces if isinstance(one, TextPiece))
    return text, reader.completion()


def delta(field: str, text: str, reason: str = "null") -> str:
    return f'{{"choices":[{{"delta":{{"{field}":"{text}"}},"finish_reason":{reason}}}]}}'


@pytest.mark.parametrize("before", ["", "a", "<think>b</think>"])
@pytest.mark.parametrize("field", ["content", "reasoning"])
def test_a_character_cut_in_two_is_joined(field: str, before: str) -> None:
    """REL-203: in text and thought."""
    start = delta(field, before + FIRST)
    text, whole = read(start, delta(field, SECOND + "!"), delta("content", "", '"stop"'))
    assert "\N{GRINNING FACE}!" in (whole.text if field == "content" else whole.reasoning)
    assert "\N{REPLACEMENT CHARACTER}" not in whole.text + whole.reasoning
    assert text == whole.text


def test_half_a_character_that_stays_alone_is_replaced() -> None:
    """REL-203, SEC-76: it cannot be stored."""
    _, whole = read(
        delta("content", "a" + FIRST), delta("content", "b"), delta("content", FIRST, '"stop"')
    )
    assert whole.text == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"


def test_a_character_cut_in_two_within_arguments_is_joined() -> None:
    """REL-203."""
    first, second = "\N{GRINNING FACE}".encode("utf-16-be"), b""
    first, second = first[:2], first[2:]
    halves = [part.decode("utf-16-be", "surrogatepass") for part in (first, second)]
    calls = calls_of(piece("a", "f", '{"x":"' + halves[0]), piece("a", None, halves[1] + '"}'))
    assert calls == [("f", '{"x":"\N{GRINNING FACE}"}')]


def test_signs_of_life_are_skipped() -> None:
    """REL-203: null, nothing, and choices that are empty, null or hold nothing."""
    text, _ = read(
        "null",
        "",
        '{"choices":[]}',
        '{"choices":[null]}',
        '{"choices":[{"delta":null}]}',
        delta("content", "a"),
        "null",
        delta("content", "b", '"stop"'),
        "null",
    )
    assert text == "ab"


@pytest.mark.parametrize("line", [1_500_000, 5_000_000])
async def test_an_event_that_is_too_long_says_so(model: ScriptedModel, line: int) -> None:
    """REL-203, REL-33: whether our reader or the way to it is what has enough."""
    model.give(Answer([chunk({"content": "a"}), b"data: " + b"x" * line, b"\n\n"]))
    with pytest.raises(ProviderBadAnswer) as caught:
        await ask(model, body_bytes=20_000_000)
    assert caught.value.message == EVENT_TOO_LONG


NOON = datetime(2026, 12, 30, 12, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "in a moment"),
        (0.2, "in a moment"),
        (2.3, "in about 3 seconds"),
        (60, "in about 60 seconds"),
        (899, "in about 15 minutes"),
        (2 * 3600, "at 14:05 UTC"),
        (2 * 3600 + 1, "at 14:06 UTC"),
        (26 * 3600, "tomorrow at 14:05 UTC"),
        (24 * 3600, "tomorrow at 12:05 UTC"),
        (86_400 * 2, "on 1 January 2027 at 12:05 UTC"),
    ],
)
def test_waiting_times_are_told_as_people_tell_them(seconds: float, words: str) -> None:
    """REL-204: neither 0 seconds nor 1440 minutes, and never too early."""
    assert wait_in_words(seconds, NOON) == words


def test_the_end_of_a_providers_limit_is_told() -> None:
    """REL-204, REL-33: a wait of days is not cut down to one."""
    wait = wait_of({"retry-after": str(3 * 86_400)})
    assert wait == 3 * 86_400
    error = error_of(read_error({}), status=429, wait=wait)
    assert " at " in error.message
    assert error.message.endswith(" UTC.")
    assert error_of(read_error({}), status=429, wait=0.0).message.endswith("in a moment.")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.5, "0.5 seconds"),
        (1, "1 second"),
        (30, "30 seconds"),
        (120, "2 minutes"),
        (7200, "2 hours"),
    ],
)
def test_durations_are_told_in_words(seconds: float, words: str) -> None:
    """REL-204."""
    assert duration_in_words(seconds) == words
