"""Puts a principal's access token on requests to its server, and on no other.

Source: RFC 6750, section 2.1; MCP specification, "Authorization": Access Token Usage.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable
from typing import TYPE_CHECKING

import httpx2

from mcp_servers.client.transports.messages import is_recorded
from mcp_servers.oauth import ended_grants
from mcp_servers.oauth.renewing import AccessToken, NoToken, current_token, renew
from workspaces import outbound
from workspaces.secret_memory import HeldSecrets

if TYPE_CHECKING:
    from mcp_servers.oauth.grants import Holder
    from workspaces.outbound import Endpoint

logger = logging.getLogger(__name__)


class GrantAuth(httpx2.Auth):
    """Authorization by a stored grant. Never asks a person: a refusal is handed on as it came.

    One try with a new token after a 401, and no more; what the gate sends it sends again itself, with an entry of its
    own in the log, once there is a new token. Without a token nothing is sent: a server that lets anybody in
    would take the request for a stranger's.

    Args:
        is_client: nobody signs in there; the platform does, as the client that an administrator entered.
    """

    def __init__(self, holder: Holder, endpoint: Endpoint, *, is_client: bool = False) -> None:
        self.holder = holder
        self.is_client = is_client
        self._endpoint = endpoint
        self._secrets = HeldSecrets()

    def __repr__(self) -> str:
        return "GrantAuth(…)"

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if not self._is_for(request.url):
            yield request
            return
        token = await self._token()
        if isinstance(token, NoToken):
            _withhold(request, token)
            yield request
            return
        self._put(request, token)
        response = yield request
        if response.status_code != 401:
            return
        newer = await _surely(renew(self.holder, token.generation))
        if isinstance(newer, AccessToken) and is_recorded(request.content):
            return
        if isinstance(newer, AccessToken):
            self._put(request, newer)
            yield request
        elif newer is NoToken.FOR_NOW:
            _withhold(request, newer)
            yield request

    async def _token(self) -> AccessToken | NoToken:
        ended_grants.watch()
        return await _surely(current_token(self.holder, is_client=self.is_client))

    def _put(self, request: httpx2.Request, token: AccessToken) -> None:
        self._secrets.replace(token.value, workspace_id=self.holder.workspace_id)
        request.headers["authorization"] = f"Bearer {token.value}"

    def _is_for(self, url: httpx2.URL) -> bool:
        port = url.port or {"https": 443, "wss": 443}.get(url.scheme, 80)
        here = self._endpoint
        return (url.scheme, url.host, port) == (here.scheme, here.host, here.port)


async def _surely(token: Awaitable[AccessToken | NoToken]) -> AccessToken | NoToken:
    """A token or a reason; an exception from here would end the connection with all that runs on it."""
    try:
        return await token
    except Exception:
        logger.warning("token_not_had", exc_info=True)
        return NoToken.FOR_NOW


def _withhold(request: httpx2.Request, why: NoToken) -> None:
    """Answer as the server would without a sign-in, or as if it were out of reach for now."""
    request.extensions[outbound.WITHHELD] = 401 if why is NoToken.SIGN_IN else 0
