"""What providers of thinking models want back with an answer's calls: kept, and given to them alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from chat.models import ModelProvider
from chat.providers import standing_in
from chat.providers.accumulator import Accumulator
from chat.providers.base import CompletionRequest, ProviderSpec
from chat.providers.echoed_fields import MOST_CHARACTERS, DetailsJoiner, EchoedFields
from chat.providers.errors import ProviderError
from chat.providers.openai_compatible import OpenAICompatible
from chat.values import TurnStatus
from tests.chat.conftest import Chat
from tests.fakes.scripted_model import DONE, Answer, ScriptedModel, chunk, usage
from workspaces import outbound

SIGNATURE = {"google": {"thought_signature": "EjQKMgEMOdbHJChLX75QUCJj"}}
NO_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
GEMINI = json.dumps(
    [
        {
            "error": {
                "code": 400,
                "message": "Function call is missing a thought_signature in functionCall parts. This is required for"
                " tools to work correctly. Additional data, function call `default_api:f`, position 2.",
                "status": "INVALID_ARGUMENT",
            }
        }
    ]
).encode()
"""Its endpoint for OpenAI's clients puts errors into a list."""
DEEPSEEK = "The `reasoning_content` in the thinking mode must be passed back to the API."
KIMI = (
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"
)


def refusal(words: str) -> bytes:
    return json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()


def asks(*fields: Mapping[str, Any], thought: Mapping[str, Any] | None = None) -> Answer:
    """A thought, then a call for each of these fields, which stand beside its function. Gemini counts no calls."""
    calls = [
        {
            "id": f"function-call-{number}",
            "type": "function",
            "function": {"name": "counting__echo", "arguments": json.dumps({"text": str(number)})},
            **beside,
        }
        for number, beside in enumerate(fields)
    ]
    thoughts = [chunk(thought)] if thought else []
    return Answer([*thoughts, chunk({"tool_calls": calls}, "stop"), usage(), DONE])


def answers_in(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the model said before, as it reads it."""
    return [one for one in request["messages"] if one["role"] == "assistant"]


@pytest.mark.both_engines
def test_the_signature_of_a_call_goes_back_with_it(chat: Chat) -> None:
    """REL-973: in the turn, and in later ones; Gemini signs the first of several calls alone."""
    chat.model.give(asks({"extra_content": SIGNATURE}, {}))
    chat.model.say("It said both")
    assert chat.ask().status == TurnStatus.COMPLETED
    chat.model.say("You are welcome")
    chat.ask("Thank you")
    for request in chat.model.requests[1:]:
        first, second = answers_in(request)[0]["tool_calls"]
        assert first["extra_content"] == SIGNATURE
        assert "extra_content" not in second


def test_thoughts_go_back_with_the_calls_that_they_led_to(chat: Chat) -> None:
    """REL-973: in the field that they came in. Those of an answer without calls stay here: nobody asks for them."""
    chat.model.give(asks({}, thought={"reasoning_content": "I echo."}))
    chat.model.give(
        Answer([chunk({"reasoning_content": "Done."}), chunk({"content": "Hi"}, "stop"), DONE])
    )
    chat.ask()
    chat.model.say("Bye")
    chat.ask("And?")
    called, answered = answers_in(chat.model.requests[2])
    assert called["reasoning_content"] == "I echo."
    assert "reasoning_content" not in answered


def test_nobody_else_gets_it(chat: Chat) -> None:
    """REL-973: another model may refuse what it did not give, or misread it."""
    other = ScriptedModel()
    try:
        behind = ModelProvider.objects.create(
            workspace=chat.tenant.workspace,
            name="Second",
            base_url=other.base_url,
            default_model="second-model",
        )
        assert chat.bud.provider is not None
        providers = ModelProvider.objects.for_workspace(chat.tenant.workspace)
        providers.filter(pk=chat.bud.provider.pk).update(fallback=behind)
        chat.model.give(asks({"extra_content": SIGNATURE}, thought={"reasoning_content": "Hm."}))
        chat.model.fail(503)
        other.say("I answer in its place")
        assert chat.ask().status == TurnStatus.COMPLETED
        [answer] = answers_in(other.requests[0])
        assert "reasoning_content" not in answer
        assert "extra_content" not in answer["tool_calls"][0]
    finally:
        standing_in._failures.clear()
        other.stop()


def call(number: int, **beside: Any) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    return {"id": f"call-{number}", "type": "function", "function": function, **beside}


MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "?"},
    {"role": "assistant", "content": None, "tool_calls": [call(1), call(2)]},
    {"role": "tool", "tool_call_id": "call-1", "content": "r"},
    {"role": "tool", "tool_call_id": "call-2", "content": "r"},
    {"role": "assistant", "content": "Done"},
    {"role": "user", "content": "More?"},
]
"""Of another model, or of a time before its provider asked for anything."""


async def sent_after(
    model: ScriptedModel, refused: bytes, messages: list[dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """What the model has said, in each request: two, of which the first is refused once."""
    model.fail(400, refused)
    model.say("first")
    model.say("second")
    request = CompletionRequest(
        model="m",
        messages=messages or MESSAGES,
        tools=['{"type":"function","function":{"name":"f"}}'],
    )
    spec = ProviderSpec(name="t", base_url=model.base_url, model="m")
    async with outbound.client() as http:
        client = OpenAICompatible(spec, http)
        for _ in range(2):
            _ = [piece async for piece in client.stream(request)]
    assert len(model.requests) == 3
    assert answers_in(model.requests[1]) == answers_in(model.requests[2])
    return answers_in(model.requests[2])


async def test_a_call_of_another_model_gets_the_sign_that_it_has_none(model: ScriptedModel) -> None:
    """REL-974: once it is asked for; the first of several calls alone, as Gemini signs them."""
    called, answered = await sent_after(model, GEMINI)
    assert [one.get("extra_content") for one in called["tool_calls"]] == [NO_SIGNATURE, None]
    assert answered == MESSAGES[4]


@pytest.mark.parametrize("words", [DEEPSEEK, KIMI], ids=["DeepSeek", "Kimi"])
async def test_thoughts_that_are_not_known_are_empty(model: ScriptedModel, words: str) -> None:
    """REL-974: DeepSeek wants them with every answer, once a tool was called."""
    known = {**MESSAGES[1], "reasoning_content": "I know."}
    called, answered = await sent_after(model, refusal(words), [MESSAGES[0], known, *MESSAGES[2:]])
    assert (called["reasoning_content"], answered["reasoning_content"]) == ("I know.", "")


@pytest.mark.parametrize(
    "words",
    [
        "'messages.1' : for 'role:assistant' … ('messages.1' : property 'reasoning_content' is unsupported)",
        '{"loc":["messages",1,"tool_calls",0,"extra_content"],"msg":"Extra inputs are not permitted"}',
    ],
    ids=["Groq", "Mistral"],
)
async def test_a_provider_that_takes_back_nothing_gets_nothing(
    model: ScriptedModel, words: str
) -> None:
    """REL-974: a gateway may give what its own provider does not take."""
    given = {
        **MESSAGES[1],
        "reasoning_content": "Hm.",
        "tool_calls": [call(1, extra_content=SIGNATURE), call(2)],
    }
    answers = await sent_after(model, refusal(words), [MESSAGES[0], given, *MESSAGES[2:]])
    assert answers == [MESSAGES[1], MESSAGES[4]]


def test_details_come_in_pieces_and_go_back_whole(chat: Chat) -> None:
    """REL-973: as OpenRouter streams them: texts piece by piece, a signature at the end of its part."""
    pieces: list[dict[str, Any]] = [
        {"type": "reasoning.text", "text": "I ", "index": 0, "format": "anthropic-claude-v1"},
        {"type": "reasoning.text", "text": "look.", "index": 0, "signature": None},
        {"type": "reasoning.text", "signature": "s", "index": 0},
        {"type": "reasoning.encrypted", "data": "e", "index": 1, "id": "call-1"},
    ]
    first, *others = [chunk({"reasoning_details": [piece]}) for piece in pieces]
    rest = asks({})
    chat.model.give(Answer([first, *others, *rest.parts]))
    chat.model.say("Done")
    chat.ask()
    [answer] = answers_in(chat.model.requests[1])
    assert answer["reasoning_details"] == [
        {
            "type": "reasoning.text",
            "text": "I look.",
            "index": 0,
            "format": "anthropic-claude-v1",
            "signature": "s",
        },
        {"type": "reasoning.encrypted", "data": "e", "index": 1, "id": "call-1"},
    ]


def test_what_is_no_detail_is_left_out() -> None:
    """REL-973: whatever a server sends in that field."""
    joiner = DetailsJoiner()
    for odd in (None, "x", {"type": "t"}, [1, None]):
        joiner.take(odd)
    assert joiner.whole() == []


@pytest.mark.parametrize("odd", [5, "x", {"a": 1}, [1, None, "x"], None])
def test_fields_of_a_wrong_shape_do_no_harm(odd: object) -> None:
    """REL-973: a server may send whatever it likes under these names."""
    accumulator = Accumulator()
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    fields = {
        "reasoning_items": odd,
        "reasoning_details": odd,
        "tool_calls": [{**call, "extra_content": 5, "provider_specific_fields": odd}],
        "content": None,
    }
    accumulator.take({"choices": [{"delta": fields}]})
    accumulator.close()
    assert [one.name for one in accumulator.completion().calls] == ["f"]


def test_what_is_too_long_is_not_kept() -> None:
    """REL-973: a row stays readable; its provider is told that there is none."""
    assert EchoedFields({"reasoning_content": "x" * MOST_CHARACTERS}, [{}]).as_json("m") == {}


async def test_a_wrong_key_in_geminis_form_is_told_as_that(model: ScriptedModel) -> None:
    """REL-974: its words are in a list, and its status is that of a bad request."""
    values = {"code": 400, "message": "API key not valid. Please pass a valid API key."}
    model.fail(400, json.dumps([{"error": values}]).encode())
    spec = ProviderSpec(name="t", base_url=model.base_url, model="m")
    request = CompletionRequest(model="m", messages=MESSAGES[:1])
    async with outbound.client() as http:
        with pytest.raises(ProviderError) as refused:
            _ = [piece async for piece in OpenAICompatible(spec, http).stream(request)]
    assert refused.value.code == "provider_key_refused"
