"""Names for the model, and back again. Pure.

APIs allow `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`; MCP servers do not care. A name is `server__tool`, cleaned; where
that is too long, or two tools would share it, a stable hash of the tool's identity is added. Within
one turn the mapping is one-to-one, and is looked up, never taken apart.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

LONGEST = 64
_HASH_LENGTH = 8
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True)
class NamedTool:
    """What identifies a tool."""

    server_id: UUID
    server_name: str
    tool_id: UUID
    tool_name: str


def name_tools(tools: Iterable[NamedTool], *, longest: int = LONGEST) -> dict[str, UUID]:
    """Function name → tool id, one-to-one, and the same whatever the order of the tools. None has more than `longest`."""
    wanted = [(_plain(tool), tool) for tool in tools]
    # APIs compare names exactly, people and some models do not: case alone tells nothing apart.
    uses = Counter(name.lower() for name, _ in wanted)
    named: dict[str, UUID] = {}
    for name, tool in sorted(wanted, key=lambda pair: (pair[1].server_id, pair[1].tool_name)):
        if len(name) > longest or uses[name.lower()] > 1:
            named[_with_hash(name, tool, longest)] = tool.tool_id
        else:
            named[name] = tool.tool_id
    return named


def names_of(tool: NamedTool, *, longest: int = LONGEST) -> frozenset[str]:
    """Each name that a tool can have, depending on what others there are."""
    plain = _plain(tool)
    hashed = _with_hash(plain, tool, longest)
    return frozenset({hashed} if len(plain) > longest else {plain, hashed})


def may_name(server_name: str, name: str, *, longest: int = LONGEST) -> bool:
    """Whether a tool of a server with that name could have this name. Those that would share it all say yes."""
    kept = longest - _HASH_LENGTH - 1
    beginning = _begun(cleaned(server_name)).lower() + "__"
    return name.lower()[:kept].startswith(beginning[:kept])


def cleaned(text: str) -> str:
    """A name with nothing in it but what all take."""
    return _NOT_ALLOWED.sub("_", text) or "_"


def _plain(tool: NamedTool) -> str:
    return _begun(cleaned(tool.server_name)) + "__" + cleaned(tool.tool_name)


def _begun(name: str) -> str:
    """The name with a beginning that all take: Gemini wants a letter or an underscore."""
    return name if name[0].isalpha() or name[0] == "_" else f"_{name}"


def _with_hash(name: str, tool: NamedTool, longest: int) -> str:
    identity = f"{tool.server_id}\n{tool.tool_name}".encode()
    digest = hashlib.sha256(identity).hexdigest()[:_HASH_LENGTH]
    return f"{name[: longest - _HASH_LENGTH - 1]}_{digest}"
