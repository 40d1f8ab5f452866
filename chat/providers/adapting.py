"""Requests in the form that an endpoint takes, where it says that it does not take ours. Pure."""

from __future__ import annotations

import re
from typing import Any

from chat.providers.echoed_fields import give_back, wanted_back

NO_STREAM_OPTIONS = "no_stream_options"
"""It does not know them; then it tells no usage, or tells it unasked."""
COMPLETION_TOKENS = "completion_tokens"
"""The limit of an answer's length goes by its newer name."""

AUTO_CHOICE = "auto_choice"
"""No tool can be forced on it, for example because it thinks first."""


RESPONSES = "responses"
"""It speaks OpenAI's Responses API, and no Chat Completions."""

NO_STREAM = "no_stream"
"""It gives its answer in one piece alone, as OpenAI's models do to organizations that are not verified."""

NO_SUMMARY = "no_summary"
"""It gives no summary of its thoughts in the Responses API; OpenAI's do not to such organizations either."""

PLAIN_SCHEMAS = "plain_schemas"
"""Schemas of functions have to be of the plainest kind."""

WITHOUT = {name: f"without_{name}" for name in ("temperature", "top_p", "stop")}
"""By parameter: it takes none, and answers with a setting of its own. Models that think first often do."""

_NAMES_RESPONSES = re.compile(r"\bv1/responses\b|\bresponses (api|endpoint)\b", re.I)
_NAMES_SCHEMA = re.compile(
    r"function_declarations?\W*\[|invalid schema for function|invalid_function_parameters|input_schema"
    r"|\btools?\W{0,2}\d+\W[\w.]*(parameters|schema)|(function|tool)s?\W[\w ]*\bschema\b",
    re.I,
)
_NO_STREAM = re.compile(r"verified to stream|stream(ing)?\W+(is|are) not (supported|allowed)", re.I)
_NO_SUMMARY = re.compile(
    r"reasoning[. _]summar(y|ies)|(unknown|unsupported|unrecogni[sz]ed) \w+\W+reasoning\b", re.I
)
_TAKES_NONE = re.compile(
    r"unsupported (parameter|value)|not support|deprecated|only the default|cannot both|not (allowed|permitted)",
    re.I,
)


def habits_of(reasons: bool | None) -> frozenset[str]:
    """What is known of a model's form before it has refused anything: thoughts count by the newer name of the limit."""
    return frozenset({COMPLETION_TOKENS}) if reasons else frozenset()


def adapt(arguments: dict[str, Any], habits: frozenset[str]) -> dict[str, Any]:
    """The request's arguments as this model takes them."""
    arguments = dict(arguments)
    if NO_STREAM_OPTIONS in habits:
        arguments.pop("stream_options", None)
    if NO_STREAM in habits:
        arguments = {**arguments, "stream": False}
        arguments.pop("stream_options", None)
    if COMPLETION_TOKENS in habits and "max_tokens" in arguments:
        arguments["max_completion_tokens"] = arguments.pop("max_tokens")
    if AUTO_CHOICE in habits and _is_forced(arguments):
        arguments["tool_choice"] = "auto"
    for name, habit in WITHOUT.items():
        if habit in habits:
            arguments.pop(name, None)
    arguments["messages"] = give_back(
        arguments["messages"], habits, is_responses=RESPONSES in habits
    )
    return arguments


def habits_in_refusal(
    words: str,
    arguments: dict[str, Any],
    status: int,
    *,
    has_tools: bool = False,
    is_responses: bool = False,
    is_of_address: bool = False,
) -> frozenset[str]:
    """What a refusal says about the form that this model takes.

    Args:
        is_responses: what was refused was in the form of the Responses API.
        is_of_address: it says nothing else than that there is nothing at this address.
    """
    if status in (404, 405):
        is_other = is_of_address or _NAMES_RESPONSES.search(words)
        return frozenset({RESPONSES}) if is_other else frozenset()
    if status not in (400, 422):
        return frozenset()
    found = set()
    if "stream_options" in words:
        found.add(NO_STREAM_OPTIONS)
    if "max_completion_tokens" in words and "max_tokens" in arguments:
        found.add(COMPLETION_TOKENS)
    if "tool_choice" in words and _is_forced(arguments):
        found.add(AUTO_CHOICE)
    if _NAMES_RESPONSES.search(words):
        found.add(RESPONSES)
    if _NO_STREAM.search(words):
        found.add(NO_STREAM)
    if is_responses and _NO_SUMMARY.search(words):
        found.add(NO_SUMMARY)
    if has_tools and _NAMES_SCHEMA.search(words):
        found.add(PLAIN_SCHEMAS)
    found |= wanted_back(words, arguments.get("messages", ()))
    if _TAKES_NONE.search(words):
        named = [name for name in WITHOUT if name in arguments and re.search(rf"\b{name}\b", words)]
        # Where it takes one of two, the first stays.
        found.update(WITHOUT[name] for name in named[-1:])
    return frozenset(found)


def _is_forced(arguments: dict[str, Any]) -> bool:
    return arguments.get("tool_choice") not in (None, "auto", "none")
