"""What a person should know before accepting a tool: what it hides, and what it looks like. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from mcp_servers.client.hidden_text import find_hidden, mixes_scripts, show_hidden, skeleton

if TYPE_CHECKING:
    from mcp_servers.client.definitions import ToolDefinition

_MOST_TEXTS: Final = 5_000
"""Of one schema; a larger one is left out for its size anyway."""


class Neighbours:
    """The names of a workspace's other tools, by what they look like."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        """Take tools as (name, name of the server)."""
        self._by_look: dict[str, list[tuple[str, str]]] = {}
        for name, server in names:
            self._by_look.setdefault(skeleton(name), []).append((name, server))

    def look_alike(self, name: str) -> tuple[str, str] | None:
        """Another tool whose name looks like this one without being it: its name, and its server's."""
        return next(
            (other for other in self._by_look.get(skeleton(name), ()) if other[0] != name), None
        )


def warnings_of(definition: ToolDefinition, neighbours: Neighbours) -> list[str]:
    """A sentence for each thing that is not as it looks."""
    found: list[str] = []
    parts: Mapping[str, Iterable[str]] = {
        "name": [definition.name],
        "title": [definition.title],
        "description": [definition.description],
        "input schema": _texts(definition.input_schema),
        "output schema": _texts(definition.output_schema),
        "annotations": _texts(definition.annotations),
        "metadata": _texts(definition.meta),
    }
    for part, texts in parts.items():
        kinds = {kind: None for text in islice(texts, _MOST_TEXTS) for kind in find_hidden(text)}
        if kinds:
            found.append(f"Its {part} holds {', '.join(kinds)}, which people do not see.")
    if mixes_scripts(definition.name):
        found.append("Its name mixes letters of several alphabets that look alike.")
    other = neighbours.look_alike(definition.name)
    if other is not None:
        found.append(
            f"Its name looks like “{show_hidden(other[0])[:100]}” of {show_hidden(other[1])}, and is another one."
        )
    return found


def _texts(value: object) -> Iterator[str]:
    """Every text in a JSON value, also the names of its parts."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            yield from (key for key in item if isinstance(key, str))
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
