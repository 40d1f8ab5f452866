"""The one client for outbound HTTP: closed to private addresses, bounded in time and size.

Whatever leaves this process for an address that a person or a server chose goes through `client()`: MCP servers,
model providers, discovery. A URL is parsed once, by the strict rules of `parse_endpoint()`; its host is resolved once
for each connection; every answer is classified by our own table; and the socket is opened to the classified address, so
that a name which changes its mind between check and use gains nothing. Redirects are not followed, proxies and other
settings of the environment are ignored, cookies are dropped, and compressed answers are refused.

Failures come out as exceptions of the HTTP library (`httpx2.ConnectError`, `httpx2.ReadTimeout`, ...), so that the
SDKs above treat them as what they are. Their texts never tell a refused address from an unreachable one.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import anyio
import httpcore2
import httpx2
import idna
from django.conf import settings

from mcp_servers.errors import InvalidEndpoint

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Wrap: TypeAlias = Callable[[httpx2.AsyncBaseTransport], httpx2.AsyncBaseTransport]

MAX_URL_LENGTH: Final = 2048
USER_AGENT: Final = "trellis/0.1"

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[^\[\]/?#:@]+)(?::(?P<port>[0-9]{1,5}))?(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?",
    re.IGNORECASE,
)
_URL_CHARACTERS: Final = re.compile(r"(?:%[0-9A-Fa-f]{2}|[A-Za-z0-9\-._~:/?\[\]!$&'()*+,;=@])*")
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

# Ports of services that speak no HTTP but may understand some of it, besides everything below 1024: the list of the
# Fetch standard ("bad port"), and databases, caches, queues and container engines.
_REFUSED_HIGH_PORTS: Final = frozenset(
    (
        *(
            1719,
            1720,
            1723,
            2049,
            3659,
            4045,
            4190,
            5060,
            5061,
            6000,
            6566,
            *range(6665, 6670),
            6679,
            6697,
            10080,
        ),
        *(
            1433,
            1521,
            2181,
            2375,
            2376,
            2379,
            2380,
            3306,
            5432,
            5433,
            5672,
            6379,
            6380,
            9042,
            9092,
            10250,
            11211,
            27017,
        ),
    )
)

# What is not global unicast although `ipaddress` may say so, from the IANA special-purpose registries, plus addresses
# that clouds give to their metadata and control services.
_REFUSED_NETWORKS: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "2620:4f:8000::/48",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
_GLOBAL_IPV6: Final = ipaddress.IPv6Network("2000::/3")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_NAT64_LOCAL: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
_IPV4_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,8192}")
_RESERVED_HEADERS: Final = frozenset(
    [
        "accept-encoding",
        "accept",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "last-event-id",
        "origin",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A URL that passed the rules; the only form in which one is stored and fetched."""

    scheme: str
    host: str
    """Lower case, ASCII (IDNA); an IPv6 address without brackets."""
    port: int
    target: str
    """Path and query."""

    @property
    def origin(self) -> str:
        """Scheme, host and port; stored credentials belong to exactly one origin."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much of an answer is read, and how long."""

    connect_seconds: float = 10.0
    idle_seconds: float | None = 60.0
    """Longest silence, before the first byte and between two reads. None: the caller has its own deadline."""
    total_seconds: float | None = 120.0
    """For head and body together; event streams are exempt."""
    body_bytes: int = 10 * 2**20
    line_bytes: int = 2**20
    """Longest line of an event stream."""
    stream_bytes: int | None = None
    """Whole event stream."""


def parse_endpoint(text: str) -> Endpoint:
    """Read a URL strictly: one spelling, one meaning, for the check and for the fetch.

    Raises:
        InvalidEndpoint: no http(s) URL, or one with user information, fragment, backslash, blanks or control
            characters, a host that is no name and no canonical address, a refused port, or over 2048 characters.
    """
    if len(text) > MAX_URL_LENGTH:
        raise InvalidEndpoint(f"A URL may have at most {MAX_URL_LENGTH} characters.")
    match = _URL.fullmatch(text)
    if match is None:
        raise InvalidEndpoint("This is not a plain http:// or https:// URL.")
    scheme = match["scheme"].lower()
    host = _parse_host(match["host"])
    port = int(match["port"]) if match["port"] else _DEFAULT_PORTS[scheme]
    if port not in (80, 443) and (not 1024 <= port <= 65535 or port in _REFUSED_HIGH_PORTS):
        raise InvalidEndpoint(f"Port {port} is not allowed.")
    target = (match["path"] or "/") + (f"?{match['query']}" if match["query"] is not None else "")
    if not _URL_CHARACTERS.fullmatch(target):
        raise InvalidEndpoint("The URL has characters that must be percent-encoded.")
    return Endpoint(scheme, host, port, target)


def check_headers(headers: Mapping[str, str]) -> None:
    """Make sure that a tenant's headers can neither break a request apart nor take over the protocol's own.

    Raises:
        InvalidEndpoint: a name that is no token or is reserved, a value with CR, LF, NUL or characters beyond
            Latin-1, the same name twice, or more than 32 headers.
    """
    if len(headers) > 32:
        raise InvalidEndpoint("At most 32 headers are allowed.")
    seen: set[str] = set()
    for name, value in headers.items():
        lowered = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise InvalidEndpoint("A header's name may hold letters, digits and - only.")
        if lowered in _RESERVED_HEADERS or lowered.startswith(
            ("mcp-", "proxy-", "sec-", "x-forwarded-")
        ):
            raise InvalidEndpoint(f"The header {name} is set by the platform.")
        if lowered in seen:
            raise InvalidEndpoint(f"The header {name} is given twice.")
        seen.add(lowered)
        if not _HEADER_VALUE.fullmatch(value):
            raise InvalidEndpoint(
                f"The value of the header {name} has characters that a header cannot carry."
            )


def is_allowed_address(
    address: Address, *, networks: Iterable[Network] = (), only_networks: bool = False
) -> bool:
    """Whether a connection to this address may be opened.

    Args:
        networks: what the platform's owner allows besides global unicast.
        only_networks: True for plain http, which may not cross the public network.
    """
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        return False
    inner = _unwrap(address)
    if inner is None:
        return False
    if any(inner.version == network.version and inner in network for network in networks):
        return True
    if only_networks or any(
        inner.version == network.version and inner in network for network in _REFUSED_NETWORKS
    ):
        return False
    return inner.version == 4 or inner in _GLOBAL_IPV6


def allowed_networks() -> tuple[Network, ...]:
    """The private networks that the platform's owner opened, from TRELLIS_ALLOWED_NETWORKS."""
    return tuple(settings.TRELLIS.allowed_networks)


def client(
    *,
    headers: Mapping[str, str] | None = None,
    bounds: Bounds | None = None,
    mounts: Mapping[str, httpx2.AsyncBaseTransport] | None = None,
    wrap: Wrap | None = None,
    networks: Sequence[Network] | None = None,
) -> httpx2.AsyncClient:
    """Build the only kind of HTTP client that may leave this process; the caller closes it.

    Args:
        headers: sent with every request.
        mounts: transports for URL prefixes that stay in this process, such as
            `{"http://demo-model": httpx2.ASGITransport(app)}`; they skip the egress rules.
        wrap: puts another transport around the guarded one.
        networks: private networks to allow; by default the owner's setting.
    """
    bounds = bounds or Bounds()
    transport: httpx2.AsyncBaseTransport = EgressTransport(
        bounds=bounds,
        networks=allowed_networks() if networks is None else tuple(networks),
    )
    if wrap is not None:
        transport = wrap(transport)
    return httpx2.AsyncClient(
        headers={"user-agent": USER_AGENT, **(headers or {})},
        timeout=httpx2.Timeout(
            bounds.connect_seconds,
            read=bounds.idle_seconds,
            connect=bounds.connect_seconds,
            pool=None,
        ),
        transport=transport,
        mounts=dict(mounts or {}),
        trust_env=False,
        follow_redirects=False,
    )


@functools.cache
def ssl_context() -> ssl.SSLContext:
    """One TLS configuration for the process; building one costs as much as ten requests."""
    return httpx2.create_ssl_context()


class EgressTransport(httpx2.AsyncBaseTransport):
    """Sends requests to allowed addresses only, and reads answers within bounds."""

    def __init__(self, *, bounds: Bounds, networks: tuple[Network, ...]) -> None:
        self._bounds = bounds
        # Plain http has a transport of its own, because the network backend learns a host and a port but no scheme.
        self._inner = {
            "https": self._guarded(GuardedBackend(networks=networks)),
            "http": self._guarded(GuardedBackend(networks=networks, only_networks=True)),
        }

    @staticmethod
    def _guarded(backend: GuardedBackend) -> httpx2.AsyncHTTPTransport:
        transport = httpx2.AsyncHTTPTransport(
            verify=ssl_context(),
            trust_env=False,
            limits=httpx2.Limits(
                max_connections=None, max_keepalive_connections=20, keepalive_expiry=30
            ),
        )
        # The library has no public way to give a backend; a contract test holds this attribute.
        transport._pool._network_backend = backend
        return transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            endpoint = parse_endpoint(str(request.url))
        except InvalidEndpoint as error:
            raise httpx2.UnsupportedProtocol(error.message, request=request) from error
        request.headers["accept-encoding"] = "identity"
        started = time.monotonic()
        try:
            with anyio.fail_after(self._bounds.total_seconds):
                response = await self._inner[endpoint.scheme].handle_async_request(request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(
                "The server did not answer in time.", request=request
            ) from error
        if response.headers.get("content-encoding", "identity").strip().lower() not in (
            "",
            "identity",
        ):
            await response.aclose()
            raise httpx2.DecodingError(
                "The server sent a compressed answer, which was not asked for.",
                request=request,
            )
        if "set-cookie" in response.headers:
            del response.headers["set-cookie"]
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        response.stream = BoundedStream(
            cast("httpx2.AsyncByteStream", response.stream),
            body_bytes=self._bounds.stream_bytes if is_stream else self._bounds.body_bytes,
            line_bytes=self._bounds.line_bytes if is_stream else None,
            deadline=None
            if is_stream or self._bounds.total_seconds is None
            else started + self._bounds.total_seconds,
        )
        return response

    async def aclose(self) -> None:
        for transport in self._inner.values():
            await transport.aclose()


class TooLarge(httpx2.DecodingError):
    """An answer was larger than its bound; nothing more of it was read."""


class BoundedStream(httpx2.AsyncByteStream):
    """A response body that ends with an error as soon as it is too large, has an endless line or takes too long."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        *,
        body_bytes: int | None,
        line_bytes: int | None,
        deadline: float | None,
    ) -> None:
        self._inner = inner
        self._body_bytes = body_bytes
        self._line_bytes = line_bytes
        self._deadline = deadline

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = line = 0
        async for chunk in self._inner:
            total += len(chunk)
            if self._body_bytes is not None and total > self._body_bytes:
                raise TooLarge(f"The answer is larger than {self._body_bytes} bytes.")
            if self._line_bytes is not None:
                newline = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
                line = line + len(chunk) if newline < 0 else len(chunk) - newline - 1
                if line > self._line_bytes:
                    raise TooLarge(f"A line of the answer is larger than {self._line_bytes} bytes.")
            if self._deadline is not None and time.monotonic() > self._deadline:
                raise httpx2.ReadTimeout("The answer took too long.")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Resolves a name once and connects to an address that passed the table."""

    def __init__(self, *, networks: tuple[Network, ...], only_networks: bool = False) -> None:
        self._networks = networks
        self._only_networks = only_networks
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        deadline = None if timeout is None else time.monotonic() + timeout
        addresses = [
            address
            for address in await self._resolve(host, port, timeout)
            if is_allowed_address(
                address, networks=self._networks, only_networks=self._only_networks
            )
        ]
        failure: Exception = httpcore2.ConnectError("The server could not be reached.")
        for address in addresses[:4]:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                break
            try:
                return await self._inner.connect_tcp(
                    str(address), port, left, local_address, socket_options
                )
            except httpcore2.ConnectTimeout as error:
                failure = error
            except httpcore2.ConnectError:
                failure = httpcore2.ConnectError("The server could not be reached.")
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        raise httpcore2.ConnectError("The server could not be reached.")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    @staticmethod
    async def _resolve(host: str, port: int, timeout: float | None) -> list[Address]:
        try:
            return [ipaddress.ip_address(host)]
        except ValueError:
            pass
        try:
            with anyio.fail_after(timeout):
                answers = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(
                "The server's name could not be looked up in time."
            ) from error
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError("The server could not be reached.") from error
        return [
            ipaddress.ip_address(text)
            for text in dict.fromkeys(str(answer[4][0]) for answer in answers)
        ]


def _parse_host(text: str) -> str:
    if text.startswith("["):
        try:
            return str(ipaddress.IPv6Address(text[1:-1]))
        except ValueError as error:
            raise InvalidEndpoint("The host is not a valid address.") from error
    try:
        host = text.lower() if text.isascii() else idna.encode(text, uts46=True).decode()
    except (idna.IDNAError, UnicodeError) as error:
        raise InvalidEndpoint("The host is not a valid name.") from error
    labels = host.removesuffix(".").split(".")
    # A last label that is a number makes the whole host an address (WHATWG URL, "ends in a number"); of the many
    # spellings of an IPv4 address (octal, hexadecimal, one number, fewer parts) only the canonical one is taken.
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]):
        try:
            if str(ipaddress.IPv4Address(host)) == host:
                return host
        except ValueError:
            pass
        raise InvalidEndpoint("The host is not a valid address.")
    if (
        host.endswith(".")
        or len(host) > 253
        or not all(_LABEL.fullmatch(label) for label in labels)
    ):
        raise InvalidEndpoint("The host is not a valid name.")
    if any(label.startswith("xn--") for label in labels):
        try:
            idna.decode(host)
        except (idna.IDNAError, UnicodeError) as error:
            raise InvalidEndpoint("The host is not a valid name.") from error
    return host


def _unwrap(address: Address) -> Address | None:
    """The address that packets really go to; None where that cannot be said."""
    if address.version == 4:
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None or address in _NAT64_LOCAL:
        return None
    return address


@functools.lru_cache(maxsize=16)
def _parse_networks(texts: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text, strict=False) for text in texts)
