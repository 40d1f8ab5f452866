"""What a server says to somebody without a token: how it asks for sign-in, and that it is there at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx2
from django.utils.translation import gettext_noop as _

from mcp_servers.client import transports
from mcp_servers.client.errors import ConnectionFailed
from mcp_servers.oauth.requests import BOUNDS
from mcp_servers.oauth.values import Challenge
from workspaces import outbound
from workspaces.errors import InvalidEndpoint
from workspaces.product import NAME, VERSION

if TYPE_CHECKING:
    from mcp_servers.models import McpServer

_ACCEPT: Final = {"accept": "application/json, text/event-stream"}
_US: Final = {"name": NAME, "version": VERSION}
_LEGACY: Final = "2025-11-25"
_MODERN: Final = "2026-07-28"
_HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": _LEGACY, "capabilities": {}, "clientInfo": _US},
}
_QUESTION: Final = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/list",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": _MODERN,
            "io.modelcontextprotocol/clientInfo": _US,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
_QUESTION_HEADERS: Final = {**_ACCEPT, "mcp-protocol-version": _MODERN, "mcp-method": "tools/list"}


async def ask_challenge(server: McpServer) -> Challenge:
    """Say hello without a token, and read how the server asks for one.

    A server that lets anybody in gives a challenge without anything in it: it may ask later.

    Raises:
        ConnectionFailed: nobody answers there, or with a fault of its own.
    """
    headers = (
        server.headers.reveal_json("request headers of an MCP server") if server.headers else {}
    )
    try:
        endpoint = outbound.parse_endpoint(server.url)
        async with outbound.client(headers=headers, bounds=BOUNDS) as client:
            if server.transport in transports.opened_with_get():
                request = client.build_request("GET", str(endpoint), headers=_ACCEPT)
                return await _challenge(client, request)
            request = client.build_request("POST", str(endpoint), headers=_ACCEPT, json=_HELLO)
            challenge = await _challenge(client, request)
            if challenge.asks_for_sign_in:
                return challenge
            # Some let anybody say hello, or do not know that hello any more, and ask for sign-in at the first question.
            request = client.build_request(
                "POST", str(endpoint), headers=_QUESTION_HEADERS, json=_QUESTION
            )
            return await _challenge(client, request)
    except InvalidEndpoint as error:
        raise ConnectionFailed(_("Signing in works with https:// servers only.")) from error
    except httpx2.HTTPError as error:
        raise ConnectionFailed(_("Trellis could not reach the server.")) from error


async def _challenge(client: httpx2.AsyncClient, request: httpx2.Request) -> Challenge:
    response = await client.send(request, stream=True)
    await response.aclose()
    if response.status_code >= 500:
        raise ConnectionFailed(
            _("The server answered with HTTP %(status_code)s.")
            % {"status_code": response.status_code}
        )
    return Challenge.read(response.status_code, response.headers.get("www-authenticate", "")[:4096])
