"""A tool as a request to the model offers it, and what a server says of itself. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

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
                "parameters": self.input_schema or {"type": "object", "properties": {}},
            },
        }


@dataclass(frozen=True, slots=True)
class ServerInstructions:
    """What a server says about itself, without hidden characters and cut to a bearable length."""

    server_name: str
    text: str
    server_id: UUID | None = None
