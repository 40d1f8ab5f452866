"""What stands between the wire and the product: proxies, malformed headers, and the Origin of sockets."""

from __future__ import annotations

import asyncio
import json
import re
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


BODY: Final = "trellis.body"
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
        if (body := scope.pop(BODY, None)) is not None:
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


_PHRASES = {
    400: ("bad_request", "Bad request"),
    413: ("too_large", "The request body is too large."),
    414: ("address_too_long", "The address is too long."),
    431: ("header_too_long", "A header is too long."),
    507: ("no_room", "The server's disk has no room for what you sent. Tell whoever runs it."),
}


def refusal(path: str, status: int) -> tuple[bytes, bytes]:
    """Give the content type and the body of an answer that none of our views gives: for programs in their shape."""
    code, detail = _PHRASES.get(status, _PHRASES[400])
    if not path.startswith("/api/"):
        return b"text/plain; charset=utf-8", f"{detail}\n".encode()
    errors = [{"code": code, "detail": detail, "attr": None}]
    kind = "client_error" if status < 500 else "server_error"
    return b"application/json", json.dumps({"type": kind, "errors": errors}).encode()


async def _refuse(scope: Scope, send: Send, status: int) -> None:
    """End the connection before any of our code sees it."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 4000 + status})
        return
    kind, body = refusal(str(scope.get("path", "")), status)
    headers = [
        (b"content-type", kind),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
