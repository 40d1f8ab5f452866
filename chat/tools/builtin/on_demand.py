"""Tools that take no room in the prompt: a bud with many servers looks them up, and calls them by name. Pure.

Three built-in tools stand for them all. They can list and call what the turn may use, and nothing else: they neither
install nor configure anything. A call made through them is a call of the server's tool from the moment it is proposed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from chat.tools.builtin.files import BuiltinSpec
from chat.values import BuiltinTool
from mcp_servers.client.canonical import parse_arguments
from mcp_servers.client.errors import InvalidArguments
from mcp_servers.client.hidden_text import strip_hidden
from mcp_servers.client.schemas import check_arguments

if TYPE_CHECKING:
    from uuid import UUID

    from chat.tools.offered import OfferedTool, ServerInstructions

MOST_LISTED: Final = 100
MOST_SCHEMA_CHARACTERS: Final = 24_000
"""Of all argument schemas in one answer; the tools that fit best come first."""
_MOST_DESCRIPTION: Final = 500
_MOST_BRIEF: Final = 120
_MOST_SAMPLES: Final = 5
_MOST_CLOSE: Final = 8
_LOOKS_LIKE_A_LABEL: Final = re.compile(r" \([0-9a-f]{8}\)$")
_WORD: Final = re.compile(r"[^\W_]+")

_SERVER: Final = {"type": "string", "maxLength": 200, "description": "The server's name."}

SPECS: Final = (
    BuiltinSpec(
        name=BuiltinTool.MCP_LIST_SERVERS,
        title="List the servers",
        description="List the servers whose tools you can use here, with how many tools each has.",
        properties={},
        only_reads=True,
    ),
    BuiltinSpec(
        name=BuiltinTool.MCP_LIST_TOOLS,
        title="Look for tools",
        description="Find tools of the servers, with the JSON schema of their arguments. Search for what you want to do,"
        " or name a server to see what it has.",
        properties={
            "server": _SERVER,
            "query": {
                "type": "string",
                "maxLength": 300,
                "description": "Words of a tool's name or description.",
            },
        },
        only_reads=True,
    ),
    BuiltinSpec(
        name=BuiltinTool.MCP_CALL_TOOL,
        title="Call a tool",
        description="Call a tool of a server. Look it up first, and give arguments that fit its schema.",
        properties={
            "server": _SERVER,
            "tool": {"type": "string", "maxLength": 300, "description": "The tool's name."},
            "arguments": {"type": "object", "description": "The tool's arguments."},
        },
        required=("server", "tool"),
    ),
)
SPEC_OF: Final = {spec.name.value: spec for spec in SPECS}


def unwrap(
    tools: Sequence[OfferedTool], arguments: Mapping[str, Any]
) -> tuple[OfferedTool, dict[str, Any]] | str:
    """The tool that a call through the built-in one is meant for, with its own arguments; or why there is none.

    Names have to be the same to the letter: what only looks alike is another tool.
    """
    given = dict(arguments)
    inner = given.get("arguments")
    try:
        if isinstance(inner, str):  # some models write them as text
            given["arguments"] = parse_arguments(inner)
        check_arguments(SPEC_OF[BuiltinTool.MCP_CALL_TOOL.value].input_schema, given)
    except InvalidArguments as fault:
        return fault.message
    server, name = str(given["server"]), str(given["tool"])
    labels = _labels(tools)
    for tool in tools:
        if (labels[tool.server_id], tool.tool_name) == (server, name):
            return tool, dict(given.get("arguments") or {})
    return _unknown(tools, labels, server, name)


def list_servers(tools: Sequence[OfferedTool]) -> str:
    """What the model reads: each server that has a tool here."""
    labels = _labels(tools)
    found: dict[str, list[str]] = {}
    for tool in tools:
        found.setdefault(labels[tool.server_id], []).append(tool.tool_name)
    servers = [
        {"server": server, "tools": len(names), "for_example": names[:_MOST_SAMPLES]}
        for server, names in sorted(found.items())
    ]
    return _written({"servers": servers})


def list_tools(
    tools: Sequence[OfferedTool],
    arguments: Mapping[str, Any],
    instructions: Iterable[ServerInstructions] = (),
) -> str:
    """What the model reads: the tools that fit, the best first, with schemas as far as there is room."""
    server, query = str(arguments.get("server") or ""), str(arguments.get("query") or "")
    labels = _labels(tools)
    of_server = [tool for tool in tools if server in ("", labels[tool.server_id])]
    if not of_server:
        return _no_server(labels, server)
    fitting = _fitting(of_server, query)
    if not fitting:
        return (
            f"No tool fits {query[:200]!r}. Try other words, or list a server's tools without any."
        )
    room = MOST_SCHEMA_CHARACTERS
    listed: list[dict[str, Any]] = []
    for tool in fitting[:MOST_LISTED]:
        schema = json.dumps(tool.input_schema, ensure_ascii=False)
        one: dict[str, Any] = {"server": labels[tool.server_id], "tool": tool.tool_name}
        words = strip_hidden(tool.description or tool.title)
        if len(schema) <= room:
            room -= len(schema)
            listed.append(
                {**one, "description": words[:_MOST_DESCRIPTION], "arguments": tool.input_schema}
            )
        else:
            listed.append({**one, "description": words[:_MOST_BRIEF]})
    answer: dict[str, Any] = {"tools": listed}
    if any("arguments" not in one for one in listed):
        answer["note"] = "Search for a tool by its name to see its arguments."
    if len(fitting) > MOST_LISTED:
        answer["more"] = len(fitting) - MOST_LISTED
    notes = [one.text for one in instructions if labels.get(one.server_id) == server]
    if notes:
        answer["the_server_says_about_itself"] = notes[0]
    return _written(answer)


def _fitting(tools: Sequence[OfferedTool], query: str) -> list[OfferedTool]:
    """Those that have a word of the query; the best first: the name itself, words in the name, words elsewhere."""
    wanted = query.strip().lower()
    words = {word for word in _WORD.findall(wanted) if len(word) > 1} or set(_WORD.findall(wanted))
    if not words:
        return list(tools)

    def worth(tool: OfferedTool) -> int:
        name = f"{tool.tool_name} {tool.title}".lower()
        rest = f"{tool.server_name} {tool.description}".lower()
        exact = 1000 if wanted in (tool.tool_name.lower(), tool.full_name.lower()) else 0
        return exact + sum(10 * (word in name) + (word in rest) for word in words)

    rated = [(worth(tool), tool) for tool in tools]
    return [tool for value, tool in sorted(rated, key=lambda pair: -pair[0]) if value]


def _unknown(
    tools: Sequence[OfferedTool], labels: Mapping[UUID | None, str], server: str, name: str
) -> str:
    of_server = [tool for tool in tools if labels[tool.server_id] == server]
    if not of_server:
        return _no_server(labels, server)
    closest = _closest(name, [tool.tool_name for tool in of_server])
    elsewhere = [
        f"{labels[tool.server_id]}.{tool.tool_name}" for tool in tools if tool.tool_name == name
    ]
    hint = ", ".join([*elsewhere, *closest][:_MOST_CLOSE])
    return f"The server {server!r} has no tool {name[:200]!r} here." + (
        f" Did you mean: {hint}?" if hint else f" Look for one with {_LOOK}."
    )


def _no_server(labels: Mapping[UUID | None, str], server: str) -> str:
    names = sorted(set(labels.values()))
    closest = _closest(server, names) or names[:_MOST_CLOSE]
    hint = f" Did you mean: {', '.join(closest)}?" if closest else ""
    return f"There is no server {server[:200]!r} here.{hint}"


def _labels(tools: Sequence[OfferedTool]) -> dict[UUID | None, str]:
    """What each server is called here: its name, and something more where two have the same; one label is one server."""
    names = {tool.server_id: tool.server_name for tool in tools}
    uses = Counter(names.values())
    return {
        server_id: name
        if uses[name] == 1 and not _LOOKS_LIKE_A_LABEL.search(name)
        else f"{name} ({_short(server_id)})"
        for server_id, name in names.items()
    }


def _short(server_id: UUID | None) -> str:
    return hashlib.sha256(str(server_id).encode()).hexdigest()[:8]


def _closest(name: str, names: Sequence[str]) -> list[str]:
    by_lower = {one.lower(): one for one in names}
    found = difflib.get_close_matches(name[:200].lower(), list(by_lower), n=_MOST_CLOSE, cutoff=0.5)
    return [by_lower[one] for one in found]


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_LOOK: Final = BuiltinTool.MCP_LIST_TOOLS.value
