"""What providers send, and what people read when it goes wrong."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.providers import openai_compatible
from chat.providers.accumulator import Accumulator
from chat.providers.adapting import adapt, habits_in_refusal
from chat.providers.base import Completion, CompletionRequest, ProviderSpec, TextPiece
from chat.providers.errors import ProviderError
from chat.providers.event_stream import EventStreamReader
from chat.providers.failures import error_of, read_error, wait_of
from chat.providers.listing import list_models
from chat.providers.openai_compatible import OpenAICompatible
from tests.chat.providers.streams import bytes_of, recorded
from tests.fakes.scripted_model import DONE, Answer, ScriptedModel, chunk, event, usage
from tests.patience import PATIENCE
from workspaces import outbound
from workspaces.secrets import Secret

KEY = "sk-canary-canary-canary-0123456789"


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    scripted = ScriptedModel()
    yield scripted
    scripted.stop()


@pytest.fixture
def model(server: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    """The same server for all tests here, with an empty script; it is asked again at once."""
    monkeypatch.setattr(openai_compatible, "PAUSE_SECONDS", 0.01)
    server.clear()
    return server


async def ask(
    model: ScriptedModel, query: str = "", **parameters: Any
) -> tuple[list[str], Completion]:
    """One request; the pieces of text, and the whole."""
    base_url = model.base_url + query
    spec = ProviderSpec(name="t", base_url=base_url, model="m", api_key=Secret(KEY))
    pieces: list[str] = []
    async with outbound.client() as http:
        messages = [{"role": "user", "content": "?"}]
        request = CompletionRequest(model="m", messages=messages, parameters=parameters)
        async for piece in OpenAICompatible(spec, http).stream(request):
            if isinstance(piece, TextPiece):
                pieces.append(piece.text)
            elif isinstance(piece, Completion):
                return pieces, piece
    raise AssertionError("no completion came")


async def test_a_query_of_the_endpoint_stays_behind_the_path(model: ScriptedModel) -> None:
    """REL-838: as Azure's `api-version`, and keys of gateways."""
    model.say("Yes.")
    _, whole = await ask(model, "?api-version=2024-10-21")
    assert whole.text == "Yes."
    assert model.paths == ["/v1/chat/completions"]
    assert model.queries == ["api-version=2024-10-21"]
    model.models = {"data": [{"id": "m"}]}
    spec = ProviderSpec(name="t", base_url=f"{model.base_url}/?api-version=1", model="m")
    assert [one.name for one in (await list_models(spec)).models] == ["m"]


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


RATE = "provider_rate_limited"


def refusal(status: int, error: dict[str, Any], **headers: str) -> Answer:
    """An error as a JSON body."""
    kind = {"content-type": "application/json", **headers}
    return Answer([json.dumps({"error": error}).encode()], status=status, headers=kind)


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
    "request timeout": (Answer([b"{}"], status=408), "provider_stalled"),
    "no credit": (Answer([b"{}"], status=402), "provider_credit_spent"),
    "quota spent, told as too many requests": (
        refusal(429, {"code": "insufficient_quota", "message": "You exceeded your current quota"}),
        "provider_credit_spent",
    ),
    "overloaded": (Answer([b"{}"], status=529, headers={"retry-after": "60"}), RATE),
    "overloaded, told as not available": (
        refusal(503, {"message": "Overloaded"}, **{"retry-after": "99"}),
        RATE,
    ),
    "a page of a gateway": (
        Answer(
            [b"<html>502 Bad Gateway</html>"], status=502, headers={"content-type": "text/html"}
        ),
        "provider_unreachable",
    ),
    "the connection is reset": (
        Answer([chunk({"content": "a"})], breaks=True),
        "provider_unreachable",
    ),
    "a cut character, and no end": (Answer([b'data: {"choices": "\xc3']), "provider_bad_answer"),
    "an answer that is no stream, with an error": (
        Answer(
            [b'{"error": {"message": "rate limit exceeded", "code": 429}}'],
            headers={"content-type": "application/json"},
        ),
        RATE,
    ),
    "context, vLLM": (
        refusal(400, {"message": "This model's maximum context length is 4096 tokens."}),
        "context_too_long",
    ),
    "context, llama.cpp": (
        refusal(
            400,
            {"type": "exceed_context_size_error", "message": "the request exceeds", "n_ctx": 2048},
        ),
        "context_too_long",
    ),
    "context, Anthropic": (
        refusal(400, {"message": "prompt is too long: 210000 tokens > 200000 maximum"}),
        "context_too_long",
    ),
    "context, Gemini": (
        refusal(
            400,
            {
                "message": "The input token count (1200000) exceeds the maximum number of tokens allowed"
            },
        ),
        "context_too_long",
    ),
    "context, Groq": (refusal(413, {"message": "Request Entity Too Large"}), "context_too_long"),
    "content filter, Azure": (
        refusal(
            400,
            {
                "code": "content_filter",
                "message": "triggering Azure OpenAI's content management policy",
            },
        ),
        "content_filtered",
    ),
    "content filter, OpenRouter": (
        refusal(403, {"message": "Your input was flagged", "metadata": {"reasons": ["x"]}}),
        "content_filtered",
    ),
    "a model that is told as a bad request": (
        refusal(400, {"message": "model 'x' not found"}),
        "provider_model_unknown",
    ),
}

# As each says it (status, words) when it is offered tools that it cannot take.
NO_TOOLS = {
    "Ollama": (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    "vLLM": (
        400,
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    ),
    "OpenRouter": (
        404,
        "No endpoints found that support tool use. To learn more about provider routing, visit",
    ),
    "llama.cpp": (500, "tools param requires --jinja flag"),
    "Groq": (
        400,
        "`tool calling` is not supported with this model: function calling is not supported",
    ),
    "OpenAI": (400, "Unsupported parameter: 'tools' is not supported with this model."),
    "a strict one": (422, "Extra inputs are not permitted: extra fields: tools"),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_each_failure_has_its_own_words(model: ScriptedModel, failure: str) -> None:
    """REL-33, SEC-34: typed, in plain words, and never the other side's text."""
    answer, code = FAILURES[failure]
    for _ in range(openai_compatible.MOST_ATTEMPTS):
        model.give(answer)
    with pytest.raises(ProviderError) as caught:
        await ask(model)
    assert caught.value.code == code
    assert KEY not in caught.value.message
    assert "secret text" not in caught.value.message
    assert KEY not in str(caught.value.details)
    assert caught.value.message.endswith(".")
    assert caught.value.can_retry


@pytest.mark.parametrize("who", NO_TOOLS)
def test_a_model_that_takes_no_tools_is_told_from_other_refusals(who: str) -> None:
    """REL-33: in each provider's words; without tools in the request the same words mean something else."""
    status, words = NO_TOOLS[who]
    error = read_error({"error": {"message": words}})
    assert error_of(error, status=status, has_tools=True).code == "provider_refused_tools"
    assert error_of(error, status=status).code != "provider_refused_tools"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_how_long_a_provider_wants_to_be_left_alone(
    headers: dict[str, str], seconds: float | None
) -> None:
    """REL-33: milliseconds, seconds, a date, or nothing that can be read."""
    assert wait_of(headers, datetime(2026, 11, 21, 12, tzinfo=UTC)) == seconds


async def test_a_short_wait_is_waited_for(model: ScriptedModel) -> None:
    """REL-33: before anything came, the request is repeated by itself, and not before it is time."""
    model.give(refusal(429, {"message": "slow down"}, **{"retry-after-ms": "150"}))
    model.give(Answer([chunk({"content": "there"}, "stop"), DONE]))
    started = time.monotonic()
    assert (await ask(model))[0] == ["there"]
    assert time.monotonic() - started >= 0.15
    assert len(model.requests) == 2


async def test_it_is_not_asked_for_ever(model: ScriptedModel) -> None:
    """REL-33: a bounded number of attempts, then the person is told when to come back."""
    for _ in range(5):
        model.give(refusal(429, {"message": "slow down"}, **{"retry-after-ms": "10"}))
    with pytest.raises(ProviderError, match="Try again in a moment") as caught:
        await ask(model)
    assert caught.value.code == RATE
    assert len(model.requests) == openai_compatible.MOST_ATTEMPTS


async def test_a_long_wait_is_told(model: ScriptedModel) -> None:
    """REL-33: nobody sits before a silent page for a quarter of an hour."""
    model.give(refusal(429, {"message": "slow down"}, **{"retry-after": "900"}))
    with pytest.raises(ProviderError, match="Try again in about 15 minutes"):
        await ask(model)
    assert len(model.requests) == 1


async def test_what_has_begun_is_not_repeated(model: ScriptedModel) -> None:
    """REL-33: after the first piece the beginning is kept, and the person decides."""
    limit = event({"error": {"code": 429, "message": "slow down"}})
    model.give(Answer([chunk({"content": "a"}), limit]))
    with pytest.raises(ProviderError):
        await ask(model)
    assert len(model.requests) == 1


async def test_an_error_in_the_stream_before_anything_else_is_repeated(
    model: ScriptedModel,
) -> None:
    """REL-33: as OpenRouter words a provider of its own that is down."""
    model.give(
        Answer([b": OPENROUTER PROCESSING\n\n", event({"error": {"code": 502, "message": "down"}})])
    )
    model.give(Answer([chunk({"content": "there"}, "stop"), DONE]))
    assert (await ask(model))[0] == ["there"]


async def test_a_request_takes_the_form_that_a_server_takes(model: ScriptedModel) -> None:
    """REL-33: without `stream_options`, and with the newer name of `max_tokens`, once that has been said."""
    model.give(refusal(400, {"message": "Unrecognized request argument supplied: stream_options"}))
    model.give(
        refusal(400, {"message": "Unsupported parameter: use 'max_completion_tokens' instead."})
    )
    model.give(Answer([chunk({"content": "there"}, "stop"), DONE]))
    assert (await ask(model, max_tokens=50))[0] == ["there"]
    assert "stream_options" not in model.requests[-1]
    assert model.requests[-1]["max_completion_tokens"] == 50
    assert "max_tokens" not in model.requests[-1]


@pytest.mark.parametrize("forced", ["required", {"type": "function", "function": {"name": "f"}}])
def test_a_model_on_which_no_tool_can_be_forced_is_left_to_choose(forced: Any) -> None:
    """REL-33: once it has said so; where nothing was forced its words mean something else."""
    words = "The tool_choice parameter does not support being set to required in thinking mode"
    habits = habits_in_refusal(words, {"tool_choice": forced}, 400)
    for choice, adapted in ((forced, "auto"), ("none", "none")):
        request: dict[str, Any] = {"tool_choice": choice, "messages": []}
        assert adapt(request, habits) == {"tool_choice": adapted, "messages": []}
    assert not habits_in_refusal(words, {"tool_choice": "auto"}, 400)
    assert not habits_in_refusal(words, {"tool_choice": forced}, 500)


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("Unsupported parameter: 'temperature' is not supported with this model.", {"top_p"}),
        (
            "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default is supported.",
            {"top_p"},
        ),
        ("`temperature` is deprecated for this model.", {"top_p"}),
        (
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            {"temperature"},
        ),
    ],
    ids=["OpenAI", "OpenAI, another value", "Anthropic", "Anthropic, one of two"],
)
async def test_a_setting_that_a_model_does_not_take_is_left_out(
    model: ScriptedModel, words: str, left: set[str]
) -> None:
    """REL-970: the question is asked again at once, and the next one without it from the start."""
    model.give(refusal(400, {"message": words, "type": "invalid_request_error"}))
    model.say("first")
    model.say("second")
    request = CompletionRequest(
        model="m",
        messages=[{"role": "user", "content": "?"}],
        parameters={"temperature": 0.7, "top_p": 0.9},
    )
    spec = ProviderSpec(name="t", base_url=model.base_url, model="m")
    async with outbound.client() as http:
        client = OpenAICompatible(spec, http)
        for _ in range(2):
            _ = [piece async for piece in client.stream(request)]
    sent = [{"temperature", "top_p"} & set(one) for one in model.requests]
    assert sent == [{"temperature", "top_p"}, left, left]


async def test_a_setting_out_of_range_is_told(model: ScriptedModel) -> None:
    """REL-970: a model that takes the setting takes no other in its place."""
    model.give(refusal(400, {"message": "temperature: range: 0..1"}))
    with pytest.raises(ProviderError, match="did not accept the request"):
        await ask(model, temperature=1.5)
    assert len(model.requests) == 1


async def test_a_server_that_does_not_stream(model: ScriptedModel) -> None:
    """REL-33: the whole answer in one body is an answer too."""
    message = {"role": "assistant", "content": "all at once"}
    body = {
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3},
    }
    model.give(Answer([json.dumps(body).encode()], headers={"content-type": "application/json"}))
    _, whole = await ask(model)
    assert (whole.text, whole.prompt_tokens) == ("all at once", 3)


async def test_done_ends_it_though_the_connection_stays_open(model: ScriptedModel) -> None:
    """REL-32: nobody waits for a close that does not come."""
    model.give(Answer([chunk({"content": "a"}, "stop"), DONE], hangs=True))
    async with asyncio.timeout(PATIENCE):
        assert (await ask(model))[0] == ["a"]


async def test_long_arguments_and_thoughts_are_progress(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-32: a model that writes a long argument has not stalled."""
    monkeypatch.setattr(openai_compatible, "BETWEEN_PIECES_SECONDS", 0.4)
    pause = threading.Event()
    timer = threading.Timer(0.3, pause.set)
    second = threading.Event()
    later = threading.Timer(0.6, second.set)
    parts: list[Any] = [chunk({"reasoning": "hm"}), pause]
    parts += [call_delta(index=0, id="a", function={"name": "f", "arguments": '{"x":'}), second]
    parts += [call_delta(index=0, function={"arguments": "1}"}), chunk({}, "tool_calls"), DONE]
    model.give(Answer(parts))
    timer.start()
    later.start()
    assert (await ask(model))[1].calls[0].arguments == '{"x":1}'


@pytest.mark.parametrize(
    "name",
    [
        "azure: empty choices first, filter results without a delta",
        "ollama: every call whole, all with index 0, finish stop",
        "openrouter: comments while it waits, reasoning with details, cost beside usage",
    ],
)
async def test_recorded_streams_over_real_http(model: ScriptedModel, name: str) -> None:
    """REL-33: the same through sockets, in small pieces."""
    case = recorded()[name]
    raw = bytes_of(case)
    model.give(Answer([raw[at : at + 37] for at in range(0, len(raw), 37)]))
    pieces, whole = await ask(model)
    assert "".join(pieces) == case["expect"].get("text", "")
    assert whole.reasoning == case["expect"].get("reasoning", "")
    assert [[call.name, call.arguments] for call in whole.calls] == case["expect"].get("calls", [])


async def test_a_stalled_stream_ends_in_time(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-32: silence after a token, and comments for ever, are no progress."""
    monkeypatch.setattr(openai_compatible, "BETWEEN_PIECES_SECONDS", 0.3)
    model.give(Answer([chunk({"content": "a"}), b": ping\n\n" * 50], hangs=True))
    with pytest.raises(ProviderError) as caught:
        async with asyncio.timeout(PATIENCE):
            await ask(model)
    assert caught.value.code == "provider_stalled"
    assert "in the middle" in caught.value.message


async def test_a_model_that_never_begins_ends_in_time(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-32, REL-1309: the first token has its deadline too. Nothing stopped in the middle, and nobody is told so."""
    monkeypatch.setattr(openai_compatible, "FIRST_PIECE_SECONDS", 0.3)
    model.give(Answer([], hangs=True))
    with pytest.raises(ProviderError) as caught:
        async with asyncio.timeout(PATIENCE):
            await ask(model)
    assert caught.value.code == "provider_stalled"
    assert caught.value.message == "The model provider did not answer in time."


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
