"""The one client for outbound HTTP: closed to private addresses, bounded in time and size.

Whatever leaves this process for an address that a person or a server chose goes through `client()`: MCP servers,
model providers, discovery. A URL is parsed once, by the strict rules of `parse_endpoint()`; its host is resolved once
for each connection; every answer is classified by our own table; and the socket is opened to the classified address, so
that a name which changes its mind between check and use gains nothing. Redirects are not followed, proxies and other
settings of the environment are ignored, cookies are dropped, and compressed answers are refused.

Failures come out as exceptions of the HTTP library (`httpx2.ConnectError`, `httpx2.ReadTimeout`, ...), so that the
SDKs above treat them as what they are. A host in a network that is not allowed is `NetworkRefused`, which names no
address; what people enter is read by `enter_endpoint()`, which refuses what could never be connected to.
"""

from workspaces.outbound.addresses import Address, Network, is_allowed_address
from workspaces.outbound.backend import GuardedBackend
from workspaces.outbound.bounds import BoundedStream, Bounds, Pace, ResponseTooLarge
from workspaces.outbound.egress import (
    NETWORK_REFUSED,
    STATUS_FIRST,
    USER_AGENT,
    WITHHELD,
    EgressTransport,
    NetworkRefused,
    RequestWithheld,
    Wrap,
    allowed_networks,
    client,
    ssl_context,
)
from workspaces.outbound.endpoints import (
    HTTP_SCHEMES,
    MAX_URL_LENGTH,
    WEBSOCKET_SCHEMES,
    Endpoint,
    check_headers,
    parse_endpoint,
)
from workspaces.outbound.entered_addresses import enter_endpoint
from workspaces.outbound.reasons import Unreachable, why_unreachable
from workspaces.outbound.tls import connect_tls, tls_context

__all__ = [
    "HTTP_SCHEMES",
    "MAX_URL_LENGTH",
    "NETWORK_REFUSED",
    "STATUS_FIRST",
    "USER_AGENT",
    "WEBSOCKET_SCHEMES",
    "WITHHELD",
    "Address",
    "BoundedStream",
    "Bounds",
    "EgressTransport",
    "Endpoint",
    "GuardedBackend",
    "Network",
    "NetworkRefused",
    "Pace",
    "RequestWithheld",
    "ResponseTooLarge",
    "Unreachable",
    "Wrap",
    "allowed_networks",
    "check_headers",
    "client",
    "connect_tls",
    "enter_endpoint",
    "is_allowed_address",
    "parse_endpoint",
    "ssl_context",
    "tls_context",
    "why_unreachable",
]
