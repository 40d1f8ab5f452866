"""What providers send, and what people read when it goes wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.providers import openai_compatible
from chat.providers.accumulator import Accumulator
from chat.providers.base import Completion, CompletionRequest, ProviderSpec, TextPiece
from chat.providers.errors import ProviderError
from chat.providers.event_stream import EventStreamReader
from chat.providers.openai_compatible import OpenAICompatible
from mcp_servers import outbound
from tests.fakes.scripted_model import DONE, Answer, ScriptedModel, chunk, event, usage
from workspaces.secrets import Secret

KEY = "sk-canary-canary-canary-0123456789"


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    scripted = ScriptedModel()
    yield scripted
    scripted.stop()


async def ask(model: ScriptedModel) -> tuple[list[str], Completion]:
    """One request; the pieces of text, and the whole."""
    spec = ProviderSpec(name="t", base_url=model.base_url, model="m", api_key=Secret(KEY))
    pieces: list[str] = []
    async with outbound.client() as http:
        request = CompletionRequest(model="m", messages=[{"role": "user", "content": "?"}])
        async for piece in OpenAICompatible(spec, http).stream(request):
            if isinstance(piece, TextPiece):
                pieces.append(piece.text)
            else:
                return pieces, piece
    raise AssertionError("no completion came")


def call_delta(**parts: Any) -> bytes:
    return chunk({"tool_calls": [parts]})


CALLS = {
    "two calls with indices": [
        call_delta(index=0, id="a", function={"name": "f", "arguments": '{"x":'}),
        call_delta(index=0, function={"arguments": "1}"}),
        call_delta(index=1, id="b", function={"name": "g", "arguments": "{}"}),
    ],
    "every call at index 0": [
        call_delta(index=0, id="a", function={"name": "f", "arguments": '{"x":1}'}),
        call_delta(index=0, id="b", function={"name": "g", "arguments": "{}"}),
    ],
    "no index at all": [
        call_delta(id="a", function={"name": "f", "arguments": '{"x":1}'}),
        call_delta(id="b", function={"name": "g", "arguments": "{}"}),
    ],
    "first index is 1": [
        call_delta(index=1, id="a", function={"name": "f", "arguments": '{"x":1}'}),
        call_delta(index=2, id="b", function={"name": "g", "arguments": "{}"}),
    ],
    "id and name in every delta": [
        call_delta(index=0, id="a", function={"name": "f", "arguments": '{"x":'}),
        call_delta(index=0, id="a", function={"name": "f", "arguments": "1}"}),
        call_delta(index=1, id="b", function={"name": "g", "arguments": "{}"}),
    ],
    "arguments as an object, and null": [
        call_delta(index=0, id="a", function={"name": "f", "arguments": {"x": 1}}),
        call_delta(index=1, id="b", function={"name": "g", "arguments": None}),
    ],
    "ids missing": [
        call_delta(index=0, function={"name": "f", "arguments": '{"x":1}'}),
        call_delta(index=1, function={"name": "g", "arguments": ""}),
    ],
}


@pytest.mark.parametrize("form", CALLS)
async def test_tool_calls_are_read_in_every_form_that_servers_send(
    model: ScriptedModel, form: str
) -> None:
    """REL-33: as OpenAI, vLLM, Ollama, LiteLLM and others word it."""
    model.give(Answer([*CALLS[form], chunk({}, "stop"), usage(), DONE]))
    _, whole = await ask(model)
    assert [call.name for call in whole.calls] == ["f", "g"]
    assert json.loads(whole.calls[0].arguments) == {"x": 1}
    assert json.loads(whole.calls[1].arguments or "{}") == {}
    assert len({call.id for call in whole.calls}) == 2


async def test_text_usage_and_odd_chunks(model: ScriptedModel) -> None:
    """REL-33: empty choices, null content, comments and CRLF do no harm."""
    odd = b": keep-alive\r\n\r\n" + chunk({"content": None}) + event({"choices": []})
    model.give(
        Answer([odd, chunk({"content": "grüß "}), chunk({"content": "🌱"}, "stop"), usage(), DONE])
    )
    pieces, whole = await ask(model)
    assert pieces == ["grüß ", "🌱"]
    assert whole.text == "grüß 🌱"
    assert (whole.prompt_tokens, whole.completion_tokens) == (7, 5)


FAILURES: dict[str, tuple[Answer, str]] = {
    "bad key": (Answer([b"{}"], status=401), "provider_key_refused"),
    "forbidden": (Answer([b"{}"], status=403), "provider_key_refused"),
    "no such model": (Answer([b"{}"], status=404), "provider_model_unknown"),
    "rate limit": (
        Answer([b"{}"], status=429, headers={"retry-after": "900"}),
        "provider_rate_limited",
    ),
    "context too long": (
        Answer(
            [b'{"error":{"code":"context_length_exceeded","message":"secret text"}}'],
            status=400,
            headers={"content-type": "application/json"},
        ),
        "context_too_long",
    ),
    "bad request": (Answer([b"{}"], status=400), "provider_refused_request"),
    "broken JSON": (Answer([b"data: {nope\n\n", DONE]), "provider_bad_answer"),
    "a page instead of an answer": (
        Answer([b"<html>hello</html>"], headers={"content-type": "text/html"}),
        "provider_bad_answer",
    ),
    "an error in the stream": (
        Answer([chunk({"content": "a"}), event({"error": {"code": "rate_limit", "message": KEY}})]),
        "provider_rate_limited",
    ),
    "cut without a reason": (Answer([chunk({"content": "a"})]), "provider_stalled"),
    "done without content": (Answer([DONE]), "provider_bad_answer"),
    "nothing at all": (Answer([]), "provider_bad_answer"),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_each_failure_has_its_own_words(model: ScriptedModel, failure: str) -> None:
    """REL-33, SEC-34: typed, in plain words, and never the other side's text."""
    answer, code = FAILURES[failure]
    model.give(answer)
    with pytest.raises(ProviderError) as caught:
        await ask(model)
    assert caught.value.code == code
    assert KEY not in caught.value.message
    assert "secret text" not in caught.value.message


async def test_a_stalled_stream_ends_in_time(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-32: silence after a token, and comments for ever, are no progress."""
    monkeypatch.setattr(openai_compatible, "BETWEEN_PIECES_SECONDS", 0.3)
    model.give(Answer([chunk({"content": "a"}), b": ping\n\n" * 50], hangs=True))
    with pytest.raises(ProviderError) as caught:
        async with asyncio.timeout(10):
            await ask(model)
    assert caught.value.code == "provider_stalled"


async def test_a_model_that_never_begins_ends_in_time(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-32: the first token has its deadline too."""
    monkeypatch.setattr(openai_compatible, "FIRST_PIECE_SECONDS", 0.3)
    model.give(Answer([], hangs=True))
    with pytest.raises(ProviderError) as caught:
        async with asyncio.timeout(10):
            await ask(model)
    assert caught.value.code == "provider_stalled"


async def test_a_provider_that_is_not_there() -> None:
    """REL-33: no connection is said as such."""
    spec = ProviderSpec(name="t", base_url="http://127.0.0.1:9/v1", model="m")
    async with outbound.client() as http:
        with pytest.raises(ProviderError) as caught:
            async for _ in OpenAICompatible(spec, http).stream(
                CompletionRequest(model="m", messages=[])
            ):
                pass
    assert caught.value.code == "provider_unreachable"


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_events_are_whole_wherever_the_network_cuts(
    texts: list[str], newline: str, cuts: list[int]
) -> None:
    """REL-33: every cut of the same bytes, also inside a character, gives the same events."""
    raw = "".join(f": c{newline}data: {text}{newline}{newline}" for text in texts).encode()
    edges = sorted({0, len(raw), *(min(cut, len(raw)) for cut in cuts)})
    reader = EventStreamReader()
    seen = [data for start, end in pairwise(edges) for data in reader.feed(raw[start:end])]
    assert [*seen, *reader.close()] == texts


def test_usage_on_every_chunk_counts_once() -> None:
    """REL-33: some servers repeat the counts as they grow."""
    accumulator = Accumulator()
    for number in (1, 2, 3):
        accumulator.take(
            {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": number}}
        )
    whole = accumulator.completion()
    assert (whole.prompt_tokens, whole.completion_tokens) == (4, 3)
