"""The streams that true servers send, read by the real reader wherever the network cuts them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from chat.providers import accumulator
from chat.providers.answer_reader import AnswerReader
from chat.providers.base import Completion, ReasoningPiece, TextPiece
from chat.providers.errors import ProviderError
from chat.providers.thinking import ThinkingSplitter
from tests.chat.providers.streams import bytes_of, recorded

RECORDED = recorded()
SHORT = 900
"""Bytes of a stream that is cut at every single one of them."""


def read(chunks: Iterable[bytes]) -> dict[str, Any]:
    """Everything that came of a stream, in the form that the tables use."""
    reader = AnswerReader(has_tools=True)
    texts: list[str] = []
    thoughts: list[str] = []
    seen: dict[str, Any] = {}
    whole: Completion | None = None

    def pieces() -> Iterable[Any]:
        for chunk in chunks:
            yield from reader.feed(chunk)
            if reader.is_done:
                break
        yield from reader.close()

    try:
        for piece in pieces():
            if isinstance(piece, TextPiece):
                texts.append(piece.text)
            elif isinstance(piece, ReasoningPiece):
                thoughts.append(piece.text)
        whole = reader.completion()
    except ProviderError as error:
        seen |= {"error": error.code, "details": dict(error.details)}
    seen |= {"text": "".join(texts), "reasoning": "".join(thoughts)}
    if whole is not None:
        assert (whole.text, whole.reasoning) == (seen["text"], seen["reasoning"])
        seen |= {
            "finish": whole.finish_reason,
            "calls": [[call.name, call.arguments] for call in whole.calls],
            "ids": [call.id for call in whole.calls],
            "usage": [whole.prompt_tokens, whole.cached_tokens, whole.completion_tokens],
            "ignored": whole.ignored_events,
        }
    return seen


def check(seen: dict[str, Any], expect: dict[str, Any]) -> None:
    assert seen.get("error") == expect.get("error"), seen
    assert seen["text"] == expect.get("text", "")
    assert seen["reasoning"] == expect.get("reasoning", "")
    for key in ("finish", "ids", "usage"):
        if key in expect:
            assert seen[key] == expect[key]
    if "details" in expect:
        assert expect["details"].items() <= seen["details"].items()
    if "error" not in expect:
        assert seen["calls"] == expect.get("calls", [])
        assert seen["ignored"] == expect.get("ignored", 0)
        assert len({*seen["ids"], ""}) == len(seen["ids"]) + 1, "ids are given and differ"


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_stream_is_read(name: str) -> None:
    """REL-33, SEC-86: as one piece, byte by byte, cut in two at every byte, and with each kind of line end."""
    case = RECORDED[name]
    for newline in ("\n", "\r\n", "\r"):
        raw = bytes_of(case, newline)
        check(read([raw]), case["expect"])
        check(read([raw[i : i + 1] for i in range(len(raw))]), case["expect"])
    raw = bytes_of(case)
    step = 1 if len(raw) <= SHORT else len(raw) // 200
    for cut in range(1, len(raw), step):
        check(read([raw[:cut], raw[cut:]]), case["expect"])


def test_there_are_shapes_of_every_server_that_is_named() -> None:
    """REL-33: none has been forgotten, and none is empty."""
    servers = {name.split(":")[0] for name in RECORDED}
    assert servers >= {
        "openai",
        "azure",
        "vllm",
        "ollama",
        "llamacpp",
        "litellm",
        "openrouter",
    }


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-33: neither text nor thoughts fill the memory."""
    monkeypatch.setattr(accumulator, "MOST_CHARACTERS", 50)
    monkeypatch.setattr(accumulator, "MOST_REASONING", 12)
    piece = b'data: {"choices":[{"index":0,"delta":{"reasoning":"0123456789"}}]}\n\n'
    seen = read([piece] * 9)
    assert seen["error"] == "provider_bad_answer"
    assert seen["reasoning"] == "012345678901" + "\n[…]"


@pytest.mark.parametrize(
    ("whole", "text", "thought"),
    [
        ("<think>a</think>b", "b", "a"),
        ("\n <think>\na\n</think>\n\nb\n", "b\n", "\na\n"),
        ("<thinking>a</thinking>b", "b", "a"),
        ("[THINK]a[/THINK]b", "b", "a"),
        ("<think></think>b", "b", ""),
        ("b <think>a</think>", "b <think>a</think>", ""),
        ("<thin", "<thin", ""),
        ("<think>a</think", "", "a</think"),
        ("", "", ""),
    ],
)
def test_thoughts_are_parted_from_the_text_wherever_it_is_cut(
    whole: str, text: str, thought: str
) -> None:
    """REL-33: only at the very beginning, and nothing is lost."""
    for first in range(len(whole) + 1):
        for second in range(first, len(whole) + 1):
            splitter = ThinkingSplitter()
            parts = [
                splitter.feed(piece)
                for piece in (whole[:first], whole[first:second], whole[second:])
            ]
            parts.append(splitter.close())
            assert "".join(part[0] for part in parts) == text
            assert "".join(part[1] for part in parts) == thought
