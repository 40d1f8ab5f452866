"""What is set right in Daphne, where this process is Daphne: limits that it lacks, what it believes, sends and logs.

It offers no way to say so, so its classes are changed before it serves.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import math
import struct
import sys
import tempfile
import time
from collections.abc import Collection
from http import HTTPStatus
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, Final, cast

from config.serving.edge import BODY, MostBytes, Scope, refusal
from workspaces.process.outages import LastingOutage

logger = logging.getLogger(__name__)

_MOST_UNREAD: Final = 64
"""Messages of a socket that may wait for the application. No page sends so many at once."""
FRAMES_PER_SECOND: Final = 400.0
MOST_FRAMES: Final = 2000.0
"""Of a socket, at once. A page sends one for a message, and proxies may break a long message into many."""
_PONG_SECONDS: Final = 1.0
_DROPPED_SECONDS: Final = 5.0
_DROPPED_BYTES: Final = 256 * 1024 * 1024
"""Of a request that was refused: for so long, and so much of it, is read and thrown away."""
_END_SECONDS: Final = 2.0
"""For what is cancelled at the end of the process."""
_outage = LastingOutage(logger, begins="no_room_for_requests", ends="room_for_requests_again")


def limit_bodies_of_daphne(most_bytes: MostBytes) -> None:
    """As `config.serving.edge.BodyLimit` does, but earlier: Daphne keeps a whole request on its disk before it calls anybody.

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
            scope[BODY], connection.content = connection.content, io.BytesIO()
        return create_application(self, connection, scope)

    class LimitedRequest(request):  # type: ignore[misc, valid-type]  # known at run time alone
        _received = 0
        _most_bytes = 0
        _asked_path = ""
        content: Any
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
                self.break_off()
            else:
                super().handle_exception(exception)

        def break_off(self) -> None:
            """End an answer that is not whole, so that whoever reads it sees that."""
            if self.clientproto == b"HTTP/1.0":
                # Such an answer ends with its connection, as whole ones do. One that is reset is an error.
                self.channel.transport.abortConnection()
            else:
                self.channel.loseConnection()

        def handle_reply(self, message: dict[str, Any]) -> None:
            super().handle_reply(message)
            has_end = self.clientproto != b"HTTP/1.0" or self.responseHeaders.hasHeader(
                b"content-length"
            )
            if message["type"] == "http.response.start" and not has_end and self.channel:
                _reset_unless_whole(self.channel.transport)

        def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
            # The request itself learns its path once its body is there.
            path = bytes(getattr(self.channel, "_path", b"")).partition(b"?")[0]
            self._asked_path = path.decode("latin-1")
            self._most_bytes = most_bytes(self._asked_path)
            try:
                super().gotLength(length)
            except OSError as error:
                self.content = io.BytesIO()
                self._refuse_for_room(error)
            if length is not None and length > self._most_bytes:
                self._refuse(413, b"Content Too Large")

        def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
            self._received += len(data)
            if self._received > self._most_bytes:
                self._refuse(413, b"Content Too Large")
            if self._is_refused:
                return
            try:
                super().handleContentChunk(data)
            except OSError as error:
                self._refuse_for_room(error)

        def requestReceived(self, *args: Any) -> None:  # noqa: N802 - Twisted's name
            if self._is_refused:
                return
            try:
                self.content.flush()
            except OSError as error:
                self._refuse_for_room(error)
                return
            if not isinstance(self.content, io.BytesIO):  # it is on the disk
                _outage.is_over()
            super().requestReceived(*args)

        def _refuse_for_room(self, error: OSError) -> None:
            # Twisted would break the connection off, and tell nobody why.
            _outage.note(error, folder=tempfile.tempdir, why=error.strerror)
            self._refuse(507, b"Insufficient Storage")

        def _refuse(self, status: int, reason: bytes) -> None:
            if self._is_refused:
                return
            self._is_refused = True
            with contextlib.suppress(OSError):  # it writes what is left
                self.content.close()
            _end(self.channel, self._asked_path, status, reason)

    def refuse_long_line(self: Any, line: bytes) -> None:
        # Twisted would close the connection without a word, and nobody would know why.
        parts = bytes(line[:2000]).split(b" ", 2)
        is_first = bool(getattr(self, "_HTTPChannel__first_line", 0))
        path = parts[1].decode("latin-1") if is_first and len(parts) > 1 else "/"
        if is_first:
            _end(self, path, 414, b"URI Too Long")
        else:
            _end(self, path, 431, b"Request Header Fields Too Large")

    protocol.WebRequest = LimitedRequest
    server.create_application = create
    channel: Any = sys.modules["twisted.web.http"].HTTPChannel
    channel.lineLengthExceeded = refuse_long_line


def _reset_unless_whole(transport: Any) -> None:
    """Have the system reset a connection whose process is killed, as `break_off` does where it lives.

    Twisted closes it once everything has been handed to the system, which sends the rest. From then on it ends well.
    """
    line = getattr(transport, "socket", None)
    if line is None:
        return  # whoever asked has left
    closes = transport._closeSocket

    def close(orderly: bool) -> None:
        if orderly:
            with contextlib.suppress(OSError):  # the other side may have broken it off
                line.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 0, 0))
        closes(orderly)

    with contextlib.suppress(OSError):
        line.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    transport._closeSocket = close


def _end(channel: Any, path: str, status: int, reason: bytes) -> None:
    """Say in the shape of the product why a request is not read, and close the connection."""
    kind, body = refusal(path, status)
    head = (b"HTTP/1.1 %d %b" % (status, reason), b"Connection: close", b"Content-Type: " + kind)
    length = b"Content-Length: %d" % len(body)
    channel.transport.write(b"\r\n".join([*head, length, b"", body]))
    _drop_the_rest(channel)


def _drop_the_rest(channel: Any) -> None:
    """Close our side at once, and read on for a moment.

    Where a connection is closed with bytes that nobody has read, the network resets it. Whoever still sends would not
    see the answer, and a proxy would take the server for broken.
    """
    from twisted.internet import reactor

    left = _DROPPED_BYTES

    def drop(data: bytes) -> None:
        nonlocal left
        left -= len(data)
        if left < 0:
            channel.loseConnection()

    # What stands in the same piece is neither a body nor a next request.
    channel.dataReceived = channel.rawDataReceived = channel.lineReceived = drop
    channel.transport.loseWriteConnection()
    cast("Any", reactor).callLater(_DROPPED_SECONDS, channel.loseConnection)


def let_daphne_say_why() -> None:
    """Let sockets be closed with the protocol's own codes.

    Its library takes codes from 3000 on alone, so that "come back" (1012, 1013) and "you misuse this" (1008) would be
    an exception in our code, and the socket would stay open.
    """
    protocol: Any = sys.modules.get("daphne.ws_protocol")
    if protocol is None:
        return

    def close(self: Any, code: int | None = None) -> None:
        self.sendCloseFrame(code=code or 1000, isReply=False)

    protocol.WebSocketProtocol.serverClose = close


def name_statuses_of_daphne() -> None:
    """Let its library know each status by name: newer ones, such as 422 and 429, were "Unknown Status" on the wire."""
    http: Any = sys.modules.get("twisted.web.http")
    if http is None:
        return
    for status in HTTPStatus:
        http.RESPONSES.setdefault(status.value, status.phrase.encode())


def limit_sockets_of_daphne(why: str) -> None:
    """Keep no more of what a socket sends than a page would send.

    Daphne's queues have no end. Its library takes empty pieces of a message for ever, and answers every ping, whether
    the other side reads the answers or not. And it takes the limit of what comes in for one of what goes out. A chat
    with long messages is a larger frame.

    Args:
        why: the message for whoever sends too many, before the socket closes.
    """
    protocol: Any = sys.modules.get("daphne.ws_protocol")
    if protocol is None:
        return
    socket = protocol.WebSocketProtocol
    begin, take = socket.onFrameBegin, socket.onMessage
    answer, send = socket.onPing, socket.sendMessage

    def begin_some(self: Any) -> None:
        now = time.monotonic()
        refill = (now - getattr(self, "_begun_at", now)) * FRAMES_PER_SECOND
        left = min(MOST_FRAMES, getattr(self, "_frames_left", MOST_FRAMES) + refill)
        self._begun_at, self._frames_left = now, left - 1
        if left < 1:
            self._fail_connection(1008, "too many frames")
        begin(self)

    def take_some(self: Any, payload: bytes, isBinary: bool) -> None:  # noqa: N803 - the library's
        if self.application_queue.qsize() < _MOST_UNREAD:
            take(self, payload, isBinary)
        elif self.state == self.STATE_OPEN:
            self.sendMessage(why.encode(), False)
            self.sendCloseFrame(code=1008, isReply=False)

    def answer_now_and_then(self: Any, payload: bytes) -> None:
        now = time.monotonic()
        if now - getattr(self, "_answered_at", -math.inf) >= _PONG_SECONDS:
            self._answered_at = now
            answer(self, payload)

    def send_whole(self: Any, payload: bytes, isBinary: bool = False) -> None:  # noqa: N803 - the library's
        most, self.maxMessagePayloadSize = self.maxMessagePayloadSize, 0
        try:
            send(self, payload, isBinary)
        finally:
            self.maxMessagePayloadSize = most

    socket.onFrameBegin = begin_some
    socket.sendMessage = send_whole
    socket.onMessage = take_some
    socket.onPing = answer_now_and_then


def let_daphne_send_at_once() -> None:
    """Hand a frame to the network where it arises, as long as nothing waits before it.

    Twisted would begin to watch the connection, send in the loop's next turn, and stop watching: a seventh of the CPU
    that streaming takes. Its library would describe each frame for a log that nobody reads.
    """
    protocol: Any = sys.modules.get("daphne.ws_protocol")
    if protocol is None:
        return
    socket = protocol.WebSocketProtocol
    send_later = socket.sendData

    def send(self: Any, data: bytes, sync: bool = False, chopsize: int | None = None) -> None:
        line = self.transport
        is_usual = self.state == socket.STATE_OPEN and not (sync or chopsize or self.send_queue)
        if not is_usual or line.TLS or not line.connected or line.disconnecting:
            send_later(self, data, sync, chopsize)
            return
        if not (line.dataBuffer or line._tempDataLen):
            sent = line.writeSomeData(data)
            # A connection that is lost is found out by the reactor, as always.
            data = data[sent:] if isinstance(sent, int) else data
        if data:
            line.write(data)

    socket.sendData = send


def end_all_of_daphne() -> None:
    """Cancel at the end of the process what still serves a page.

    Daphne stumbles over a connection that nothing serves any more, and then cancels nothing that came after it. It
    would wait without end for what cannot be cancelled.
    """
    server: Any = sys.modules.get("daphne.server")
    if server is None:
        return
    from twisted.internet.defer import Deferred

    def end_all(self: Any) -> Any:
        running = []
        for protocol, details in self.connections.items():
            application = details.get("application_instance")
            if application is None or application.done():
                continue
            running.append(application)
            application.cancel()
            if getattr(protocol, "_response_started", False):
                protocol.break_off()
        return Deferred.fromFuture(asyncio.ensure_future(_wait_for(running)))

    server.Server.kill_all_applications = end_all


_ports: list[Any] = []
"""Where this process takes connections."""


def keep_ports_of_daphne() -> None:
    """Know where Daphne listens, so that it can stop to (`stop_listening`)."""
    server: Any = sys.modules.get("daphne.server")
    if server is None:
        return
    succeed = server.Server.listen_success

    def keep(self: Any, port: Any) -> None:
        _ports.append(port)
        succeed(self, port)

    server.Server.listen_success = keep


async def stop_listening() -> None:
    """Take no further connection: whoever tries is told at once, and a proxy asks another process."""
    if not _ports:
        return
    from twisted.internet.defer import maybeDeferred

    loop = asyncio.get_running_loop()
    while _ports:
        await maybeDeferred(_ports.pop().stopListening).asFuture(loop)


async def _wait_for(running: Collection[asyncio.Future[Any]]) -> None:
    if running:
        await asyncio.wait(running, timeout=_END_SECONDS)


def silence_daphne() -> None:
    """Let the product's own log be the only one (`config.serving.middleware`).

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
