"""Clients that hang up before they have their answer, and the calls that they leave."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

from audit.models import AuditEntry
from config.serving.handler import Handler
from mcp_servers.models import McpTool
from tests.factories import Tenant
from tests.mcp_servers.endpoint.client import McpClient
from tests.patience import PATIENCE


class Leaving:
    """A request over ASGI, of a client that may hang up before it has its answer."""

    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.status: int | None = None
        self.body = b""
        self._loop = asyncio.new_event_loop()
        self._left = asyncio.Event()
        self._asked = [{"type": "http.request", "body": body}]
        self._scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [
                (name.lower().encode(), value.encode())
                for name, value in {
                    **headers,
                    "Host": "localhost",
                    "Content-Type": "application/json",
                    "Content-Length": str(len(body)),
                }.items()
            ],
            "server": ("localhost", 80),
        }
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def leave(self) -> None:
        """Hang up."""
        self._loop.call_soon_threadsafe(self._left.set)
        self._thread.join(PATIENCE)

    def wait(self) -> None:
        """Wait until all of the answer is there."""
        self._thread.join(PATIENCE)

    def answer(self) -> Any:
        """What it was answered with."""
        self.wait()
        return json.loads(self.body)

    def _run(self) -> None:
        self._loop.run_until_complete(Handler()(self._scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._asked:
            return self._asked.pop()
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")


def runs_by_itself(tool: McpTool) -> McpTool:
    """The tool, which an administrator lets run without asking."""
    tool.approval_override = "auto"
    tool.save()
    return tool


def call_of_it(
    client: McpClient, request_id: int = 7, seconds: int = 60
) -> tuple[dict[str, str], dict[str, Any]]:
    """Headers and body of a call of that tool."""
    return client.message(
        "tools/call", {"name": "full__silent", "arguments": {"seconds": seconds}}, request_id
    )


def leaving_client(client: McpClient, request_id: int = 7, seconds: int = 60) -> Leaving:
    """A call of that tool."""
    headers, body = call_of_it(client, request_id, seconds)
    return Leaving(client.url, headers, json.dumps(body).encode())


def ended(tenant: Tenant) -> list[str]:
    """How calls ended, by the log."""
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    return list(entries.filter(action="tool_call.finished").values_list("outcome", flat=True))
