"""A tool as a request to the model offers it, and what a server says of itself. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

from chat.tools.schemas import as_parameters, plain_parameters
from mcp_servers.client.hidden_text import strip_hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool as one request to the model offers it."""

    function_name: str
    server_id: UUID | None
    """None for a built-in one."""
    server_name: str
    tool_id: UUID | None
    tool_name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    annotations: dict[str, Any]
    definition_hash: str
    builtin: str = ""

    @property
    def full_name(self) -> str:
        """`server.tool`, as people see it; a built-in one has no server."""
        return f"{self.server_name}.{self.tool_name}" if self.server_name else self.tool_name

    @property
    def _family(self) -> str:
        return "servers" if self.builtin.startswith("mcp_") else "files"

    def as_function(self) -> dict[str, Any]:
        """OpenAI's form of a tool."""
        words = self.description or self.title or self.tool_name
        described = strip_hidden(f"[{self.server_name or self._family}] {words}")
        return {
            "type": "function",
            "function": {
                "name": self.function_name,
                "description": described[:1024],
                "parameters": as_parameters(self.input_schema),
            },
        }

    def as_json(self) -> FunctionJson:
        """The same as text. Tools of one definition and name share it."""
        worded = _Worded(
            (self.definition_hash, self.builtin),
            (self.function_name, self.server_name, self.tool_name, self.title, self.description),
            self,
        )
        has_definition = bool(self.definition_hash or self.builtin)
        return _written(worded) if has_definition else _written.__wrapped__(worded)


@dataclass(frozen=True, slots=True)
class FunctionJson:
    """A tool's function as JSON."""

    text: str
    """As it is sent."""
    padded: str
    """With spaces and ASCII alone, as sizes are estimated."""


@dataclass(frozen=True, slots=True)
class _Worded:
    """What a function's JSON depends on."""

    definition: tuple[str, str]
    """Stands for the schema."""
    words: tuple[str, ...]
    tool: OfferedTool = field(compare=False)


@lru_cache(maxsize=2_000)
def _written(worded: _Worded) -> FunctionJson:
    function = worded.tool.as_function()
    return FunctionJson(to_json(function), json.dumps(function))


@lru_cache(maxsize=2_000)
def plain_function(text: str) -> str:
    """A function's JSON for a provider that refuses what most take in a schema."""
    function = json.loads(text)
    function["function"]["parameters"] = plain_parameters(function["function"]["parameters"])
    return to_json(function)


def to_json(value: object) -> str:
    """As requests carry it. Raises ValueError for a number that JSON does not have."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class ServerInstructions:
    """What a server says about itself, without hidden characters and cut to a bearable length."""

    server_name: str
    text: str
    server_id: UUID | None = None
