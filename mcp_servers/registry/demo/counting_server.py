"""An MCP server over stdio that keeps a list of the calls it was given: what `manage.py audit_selfcheck` compares with.

Each call is one line in `calls.jsonl` in the home folder. Runs by its path, and knows nothing of the platform.
"""

from __future__ import annotations

import json
from pathlib import Path

from mcp.server import MCPServer
from mcp_types import ToolAnnotations


def build_server(seen: Path) -> MCPServer:
    """The server, which writes down what it sees before it answers."""
    server = MCPServer(name="counting", version="1.0", log_level="WARNING")

    def note(what: str, case: str) -> None:
        with seen.open("a", encoding="utf-8") as file:
            file.write(json.dumps([what, case]) + "\n")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    def echo(case: str) -> str:
        """Say it again."""
        note("echo", case)
        return case

    @server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
    def destroy(case: str) -> str:
        """Only counts, and calls itself destructive."""
        note("destroy", case)
        return case

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    def off(case: str) -> str:
        """A tool to be switched off."""
        note("off", case)
        return case

    @server.resource("selfcheck://{case}")
    def resource(case: str) -> str:
        """A resource for each case."""
        note("resource", case)
        return case

    return server


if __name__ == "__main__":
    build_server(Path.home() / "calls.jsonl").run(transport="stdio")
