"""Why an answer ended, in four words of ours instead of each server's own. Pure."""

from __future__ import annotations

STOP = "stop"
CALLS = "tool_calls"
LENGTH = "length"
FILTERED = "content_filter"
FAILED = "error"

WHOLE = frozenset({STOP, CALLS, LENGTH})
"""After these the answer is all there."""

_WORDS: dict[str, str] = {
    "tool_calls": CALLS,
    "tool_call": CALLS,
    "tool_use": CALLS,
    "function_call": CALLS,
    "length": LENGTH,
    "max_tokens": LENGTH,
    "max_output_tokens": LENGTH,
    "model_length": LENGTH,
    "model_context_window_exceeded": LENGTH,
    "content_filter": FILTERED,
    "content_filtered": FILTERED,
    "safety": FILTERED,
    "recitation": FILTERED,
    "prohibited_content": FILTERED,
    "blocklist": FILTERED,
    "refusal": FILTERED,
    "error": FAILED,
}


def plain_reason(reason: str) -> str:
    """One of the words above: whatever is not known ended in good order ("stop", "eos", "end_turn", …)."""
    return _WORDS.get(reason.lower(), STOP)
