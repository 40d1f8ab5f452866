"""Models and endpoints that speak OpenAI's Responses API alone: found out by themselves, and used like any other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from chat.providers import openai_compatible
from chat.providers.base import (
    Completion,
    CompletionRequest,
    ProviderSpec,
    ReasoningPiece,
    TextPiece,
)
from chat.providers.errors import (
    ContentFiltered,
    PicturesRefused,
    ProviderBadAnswer,
    ProviderModelUnknown,
    ProviderStalled,
    ProviderUnreachable,
)
from chat.providers.openai_compatible import OpenAICompatible
from chat.providers.responses_api import to_responses
from chat.values import TurnStatus
from tests.chat.conftest import Chat
from tests.fakes.scripted_model import Answer, ScriptedModel
from workspaces import outbound

ONLY_RESPONSES = json.dumps(
    {
        "error": {
            "message": "This model is only supported in v1/responses and not in v1/chat/completions.",
            "type": "invalid_request_error",
            "param": "model",
            "code": None,
        }
    }
).encode()
TOOLS_IN_RESPONSES = json.dumps(
    {
        "error": {
            "message": "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. "
            "To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            "type": "invalid_request_error",
            "param": "reasoning_effort",
            "code": None,
        }
    }
).encode()
"""What models of 2026 say that think before they answer; without tools they speak either form."""
USAGE = {
    "input_tokens": 36,
    "input_tokens_details": {"cached_tokens": 12},
    "output_tokens": 87,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 123,
}


def event(kind: str, **fields: Any) -> bytes:
    """One event as the API sends it: named, and with its kind in the data too."""
    data = json.dumps({"type": kind, "sequence_number": 1, **fields})
    return f"event: {kind}\ndata: {data}\n\n".encode()


def response(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": status, "output": [], **fields}


def opening() -> list[bytes]:
    empty = response("in_progress")
    return [
        event("response.created", response=empty),
        event("response.in_progress", response=empty),
    ]


def written(*words: str) -> list[bytes]:
    """A message, word by word."""
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    return [
        event("response.output_item.added", output_index=0, item=item),
        event("response.content_part.added", **where, part={"type": "output_text", "text": ""}),
        *(event("response.output_text.delta", **where, delta=word) for word in words),
        event("response.output_text.done", **where, text="".join(words)),
        event("response.output_item.done", output_index=0, item=item),
    ]


def called(index: int, call_id: str, name: str, *arguments: str) -> list[bytes]:
    """A function call, its arguments piece by piece; without pieces, in the finished item alone."""
    item = {"id": f"fc_{index}", "type": "function_call", "call_id": call_id, "name": name}
    where = {"item_id": item["id"], "output_index": index}
    whole = "".join(arguments)
    return [
        event("response.output_item.added", output_index=index, item={**item, "arguments": ""}),
        *(
            event("response.function_call_arguments.delta", **where, delta=part)
            for part in arguments
            if len(arguments) > 1
        ),
        event("response.function_call_arguments.done", **where, arguments=whole),
        event("response.output_item.done", output_index=index, item={**item, "arguments": whole}),
    ]


def ended(status: str = "completed", **fields: Any) -> bytes:
    return event(f"response.{status}", response=response(status, usage=USAGE, **fields))


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    """A model that speaks nothing else, and says so when it is asked in the other form."""
    monkeypatch.setattr(openai_compatible, "PAUSE_SECONDS", 0.01)
    scripted = ScriptedModel()
    scripted.speaks_responses = True
    yield scripted
    scripted.stop()


async def ask(
    model: ScriptedModel, request: CompletionRequest | None = None, times: int = 1
) -> tuple[list[str], list[str], Completion]:
    """What was said and thought piece by piece, and the whole; of the last of so many requests."""
    spec = ProviderSpec(name="t", base_url=model.base_url, model="m")
    request = request or CompletionRequest(
        model="m",
        messages=[{"role": "user", "content": "?"}],
        tools=['{"type":"function","function":{"name":"f","parameters":{}}}'],
    )
    texts: list[str] = []
    thoughts: list[str] = []
    async with outbound.client() as http:
        client = OpenAICompatible(spec, http)
        for number in range(times):
            texts, thoughts = [], []
            async for piece in client.stream(request):
                if isinstance(piece, TextPiece):
                    texts.append(piece.text)
                elif isinstance(piece, ReasoningPiece):
                    thoughts.append(piece.text)
                elif isinstance(piece, Completion) and number == times - 1:
                    return texts, thoughts, piece
    raise AssertionError("no completion came")


@pytest.mark.parametrize(
    "refusal",
    [(400, ONLY_RESPONSES), (400, TOOLS_IN_RESPONSES), (404, b'{"detail":"Not Found"}')],
)
async def test_it_is_found_out_once_and_remembered(
    model: ScriptedModel, refusal: tuple[int, bytes]
) -> None:
    """REL-647: whether the model says so, or the endpoint has no other path."""
    model.fail(refusal[0], refusal[1])
    for _ in range(2):
        model.give(Answer([*opening(), *written("Hel", "lo"), ended()]))
    texts, _, whole = await ask(model, times=2)
    assert texts == ["Hel", "lo"]
    assert (whole.text, whole.finish_reason) == ("Hello", "stop")
    assert (whole.prompt_tokens, whole.cached_tokens, whole.completion_tokens) == (36, 12, 87)
    assert model.paths == ["/v1/chat/completions", "/v1/responses", "/v1/responses"]


async def test_calls_come_piece_by_piece_or_whole(model: ScriptedModel) -> None:
    """REL-647: with the ids that results are told under."""
    model.fail(400, ONLY_RESPONSES)
    model.give(
        Answer(
            [
                *opening(),
                event("response.reasoning_summary_text.delta", output_index=0, delta="I look."),
                *called(1, "call_a", "f", '{"x":', "1}"),
                *called(2, "call_b", "g", '{"y":2}'),
                ended(),
            ]
        )
    )
    _, thoughts, whole = await ask(model)
    assert thoughts == ["I look."]
    assert [(call.id, call.name, call.arguments) for call in whole.calls] == [
        ("call_a", "f", '{"x":1}'),
        ("call_b", "g", '{"y":2}'),
    ]
    assert whole.finish_reason == "tool_calls"


async def test_an_endpoint_that_does_not_stream(model: ScriptedModel) -> None:
    """REL-647: the whole response in one body."""
    model.fail(400, ONLY_RESPONSES)
    output = [
        {"type": "reasoning", "summary": []},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi"}],
        },
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    body = json.dumps(response(output=output, usage=USAGE)).encode()
    model.give(Answer([body], headers={"content-type": "application/json"}))
    texts, _, whole = await ask(model)
    assert texts == ["Hi"]
    assert [(call.id, call.arguments) for call in whole.calls] == [("c", "{}")]
    assert whole.prompt_tokens == 36


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        (
            [event("response.failed", response=response("failed", error={"code": "server_error"}))],
            ProviderUnreachable,
        ),
        ([event("error", code="server_error", message="no")], ProviderUnreachable),
        (
            [*written("a"), ended("incomplete", incomplete_details={"reason": "content_filter"})],
            ContentFiltered,
        ),
        (written("broken off"), ProviderStalled),
        ([], ProviderBadAnswer),
    ],
    ids=["failed", "error", "filtered", "broken off", "empty"],
)
async def test_what_goes_wrong_is_told_as_elsewhere(
    model: ScriptedModel, parts: list[bytes], error: type[Exception]
) -> None:
    """REL-647: in the same words, and as the same kinds."""
    model.fail(400, ONLY_RESPONSES)
    for _ in range(3):
        model.give(Answer([*opening(), *parts]))
    with pytest.raises(error):
        await ask(model)


async def test_an_answer_may_be_cut_off(model: ScriptedModel) -> None:
    """REL-647: where it is as long as it may be."""
    model.fail(400, ONLY_RESPONSES)
    cut = ended("incomplete", incomplete_details={"reason": "max_output_tokens"})
    model.give(Answer([*opening(), *written("Once"), cut]))
    assert (await ask(model))[2].finish_reason == "length"


async def test_an_unknown_model_is_not_asked_for_elsewhere(model: ScriptedModel) -> None:
    """REL-647: a provider that knows the form and not the model is believed."""
    model.fail(
        404, b'{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}'
    )
    with pytest.raises(ProviderModelUnknown):
        await ask(model)
    assert model.paths == ["/v1/chat/completions"]


async def test_a_404_that_says_something_else_is_believed(model: ScriptedModel) -> None:
    """REL-647: it is not of the address."""
    model.fail(404, b'{"error":{"message":"No endpoints found that support image input"}}')
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    request = CompletionRequest(model="m", messages=[{"role": "user", "content": [picture]}])
    with pytest.raises(PicturesRefused):
        await ask(model, request)
    assert model.paths == ["/v1/chat/completions"]


async def test_an_endpoint_with_neither_form_is_told_and_asked_anew_the_next_time(
    model: ScriptedModel,
) -> None:
    """REL-647: nothing wrong is remembered."""
    model.fail(404, b'{"detail":"Not Found"}')
    model.fail(404, b'{"detail":"Not Found"}')
    spec = ProviderSpec(name="t", base_url=model.base_url, model="m")
    request = CompletionRequest(model="m", messages=[{"role": "user", "content": "?"}])
    async with outbound.client() as http:
        client = OpenAICompatible(spec, http)
        with pytest.raises(ProviderModelUnknown):
            _ = [piece async for piece in client.stream(request)]
        model.say("I am back")
        pieces = [piece async for piece in client.stream(request)]
    assert isinstance(pieces[-1], Completion)
    assert model.paths[-1] == "/v1/chat/completions"


def test_a_request_says_the_same_in_the_other_form() -> None:
    """REL-647: questions, pictures, calls, results and tools; and nothing is stored at the provider."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}
    arguments = {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 100,
        "temperature": 0.5,
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Look"}, picture]},
            {"role": "assistant", "content": "I look", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "a cat"},
        ],
    }
    assert to_responses(arguments, [json.dumps(tool)]) == {
        "model": "m",
        "stream": True,
        "store": False,
        "max_output_tokens": 100,
        "temperature": 0.5,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
        "tool_choice": {"type": "function", "name": "f"},
        "tools": [
            {
                "type": "function",
                "strict": False,
                "name": "f",
                "description": "d",
                "parameters": {},
            }
        ],
        "input": [
            {
                "type": "message",
                "role": "system",
                "content": [{"type": "input_text", "text": "Be kind."}],
            },
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
                ],
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "I look"}],
            },
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "a cat"},
        ],
    }


def test_a_whole_turn_with_a_tool(chat: Chat) -> None:
    """REL-647: the model's call goes through the gate, and its result is told under the call's id."""
    chat.model.speaks_responses = True
    chat.model.fail(400, ONLY_RESPONSES)
    chat.model.give(
        Answer([*opening(), *called(0, "call_a", "counting__echo", '{"text":"hi"}'), ended()])
    )
    chat.model.give(Answer([*opening(), *written("It said ", "hi"), ended()]))
    turn = chat.ask()
    assert turn.status == TurnStatus.COMPLETED
    assert chat.answer() == "It said hi"
    assert chat.server.calls == [("echo", {"text": "hi"})]
    asked, output = chat.model.requests[-1]["input"][-2:]
    assert (asked["type"], asked["call_id"], asked["name"]) == (
        "function_call",
        "call_a",
        "counting__echo",
    )
    assert (output["type"], output["call_id"]) == ("function_call_output", "call_a")
    assert "hi" in output["output"]
    assert turn.prompt_tokens == 72


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAB…"}


def thinks_and_calls() -> Answer:
    """A thought that only the model can read, and the call that it led to."""
    done = event("response.output_item.done", output_index=0, item={**THOUGHT, "status": None})
    call = called(1, "call_a", "counting__echo", '{"text":"hi"}')
    return Answer([*opening(), done, *call, ended()])


def test_what_it_thought_goes_back_before_the_call_that_it_led_to(chat: Chat) -> None:
    """REL-975: the provider stores nothing, so the thought comes encrypted; it goes back to the same model alone."""
    chat.model.speaks_responses = True
    chat.model.fail(400, ONLY_RESPONSES)
    chat.model.give(thinks_and_calls())
    chat.model.give(Answer([*opening(), *written("It said hi"), ended()]))
    assert chat.ask().status == TurnStatus.COMPLETED
    assert chat.model.requests[1]["include"] == ["reasoning.encrypted_content"]
    thought, call, result = chat.model.requests[-1]["input"][-3:]
    assert thought == THOUGHT
    assert (call["type"], result["type"]) == ("function_call", "function_call_output")


@pytest.mark.parametrize(
    "words",
    [
        "The encrypted content gAAA... could not be verified. Reason: Encrypted content could not be decrypted.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ],
)
def test_a_thought_that_is_refused_is_left_out(chat: Chat, words: str) -> None:
    """REL-975: the answer matters more than what led to it."""
    chat.model.speaks_responses = True
    chat.model.fail(400, ONLY_RESPONSES)
    chat.model.give(thinks_and_calls())
    chat.model.fail(400, json.dumps({"error": {"message": words}}).encode())
    chat.model.give(Answer([*opening(), *written("It said hi"), ended()]))
    assert chat.ask().status == TurnStatus.COMPLETED
    assert [one["type"] for one in chat.model.requests[-1]["input"][-2:]] == [
        "function_call",
        "function_call_output",
    ]
    assert THOUGHT not in chat.model.requests[-1]["input"]


@pytest.mark.parametrize(
    "words",
    [
        "Your organization must be verified to generate reasoning summaries. Click on Verify Organization.",
        "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
    ],
)
async def test_a_summary_of_thoughts_is_asked_for_where_it_is_given(
    model: ScriptedModel, words: str
) -> None:
    """REL-978: people read it as they read thoughts elsewhere; where it is refused, the answer comes without."""
    model.fail(400, ONLY_RESPONSES)
    model.fail(400, json.dumps({"error": {"message": words}}).encode())
    model.give(Answer([*opening(), *written("Hi"), ended()]))
    assert (await ask(model))[0] == ["Hi"]
    asked = [one.get("reasoning") for one in model.requests]
    assert asked == [None, {"summary": "auto"}, None]


async def test_an_organization_that_may_not_stream_gets_its_answer_whole(
    model: ScriptedModel,
) -> None:
    """REL-978: in either form; from then on the model is asked so at once."""
    words = "Your organization must be verified to stream this model."
    message = {"choices": [{"message": {"content": "all"}, "finish_reason": "stop"}]}
    whole = Answer([json.dumps(message).encode()], headers={"content-type": "application/json"})
    model.fail(400, json.dumps({"error": {"message": words, "param": "stream"}}).encode())
    model.give(whole)
    model.give(whole)
    assert (await ask(model, times=2))[0] == ["all"]
    assert [one["stream"] for one in model.requests] == [True, False, False]
    assert ["stream_options" in one for one in model.requests] == [True, False, False]


@pytest.mark.parametrize(
    "words",
    ["Encrypted content is not supported with this model.", "Unknown parameter: 'include'."],
)
async def test_a_model_that_encrypts_nothing_is_not_asked_to(
    model: ScriptedModel, words: str
) -> None:
    """REL-975: it answers without."""
    model.fail(400, ONLY_RESPONSES)
    model.fail(400, json.dumps({"error": {"message": words}}).encode())
    model.give(Answer([*opening(), *written("Hi"), ended()]))
    assert (await ask(model))[0] == ["Hi"]
    assert ["include" in one for one in model.requests] == [False, True, False]
