"""The fake model takes what OpenAI takes, so that no test passes with a request that OpenAI would refuse."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.fakes.openai_forms import fault_of_responses
from tests.fakes.scripted_model import ScriptedModel

QUESTION = {"role": "user", "content": "Hello"}


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"colour": "red"}, "body.colour: unknown"),
        ({"messages": [{**QUESTION, "colour": "red"}]}, "body.messages.0.colour: unknown"),
        ({"messages": [{"content": "Hello"}]}, "body.messages.0: role is missing"),
        ({"temperature": "warm"}, "body.temperature: not of type"),
        ({"n": True}, "body.n: not of type"),
        ({"tools": {}}, "body.tools: not a list"),
        ({"logit_bias": {"7": "much"}}, "body.logit_bias.7: not of type"),
        ({"modalities": ["smell"]}, "body.modalities.0: 'smell' is none of"),
    ],
)
def test_a_request_that_openai_would_refuse_is_refused(
    model: ScriptedModel, changed: dict[str, Any], fault: str
) -> None:
    body = {"model": "m", "messages": [QUESTION], "stream": True, **changed}
    answer = httpx2.post(f"{model.base_url}/chat/completions", json=body)
    assert answer.status_code == 400
    assert fault in answer.json()["error"]["message"]
    assert model.requests == []


def test_the_responses_api_has_a_form_of_its_own() -> None:
    body = {"model": "m", "input": [QUESTION], "stream": True}
    assert fault_of_responses(body) is None
    assert fault_of_responses({**body, "messages": [QUESTION]}) == "body.messages: unknown"
