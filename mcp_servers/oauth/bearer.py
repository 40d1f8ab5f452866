"""Puts a principal's access token on requests to its server, and on no other.

Source: RFC 6750, section 2.1; MCP specification, "Authorization": Access Token Usage.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import httpx2

from mcp_servers.oauth import watching
from mcp_servers.oauth.renewing import AccessToken, current_token, renew

if TYPE_CHECKING:
    from mcp_servers.oauth.grants import Holder
    from workspaces.outbound import Endpoint


class GrantAuth(httpx2.Auth):
    """Authorization by a stored grant. Never asks a person: a refusal is handed on as it came.

    One try with a new token after a 401, and no more.

    Args:
        is_client: nobody signs in there; the platform does, as the client that an administrator entered.
    """

    def __init__(self, holder: Holder, endpoint: Endpoint, *, is_client: bool = False) -> None:
        self._holder = holder
        self._endpoint = endpoint
        self._is_client = is_client

    def __repr__(self) -> str:
        return "GrantAuth(…)"

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        token = await self._token() if self._is_for(request.url) else None
        if token is None:
            yield request
            return
        _put(request, token)
        response = yield request
        if response.status_code != 401:
            return
        newer = await renew(self._holder, token.generation)
        if newer is None:
            return
        _put(request, newer)
        yield request

    async def _token(self) -> AccessToken | None:
        watching.watch()
        return await current_token(self._holder, is_client=self._is_client)

    def _is_for(self, url: httpx2.URL) -> bool:
        port = url.port or {"https": 443, "wss": 443}.get(url.scheme, 80)
        here = self._endpoint
        return (url.scheme, url.host, port) == (here.scheme, here.host, here.port)


def _put(request: httpx2.Request, token: AccessToken) -> None:
    request.headers["authorization"] = f"Bearer {token.value}"
