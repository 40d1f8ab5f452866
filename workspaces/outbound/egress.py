"""The egress client itself: HTTP, event streams and WebSockets, over checked addresses and within bounds."""

from __future__ import annotations

import functools
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TypeAlias, cast

import anyio
import httpx2
from django.conf import settings

from workspaces.errors import InvalidEndpoint
from workspaces.outbound.addresses import Network
from workspaces.outbound.backend import AddressRefused, GuardedBackend
from workspaces.outbound.bounds import COMPRESSED, BoundedStream, Bounds, Pace, RefusedStream
from workspaces.outbound.endpoints import HTTP_SCHEMES, WEBSOCKET_SCHEMES, parse_endpoint

Wrap: TypeAlias = Callable[[httpx2.AsyncBaseTransport], httpx2.AsyncBaseTransport]

USER_AGENT: Final = "trellis/0.1"

NETWORK_REFUSED: Final = "Trellis is not allowed to connect to this network. The platform's owner can allow it with TRELLIS_ALLOWED_NETWORKS."

WITHHELD: Final = "trellis.withheld"
"""A request's extension: why it is not sent after all, as the status that its caller is given; 0 for no answer."""

STATUS_FIRST: Final = "trellis.status_first"
"""A request's extension: its caller wants the status of an answer whose body is refused, too."""

_KEPT_ALIVE: Final = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    # Where the system has them: a peer that is gone without a word is found out within a minute.
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]


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
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    """Build the only kind of HTTP client that may leave this process; the caller closes it.

    Args:
        headers: sent with every request.
        mounts: transports for URL prefixes that stay in this process, such as
            `{"http://demo-model": httpx2.ASGITransport(app)}`; they skip the egress rules.
        wrap: puts another transport around the guarded one.
        networks: private networks to allow; by default the owner's setting.
        auth: puts credentials on requests as they go, where they change during the client's life.
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
        auth=auth,
    )


@functools.cache
def ssl_context() -> ssl.SSLContext:
    """One TLS configuration for the process; building one costs as much as ten requests."""
    return httpx2.create_ssl_context()


class NetworkRefused(httpx2.ConnectError):
    """The host is in a network that may not be connected to; nothing was sent. The text is for administrators."""

    def __init__(self, *, request: httpx2.Request | None = None) -> None:
        super().__init__(NETWORK_REFUSED, request=request)


class RequestWithheld(httpx2.ConnectError):
    """A request that was not sent, since what it needs cannot be had just now."""


def _withheld(request: httpx2.Request) -> httpx2.Response:
    status = request.extensions[WITHHELD]
    if not status:
        raise RequestWithheld("The request was not sent.", request=request)
    return httpx2.Response(status, request=request)


def _within(seconds: float | None) -> AbstractContextManager[object]:
    """A block that raises TimeoutError when its time is up; None: it has no end."""
    return nullcontext() if seconds is None else anyio.fail_after(seconds)


class EgressTransport(httpx2.AsyncBaseTransport):
    """Sends requests to allowed addresses only, and reads answers within bounds."""

    def __init__(self, *, bounds: Bounds, networks: tuple[Network, ...]) -> None:
        self._bounds = bounds
        per_second = bounds.stream_lines_per_second
        self._pace = None if per_second is None else Pace(per_second)
        # Plain http has a transport of its own, because the network backend learns a host and a port but no scheme.
        encrypted = self._guarded(GuardedBackend(networks=networks))
        plain = self._guarded(GuardedBackend(networks=networks, only_networks=True))
        self._inner = {"https": encrypted, "wss": encrypted, "http": plain, "ws": plain}
        self._checked: tuple[str | None, str] = (None, "")
        """The URL that was checked last, and its scheme: most clients ask one."""

    @staticmethod
    def _guarded(backend: GuardedBackend) -> httpx2.AsyncHTTPTransport:
        transport = httpx2.AsyncHTTPTransport(
            verify=ssl_context(),
            trust_env=False,
            limits=httpx2.Limits(
                max_connections=None, max_keepalive_connections=20, keepalive_expiry=30
            ),
            socket_options=_KEPT_ALIVE,
        )
        # The library has no public way to give a backend; a contract test holds this attribute.
        transport._pool._network_backend = backend
        return transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if WITHHELD in request.extensions:
            return _withheld(request)
        try:
            scheme = self._scheme_of(str(request.url))
        except InvalidEndpoint as error:
            raise httpx2.UnsupportedProtocol(error.message, request=request) from error
        request.headers["accept-encoding"] = "identity"
        started = time.monotonic()
        try:
            with _within(self._bounds.total_seconds):
                response = await self._inner[scheme].handle_async_request(request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(
                "The server did not answer in time.", request=request
            ) from error
        except httpx2.ConnectError as error:
            if isinstance(error.__cause__, AddressRefused):
                raise NetworkRefused(request=request) from error
            raise
        if "set-cookie" in response.headers:
            del response.headers["set-cookie"]
        if response.headers.get("content-encoding", "identity").strip().lower() not in (
            "",
            "identity",
        ):
            if STATUS_FIRST in request.extensions:
                response.stream = RefusedStream(cast("httpx2.AsyncByteStream", response.stream))
                return response
            await response.aclose()
            raise httpx2.DecodingError(COMPRESSED, request=request)
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        response.stream = BoundedStream(
            cast("httpx2.AsyncByteStream", response.stream),
            body_bytes=self._bounds.stream_bytes if is_stream else self._bounds.body_bytes,
            line_bytes=self._bounds.line_bytes if is_stream else None,
            deadline=None
            if is_stream or self._bounds.total_seconds is None
            else started + self._bounds.total_seconds,
            pace=self._pace if is_stream else None,
        )
        return response

    def _scheme_of(self, url: str) -> str:
        """The scheme of a URL that may be asked. Raises InvalidEndpoint."""
        checked, scheme = self._checked
        if url != checked:
            scheme = parse_endpoint(url, schemes=(*HTTP_SCHEMES, *WEBSOCKET_SCHEMES)).scheme
            self._checked = (url, scheme)
        return scheme

    async def aclose(self) -> None:
        for transport in dict.fromkeys(self._inner.values()):
            await transport.aclose()
