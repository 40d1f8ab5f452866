"""Many people who call tools over REST at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import httpx2
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.utils import timezone
from mcp_types import ToolAnnotations

from config.asgi import application
from mcp_servers.models import McpTool
from tests.factories import Tenant
from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.factories import http_server, looked_at, tool_of
from workspaces.people.tokens import issue_token

HOST = "http://testserver"


class Holding(CountingServer):
    """A server whose tool answers once the test lets it."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.loop: asyncio.AbstractEventLoop | None = None
        super().__init__()

    def _add_tools(self) -> None:
        super()._add_tools()

        @self.server.tool(annotations=ToolAnnotations(read_only_hint=True))
        async def hold(text: str) -> str:
            """Wait for the test."""
            self.loop = asyncio.get_running_loop()
            self.calls.append(("hold", {"text": text}))
            await self.may_answer.wait()
            return text

    def let_go(self) -> None:
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.may_answer.set)


def make_tools(tenant: Tenant, servers: list[Holding], name: str) -> list[McpTool]:
    found = []
    for number, server in enumerate(servers):
        row = http_server(
            tenant,
            server.url,
            name=f"{name} {number}",
            trusts_annotations=True,
            connection_config={"max_concurrent_calls": 64, "call_seconds": 300},
        )
        found.append(tool_of(looked_at(tenant, row), name))
    return found


def sign_in(tenant: Tenant) -> tuple[str, str]:
    """A token for calls, and a session for pages."""
    _, token = issue_token(
        user=tenant.admin,
        workspace=tenant.workspace,
        name="many",
        scopes=["servers:read", "servers:write"],
        expires_at=timezone.now() + timedelta(days=1),
        actor=tenant.actor(),
    )
    session = tenant.client("admin").cookies[settings.SESSION_COOKIE_NAME].value
    return token, session


class Crowd:
    """Many clients of the true application, each request in a thread of its own as in the product."""

    def __init__(self, tenant: Tenant, token: str, session: str) -> None:
        self.slug = tenant.workspace.slug
        self.cookie = f"{settings.SESSION_COOKIE_NAME}={session}"
        self.headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=application), base_url=HOST, timeout=240
        )

    async def call(self, tool: McpTool, number: int) -> int:
        """One call by REST, with the token that is its own proof."""
        answer = await self.http.post(
            f"/api/tools/{tool.pk}/test/",
            json={"arguments": {"text": str(number)}},
            headers=self.headers,
        )
        return answer.status_code

    async def page(self) -> int:
        """One page of somebody who is signed in."""
        answer = await self.http.get(f"/w/{self.slug}/", headers={"Cookie": self.cookie})
        return answer.status_code

    async def socket(self) -> int:
        """One page's socket, open until it is answered; as a status, for comparison."""
        headers = [
            (b"origin", HOST.encode()),
            (b"host", b"testserver"),
            (b"cookie", self.cookie.encode()),
        ]
        one = WebsocketCommunicator(application, f"/ws/w/{self.slug}/", headers=headers)
        is_connected, _ = await one.connect(timeout=240)
        await one.send_json_to({"type": "ping"})
        answer = await one.receive_json_from(timeout=240)
        await one.disconnect()
        return 200 if is_connected and answer["type"] == "pong" else 500
