"""The client that an administrator registered at an issuer and entered in a server's settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mcp_servers.models import McpServer

_SECRET: Final = ("client_secret", "private_key")


def entered_client(server: McpServer, purpose: str) -> dict[str, str]:
    """client_id, and client_secret or private_key; empty if none was entered. The id itself is no secret.

    Raises:
        SecretUnreadable: the key that it was stored under is gone.
    """
    secret = server.auth_config
    if not secret:
        return {}
    values: dict[str, str] = json.loads(secret.reveal(purpose, is_credential=False))
    for name in _SECRET:
        if values.get(name):
            secret.remember(values[name])
    return values if values.get("client_id") else {}
