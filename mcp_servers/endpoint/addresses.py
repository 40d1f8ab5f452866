"""Addresses of resources, one for each over several servers: `trellis://<server>/<the server's own address>`.

The server's address stands there as it is, so a template stays a template. The server's part is its name in small
letters, cleaned as in the names of tools. Where two servers would share one, a stable hash of the id is added.
Source: RFC 3986, section 3; RFC 6570; MCP specification, "Resources": Resource Templates.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from mcp_servers.client.tool_names import cleaned

if TYPE_CHECKING:
    from mcp_servers.models import McpServer

SCHEME: Final = "trellis"
_LONGEST_NAME: Final = 40
_HASH_LENGTH: Final = 8
_OF_THE_WEB: Final = ("http://", "https://")


class Address(NamedTuple):
    """Where a server has a resource."""

    server_id: UUID
    uri: str


class Addresses:
    """The addresses that a client gets, and back again."""

    def __init__(self, servers: Iterable[McpServer]) -> None:
        names = {server.pk: cleaned(server.name).lower() for server in servers}
        uses = Counter(names.values())
        self._names = {
            server_id: name
            if len(name) <= _LONGEST_NAME and uses[name] == 1
            else f"{name[:_LONGEST_NAME]}_{_hash_of(server_id)}"
            for server_id, name in names.items()
        }
        self._ids = {name: server_id for server_id, name in self._names.items()}

    def outward(self, server_id: UUID, uri: str) -> str:
        """The address that a client gets for one of a server, or for a template."""
        return f"{SCHEME}://{self._names[server_id]}/{uri}"

    def of_link(self, server_id: UUID, uri: str) -> str:
        """The same for a link in a result. What stands on the web stays as it is: clients open it themselves."""
        return uri if uri.lower().startswith(_OF_THE_WEB) else self.outward(server_id, uri)

    def inward(self, address: str) -> Address | None:
        """What a client means by an address; None: no server that it may use."""
        scheme, _colon, rest = address.partition("://")
        name, _slash, uri = rest.partition("/")
        server_id = self._ids.get(name.lower())
        if scheme.lower() != SCHEME or server_id is None or not uri:
            return None
        return Address(server_id, uri)


def _hash_of(server_id: UUID) -> str:
    return hashlib.sha256(server_id.bytes).hexdigest()[:_HASH_LENGTH]
