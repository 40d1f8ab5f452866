"""The tools for files: those that make them for buds that do so, those that read them wherever there are files. Pure.

Their names hold no `__`, and those of servers' tools always do, so neither can be taken for the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from chat.values import BuiltinTool
from mcp_servers.client.errors import InvalidArguments
from mcp_servers.client.schemas import check_arguments

if TYPE_CHECKING:
    from chat.models import ToolCall
    from chat.tools.offered import OfferedTool

TRANSFERS: Final = frozenset(
    {BuiltinTool.SEND_ARTIFACT_TO_MCP.value, BuiltinTool.RETRIEVE_FILE_FROM_MCP.value}
)
"""Tools that move a file's content between here and a server; each is a call of that server's tool."""
OF_KNOWLEDGE: Final = frozenset({BuiltinTool.SEARCH_KNOWLEDGE.value})
"""Tools for files of the bud."""
RESOURCE: Final = "resource"

_NAME: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 300,
    "description": "The file's name with its ending.",
}
_VERSION: Final = {
    "type": "integer",
    "minimum": 1,
    "description": "Number of the version; without it the newest.",
}
_LINE: Final = {"type": "integer", "minimum": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinSpec:
    """What a model is told of one of these tools."""

    name: BuiltinTool
    title: str
    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...] = ()
    only_reads: bool = False

    @property
    def input_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }

    @property
    def annotations(self) -> dict[str, Any]:
        # The same call makes one version only, however often it runs.
        return {
            "read_only": self.only_reads,
            "destructive": False,
            "idempotent": True,
            "open_world": False,
            "is_trusted": True,
        }


SPECS: Final = (
    BuiltinSpec(
        name=BuiltinTool.CREATE_ARTIFACT,
        title="Create a file",
        description="Write a new file that the user sees beside the conversation: a note, document, page, table, drawing"
        " or program. Give the whole content. Its ending says what it is: .md, .html, .svg, .csv, .json, .py and so on.",
        properties={
            "name": _NAME,
            "content": {"type": "string", "description": "The whole content."},
        },
        required=("name", "content"),
    ),
    BuiltinSpec(
        name=BuiltinTool.READ_ARTIFACT,
        title="Read a file",
        description="Read a file of this conversation, or one that you know: the whole, some of its lines, or the lines where something"
        " occurs. Of PDF, Word, Excel, PowerPoint and EPUB files, and of long web pages, it gives the text.",
        properties={
            "name": _NAME,
            "version": _VERSION,
            "first_line": _LINE,
            "last_line": _LINE,
            "search": {
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "description": "Instead of line numbers: a word or phrase. Gives the lines around each place.",
            },
            "source": {
                "type": "boolean",
                "description": "Of a long web page: its markup instead of its text.",
            },
        },
        required=("name",),
        only_reads=True,
    ),
    BuiltinSpec(
        name=BuiltinTool.UPDATE_ARTIFACT,
        title="Change a file",
        description="Save a new version of a file: either its whole content, or one passage replaced by another.",
        properties={
            "name": _NAME,
            "content": {"type": "string", "description": "The whole new content."},
            "replace": {
                "type": "object",
                "description": "Instead of the content: a passage that occurs exactly once, and what comes in its place.",
                "properties": {
                    "old": {"type": "string", "minLength": 1},
                    "new": {"type": "string"},
                },
                "required": ["old", "new"],
                "additionalProperties": False,
            },
        },
        required=("name",),
    ),
    BuiltinSpec(
        name=BuiltinTool.LIST_ARTIFACTS,
        title="List the files",
        description="List the files of this conversation with type, size and newest version.",
        properties={},
        only_reads=True,
    ),
    BuiltinSpec(
        name=BuiltinTool.SEARCH_KNOWLEDGE,
        title="Search the knowledge",
        description="Find passages in your knowledge files. Gives the best ones, each with the mark that cites it.",
        properties={
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "description": "A few words that the passage should hold.",
            },
            "name": {**_NAME, "description": "Only in this file; without it in all of them."},
        },
        required=("query",),
        only_reads=True,
    ),
    BuiltinSpec(
        name=BuiltinTool.SEND_ARTIFACT_TO_MCP,
        title="Send a file to a tool",
        description="Call a tool of a server with a file's content in one of its arguments. You need not read the file;"
        " the content goes there directly.",
        properties={
            "artifact": _NAME,
            "version": _VERSION,
            "server": {"type": "string", "description": "The server's name."},
            "tool": {"type": "string", "description": "The tool's name."},
            "argument": {
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "description": "Name of the tool's argument that takes the content.",
            },
            "arguments": {"type": "object", "description": "The tool's other arguments."},
            "encoding": {
                "enum": ["auto", "text", "base64", "data_url"],
                "description": "How the content is written; auto: text as it is, everything else in base64.",
            },
        },
        required=("artifact", "server", "tool", "argument"),
    ),
    BuiltinSpec(
        name=BuiltinTool.RETRIEVE_FILE_FROM_MCP,
        title="Save a result as a file",
        description="Call a tool of a server, or read one of its resources, and save what comes as a file without"
        " reading it yourself.",
        properties={
            "server": {"type": "string", "description": "The server's name."},
            "tool": {"type": "string", "description": "The tool's name."},
            "resource": {
                "type": "string",
                "maxLength": 2048,
                "description": "Instead of a tool: the URI of a resource of that server.",
            },
            "arguments": {"type": "object", "description": "The tool's arguments."},
            "name": _NAME,
        },
        required=("server", "name"),
    ),
)
SPEC_OF: Final = {spec.name.value: spec for spec in SPECS}


def find_target(
    tools: Sequence[OfferedTool], builtin: str, arguments: Mapping[str, Any]
) -> OfferedTool | str:
    """The tool of a server that a transfer is a call of, among those that the turn was offered; or why there is none.

    Names have to be the same to the letter: what only looks alike is another tool.
    """
    try:
        check_arguments(SPEC_OF[builtin].input_schema, arguments)
    except InvalidArguments as fault:
        return fault.message
    server, tool = arguments.get("server"), arguments.get("tool")
    of_servers = [one for one in tools if one.server_id is not None]
    if builtin == BuiltinTool.RETRIEVE_FILE_FROM_MCP and tool is None:
        return _resource_of(of_servers, server, arguments.get("resource"))
    if arguments.get("resource") is not None:
        return "Give either a tool or a resource."
    for one in of_servers:
        if (one.server_name, one.tool_name) == (server, tool):
            return one
    for one in of_servers:
        if one.function_name == tool and server in (None, "", one.server_name):
            return one
    names = ", ".join(sorted({one.full_name for one in of_servers})[:50])
    return f"There is no tool {tool!r} on a server {server!r} here. There are: {names or 'none'}."


def _resource_of(tools: Sequence[OfferedTool], server: Any, uri: Any) -> OfferedTool | str:
    if not isinstance(uri, str) or not uri:
        return "Give a tool, or the URI of a resource."
    for one in tools:
        if one.server_name == server:
            return replace(
                one,
                tool_id=None,
                tool_name=RESOURCE,
                title="Read a resource",
                description="",
                input_schema={},
                # Reading twice does no harm; what is read may be anybody's words.
                annotations={"read_only": True, "is_trusted": True},
                definition_hash="",
            )
    names = ", ".join(sorted({one.server_name for one in tools})[:50])
    return f"There is no server {server!r} here. There are: {names or 'none'}."


def is_sending(call: ToolCall) -> bool:
    """Whether a file's content goes out with this call."""
    return call.builtin == BuiltinTool.SEND_ARTIFACT_TO_MCP


def arguments_for_people(call: ToolCall) -> dict[str, Any] | None:
    """The same for a card: in place of the content stands what it is. None for a call of its own."""
    if not call.builtin or call.server_id is None:
        return None
    effective = dict(call.arguments.get("arguments") or {})
    if is_sending(call):
        pinned = call.artifact or {"name": str(call.arguments.get("artifact"))}
        file_facts = {
            key: pinned[key] for key in ("name", "version", "content_type", "size") if key in pinned
        }
        effective[str(call.arguments.get("argument"))] = {"file": file_facts}
    elif call.arguments.get("resource") is not None:
        effective = {"uri": call.arguments["resource"]}
    return effective
