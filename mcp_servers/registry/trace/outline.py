"""A message as an administrator may see it: what it is, without what people put into it or got out of it. Pure.

What a server says about itself is nobody's secret and stays. Of everything that belongs to somebody's call, values are
replaced by their kinds and sizes; names of tools and of arguments stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_OPEN: Final = frozenset(
    {
        *("initialize", "server/discover", "ping", "logging/setLevel"),
        *("tools/list", "resources/list", "resources/templates/list", "prompts/list", "roots/list"),
        *("notifications/initialized", "notifications/roots/list_changed"),
        *("notifications/tools/list_changed", "notifications/prompts/list_changed"),
        *("notifications/resources/list_changed", "notifications/message"),
        *("subscriptions/listen", "notifications/subscriptions/acknowledged"),
    }
)
"""Methods whose messages hold nothing of people's calls."""

_KEPT: Final = frozenset(
    {
        *("jsonrpc", "id", "method", "name", "type", "mode", "action", "code", "isError"),
        *("progressToken", "progress", "total", "requestId", "protocolVersion", "role"),
        *("mimeType", "taskId", "status", "resultType", "pollInterval", "ttl", "maxTokens"),
    }
)
"""Keys of the protocol whose values say nothing about what people do; not inside of arguments and results."""

_PRIVATE: Final = frozenset(
    {
        *("arguments", "content", "structuredContent", "contents", "messages", "data", "_meta"),
        *("inputResponses", "values", "context", "argument"),
    }
)
_MAX_KEY: Final = 100
_MAX_ITEMS: Final = 100
_MAX_DEPTH: Final = 12


def is_open(method: str) -> bool:
    """Whether messages of this method hold nothing of people's calls."""
    return method in _OPEN


def outline_of(body: Mapping[str, Any] | None, *, method: str, is_of_call: bool) -> Any:
    """The message without people's values.

    Args:
        method: of a response, the method it answers.
        is_of_call: it is known to belong to somebody's call, whatever its method.
    """
    if body is None:
        return None
    if is_open(method) and not is_of_call:
        return dict(body)
    return _outline(body, 0, is_private=False)


def _outline(value: Any, depth: int, *, is_private: bool) -> Any:
    if isinstance(value, dict):
        if depth >= _MAX_DEPTH:
            return f"object of {len(value)}"
        outline: dict[str, Any] = {}
        for number, (key, inner) in enumerate(value.items()):
            if number == _MAX_ITEMS:
                outline["…"] = f"{len(value) - number} more"
                break
            name = str(key)[:_MAX_KEY]
            if isinstance(inner, (dict, list)):
                outline[name] = _outline(
                    inner, depth + 1, is_private=is_private or name in _PRIVATE
                )
            elif not is_private and name in _KEPT:
                outline[name] = inner if not isinstance(inner, str) else inner[:256]
            else:
                outline[name] = _kind(inner)
        return outline
    if isinstance(value, list):
        if depth >= _MAX_DEPTH or not any(isinstance(item, dict | list) for item in value):
            return f"list of {len(value)}"
        inner = [_outline(item, depth + 1, is_private=is_private) for item in value[:_MAX_ITEMS]]
        return inner if len(value) <= _MAX_ITEMS else [*inner, f"{len(value) - _MAX_ITEMS} more"]
    return _kind(value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return f"text of {len(value)}"
    return "number"
