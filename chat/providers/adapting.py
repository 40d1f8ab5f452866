"""Requests in the form that an endpoint takes, where it says that it does not take ours. Pure."""

from __future__ import annotations

from typing import Any

NO_STREAM_OPTIONS = "no_stream_options"
"""It does not know them; then it tells no usage, or tells it unasked."""
COMPLETION_TOKENS = "completion_tokens"
"""The limit of an answer's length goes by its newer name."""


def adapt(arguments: dict[str, Any], habits: frozenset[str]) -> dict[str, Any]:
    """The request's arguments as this model takes them."""
    arguments = dict(arguments)
    if NO_STREAM_OPTIONS in habits:
        arguments.pop("stream_options", None)
    if COMPLETION_TOKENS in habits and "max_tokens" in arguments:
        arguments["max_completion_tokens"] = arguments.pop("max_tokens")
    return arguments


def habits_told(words: str, arguments: dict[str, Any], status: int) -> frozenset[str]:
    """What a refusal says about the form that this model takes."""
    if status not in (400, 422):
        return frozenset()
    found = set()
    if "stream_options" in words:
        found.add(NO_STREAM_OPTIONS)
    if "max_completion_tokens" in words and "max_tokens" in arguments:
        found.add(COMPLETION_TOKENS)
    return frozenset(found)
