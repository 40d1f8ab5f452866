"""What stands between the wire and the product: proxies, malformed headers, and the Origin of sockets."""

from __future__ import annotations

import asyncio
import io
import math
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import IO, Any, Final, Protocol

from django.http.request import split_domain_port, validate_host

from config.env import normal_origin

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Network = IPv4Network | IPv6Network

# Bytes that some servers take for a line break or a blank inside a header, and others do not.
_BAD_HEADER_BYTES = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f\x85]")
_FORWARDED = {
    b"x-forwarded-for",
    b"x-forwarded-proto",
    b"x-forwarded-host",
    b"x-forwarded-port",
    b"forwarded",
    b"x-real-ip",
}


MostBytes = Callable[[str], int]
"""How many bytes a body may have, by the path of its request."""


class Application(Protocol):
    """An ASGI application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


def header_values(scope: Scope, name: bytes) -> list[bytes]:
    """Give every value of one header, in order."""
    return [value for key, value in scope.get("headers", ()) if key == name]


class TrustedProxies:
    """Believe forwarding headers of configured proxies only, and show them to nobody else.

    Afterwards ``scope["client"]`` and ``scope["scheme"]`` (Django's ``REMOTE_ADDR`` and ``is_secure``) are right
    wherever they are read, and the headers are gone, so that no later code can be fooled by them.
    """

    def __init__(self, app: Application, *, networks: Sequence[Network]) -> None:
        self.app = app
        self.networks = tuple(networks)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in {"http", "websocket"}:
            scope = self._read(scope)
        await self.app(scope, receive, send)

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self.networks)

    def _read(self, scope: Scope) -> Scope:
        headers = list(scope.get("headers", ()))
        if not any(key in _FORWARDED for key, _ in headers):
            return scope
        changed = {
            **scope,
            "headers": [(key, value) for key, value in headers if key not in _FORWARDED],
        }
        client = scope.get("client")
        if not client or not self._is_trusted(str(client[0])):
            return changed
        # Each proxy appends the peer it saw, so the last address that is no proxy of ours is the client.
        hops = [
            hop.strip()
            for value in header_values(scope, b"x-forwarded-for")
            for hop in value.decode("latin1").split(",")
        ]
        for hop in reversed(hops):
            try:
                ip_address(hop)
            except ValueError:
                break
            changed["client"] = [hop, 0]
            if not self._is_trusted(hop):
                break
        proto = header_values(scope, b"x-forwarded-proto")
        if len(proto) == 1 and proto[0] in {b"http", b"https"}:
            secure = proto[0] == b"https"
            changed["scheme"] = {"http": "https" if secure else "http"}.get(
                scope["type"], "wss" if secure else "ws"
            )
        return changed


class CleanHeaders:
    """Refuse requests that two servers could read in two ways: split headers, two hosts, absolute-form targets."""

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in {"http", "websocket"} and self._is_ambiguous(scope):
            await _refuse(scope, send, 400)
            return
        await self.app(scope, receive, send)

    @staticmethod
    def _is_ambiguous(scope: Scope) -> bool:
        if len(header_values(scope, b"host")) > 1 or not str(scope.get("path", "/")).startswith(
            "/"
        ):
            return True
        return any(
            _BAD_HEADER_BYTES.search(value) or _BAD_HEADER_BYTES.search(key)
            for key, value in scope.get("headers", ())
        )


class OriginGuard:
    """Let a socket in only from a configured origin: scheme, host and port equal; none or ``null`` is refused.

    A socket carries the session cookie whoever opened it, so the Origin is the only thing that tells our own page
    from another site. Channels' own validator compares host names alone.
    """

    def __init__(self, app: Application, *, origins: Iterable[str], hosts: Sequence[str]) -> None:
        self.app = app
        self.origins = frozenset(normal_origin(origin) for origin in origins)
        self.hosts = list(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_welcome(scope):
            await self.app(scope, receive, send)
        else:
            await _refuse(scope, send, 403)

    def _is_welcome(self, scope: Scope) -> bool:
        origins = header_values(scope, b"origin")
        hosts = header_values(scope, b"host")
        if len(origins) != 1 or len(hosts) != 1:
            return False
        try:
            origin = normal_origin(origins[0].decode("ascii"))
            domain, _port = split_domain_port(hosts[0].decode("ascii"))
        except ValueError:
            return False
        return origin in self.origins and bool(domain) and validate_host(domain, self.hosts)


class _BodyTooLarge(Exception):
    """More came than is read."""


_BODY: Final = "trellis.body"
"""In the scope of Daphne's requests: the file that the body stands in."""
_PIECE_BYTES: Final = 64 * 1024


def _pieces_of(body: IO[bytes], receive: Receive) -> Receive:
    """Read a body as it is asked for; then go on with what the server says, which begins with the end of the body."""

    async def piece() -> Message:
        found = b"" if body.closed else body.read(_PIECE_BYTES)
        if found:
            await asyncio.sleep(0)  # others are served between two pieces
            return {"type": "http.request", "body": found, "more_body": True}
        body.close()
        return await receive()

    return piece


class BodyLimit:
    """Read no more of a request than anybody may send, whatever length it says or does not say.

    Servers of the ASGI kind hand a body on piece by piece, and Django collects it before a view is asked.
    """

    def __init__(self, app: Application, *, most_bytes: MostBytes) -> None:
        self.app = app
        self.most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if (body := scope.pop(_BODY, None)) is not None:
            receive = _pieces_of(body, receive)
        most_bytes = self.most_bytes(str(scope.get("path", "")))
        lengths = header_values(scope, b"content-length")
        if any(_is_too_long(value, most_bytes) for value in lengths):
            await _refuse(scope, send, 413)
            return
        read = 0
        has_begun = False

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > most_bytes:
                raise _BodyTooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, counted, noted)
        except _BodyTooLarge:
            if not has_begun:
                await _refuse(scope, send, 413)


def _is_too_long(value: bytes, most_bytes: int) -> bool:
    return value.isdigit() and (len(value) > 15 or int(value) > most_bytes)


def limit_bodies_of_daphne(most_bytes: MostBytes) -> None:
    """The same for Daphne, if this process is Daphne: it keeps a whole request on its disk before it calls anybody.

    Nor does its library read the form in a body. It would do so on the event loop, before anybody knows who sent it,
    and hold a file 13 times in memory; Django reads the form once more. The body is read as the application asks for
    it: Daphne would take all of it into memory at once.
    """
    protocol: Any = sys.modules.get("daphne.http_protocol")
    if protocol is None:
        return
    request = protocol.WebRequest
    server: Any = sys.modules["daphne.server"].Server
    create_application = server.create_application

    def create(self: Any, connection: Any, scope: Scope) -> Any:
        if scope["type"] == "http":
            # Daphne finds an empty body, and says its end.
            scope[_BODY], connection.content = connection.content, io.BytesIO()
        return create_application(self, connection, scope)

    class LimitedRequest(request):  # type: ignore[misc, valid-type]  # known at run time alone
        _received = 0
        _most_bytes = 0
        _is_refused = False

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "parsePOSTFormSubmission": False})

        def __repr__(self) -> str:
            # Daphne logs it where an application does not end in time. Twisted would show the whole address.
            return f"<request {self.method!r} {self.uri.partition(b'?')[0]!r}>"

        def process(self) -> Any:
            # By this header anybody could say where the product's pages begin: at another site, for its redirects.
            self.requestHeaders.removeHeader(b"daphne-root-path")
            return super().process()

        def handle_exception(self, exception: Exception) -> None:
            # Daphne would begin a second answer. That fails, and with it the loop that cleans up after everybody.
            if self._response_started:
                self.channel.loseConnection()
            else:
                super().handle_exception(exception)

        def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
            super().gotLength(length)
            # The request itself learns its path once its body is there.
            path = bytes(getattr(self.channel, "_path", b"")).partition(b"?")[0]
            self._most_bytes = most_bytes(path.decode("latin-1"))
            if length is not None and length > self._most_bytes:
                self._refuse()

        def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
            self._received += len(data)
            if self._received > self._most_bytes:
                self._refuse()
            if not self._is_refused:
                super().handleContentChunk(data)

        def requestReceived(self, *args: Any) -> None:  # noqa: N802 - Twisted's name
            if not self._is_refused:
                super().requestReceived(*args)

        def _refuse(self) -> None:
            if self._is_refused:
                return
            self._is_refused = True
            self.content.close()
            self.channel.transport.write(
                b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            )
            self.channel.loseConnection()

    protocol.WebRequest = LimitedRequest
    server.create_application = create


def let_daphne_say_why() -> None:
    """Let sockets be closed with the protocol's own codes, if this process is Daphne.

    Its library takes codes from 3000 on alone, so that "come back" (1012, 1013) and "you misuse this" (1008) would be
    an exception in our code, and the socket would stay open.
    """
    protocol: Any = sys.modules.get("daphne.ws_protocol")
    if protocol is None:
        return

    def close(self: Any, code: int | None = None) -> None:
        self.sendCloseFrame(code=code or 1000, isReply=False)

    protocol.WebSocketProtocol.serverClose = close


_MOST_UNREAD: Final = 64
"""Messages of a socket that may wait for the application. No page sends so many at once."""
_PONG_SECONDS: Final = 1.0


def limit_sockets_of_daphne() -> None:
    """Keep no more of what a socket sends than a page would send, if this process is Daphne.

    Daphne's queues have no end. Its library answers every ping, whether the other side reads the answers or not.
    """
    protocol: Any = sys.modules.get("daphne.ws_protocol")
    if protocol is None:
        return
    socket = protocol.WebSocketProtocol
    take, answer = socket.onMessage, socket.onPing

    def take_some(self: Any, payload: bytes, isBinary: bool) -> None:  # noqa: N803 - the library's
        if self.application_queue.qsize() < _MOST_UNREAD:
            take(self, payload, isBinary)
        else:
            self.sendCloseFrame(code=1008, isReply=False)

    def answer_now_and_then(self: Any, payload: bytes) -> None:
        now = time.monotonic()
        if now - getattr(self, "_answered_at", -math.inf) >= _PONG_SECONDS:
            self._answered_at = now
            answer(self, payload)

    socket.onMessage = take_some
    socket.onPing = answer_now_and_then


def silence_daphne() -> None:
    """Let the product's own log be the only one (`config.middleware`), if this process is Daphne.

    Daphne writes whole addresses, with an issuer's codes and the secrets of links, in lines that no reader of JSON
    understands. Twisted puts such a line together for each request, and shows it to nobody.
    """
    server: Any = sys.modules.get("daphne.server")
    if server is None:
        return

    def nothing(*_args: object) -> None:
        return None

    server.Server.log_action = nothing
    server.HTTPFactory.log = nothing


_PHRASES = {400: b"Bad request\n", 413: b"The request body is too large.\n"}


async def _refuse(scope: Scope, send: Send, status: int) -> None:
    """End the connection before any of our code sees it."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 4000 + status})
        return
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    body = _PHRASES.get(status, _PHRASES[400])
    await send({"type": "http.response.body", "body": body})
