"""Tools that run an action which their arguments name: what they really do. Pure.

A hosted provider shows servers with hundreds of tools as a few meta-tools: some that only look for actions, and one
that runs any of them. Policy, approvals and the log are about the effective action, not about the meta-tool.

Source: names and parameters of the provider's meta-tools as its clients use them.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mcp_servers.client.canonical import canonical_json

DISCOVERING: Final = frozenset(
    {
        "discover_server_categories_or_actions",
        "get_category_actions",
        "get_action_details",
        "search_documentation",
    }
)
"""They look for actions and run none."""

RUNNING: Final = "execute_action"

MAX_NAME: Final = 200
_ACTION: Final = ("action_name", "actionName")
_CATEGORY: Final = ("category_name", "categoryName")
_SERVICE: Final = ("server_name", "serverName")
_TELLTALES: Final = frozenset({*_ACTION, "tool_name", "toolName"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveAction:
    """What a call of a meta-tool really does."""

    service: str
    category: str
    action: str

    @property
    def key(self) -> str:
        """One for each action, however it is spelled."""
        parts = [_folded(part) for part in (self.service, self.category, self.action)]
        return hashlib.sha256(canonical_json(parts)).hexdigest()

    @property
    def label(self) -> str:
        """For people."""
        return " / ".join(part for part in (self.service, self.category, self.action) if part)

    def may_be(self, other: EffectiveAction) -> bool:
        """Whether the two could be one: the category may be left out or made up, and so may the service be left out."""
        services = {_folded(self.service), _folded(other.service)} - {""}
        return _folded(self.action) == _folded(other.action) and len(services) < 2


def runs_actions(*, hosted_by: str, tool_name: str, input_schema: Mapping[str, object]) -> bool:
    """Whether a tool runs whatever action its arguments name.

    The known one does on whatever server, for the same tools can be had at an address that somebody enters. On a
    provider's servers every tool that takes the name of an action or of a tool counts besides, because nobody can say
    beforehand what it will do.
    """
    if tool_name in DISCOVERING:
        return False
    properties = input_schema.get("properties")
    names = set(properties) if isinstance(properties, Mapping) else set()
    if tool_name == RUNNING:
        return bool(hosted_by) or not names.isdisjoint(_ACTION)
    return bool(hosted_by) and not names.isdisjoint(_TELLTALES)


def read_action(tool_name: str, arguments: Mapping[str, object]) -> EffectiveAction | None:
    """The action that a call runs; None if that cannot be said for certain."""
    if tool_name != RUNNING:
        return None
    service, category, action = (
        _named(arguments, names) for names in (_SERVICE, _CATEGORY, _ACTION)
    )
    if service is None or category is None or not action:
        return None
    return EffectiveAction(service=service, category=category, action=action)


def _named(arguments: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    """A name; empty if it is not given, None if it is no name or two spellings differ."""
    given = {_plain(arguments[name]) for name in names if arguments.get(name) is not None}
    if None in given or len(given) > 1:
        return None
    return given.pop() if given else ""


def _plain(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    text = value.strip()
    return text if len(text) <= MAX_NAME and text.isprintable() else None


def _folded(text: str) -> str:
    """Spellings that a lenient reader would take for one."""
    return (
        unicodedata.normalize("NFKC", text).casefold().strip().replace("-", "_").replace(" ", "_")
    )
