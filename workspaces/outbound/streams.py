"""A connection of the HTTP library on asyncio's own transports.

The library's own goes through anyio, which stops and resumes the transport for each read. Of a model's answer, which
comes in many small pieces, that took a sixth of the CPU.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any, Final, cast

import httpcore2

_MOST_UNREAD: Final = 2**16
"""Bytes. What comes beyond them waits with its sender."""


_LEAST_TLS_SECONDS: Final = 5.0
"""How long the other side has at least to answer when TLS begins; on slow lines half of the time to connect.

What speaks no TLS often waits for more, and says nothing.
"""


def _tls_seconds(to_connect: float | None) -> float:
    if to_connect is None:
        return _LEAST_TLS_SECONDS
    return min(to_connect, max(_LEAST_TLS_SECONDS, to_connect / 2))


class TlsUnanswered(httpcore2.ConnectError):
    """Somebody took the connection, and did not answer when TLS began."""


class LoopStream(httpcore2.AsyncNetworkStream, asyncio.Protocol):
    """One TCP connection, plain or with TLS; used on one loop, by one reader and one writer."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._unread = bytearray()
        self._is_stopped = False
        self._has_ended = False
        self._is_lost = False
        self._failure: Exception | None = None
        self._news: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._is_full = False

    @classmethod
    async def connect(
        cls,
        address: str,
        port: int,
        timeout: float | None,
        local_address: str | None,
        socket_options: Iterable[Any] | None,
    ) -> LoopStream:
        """Connect to an address; a name would be looked up here, unchecked.

        Raises:
            httpcore2.ConnectTimeout: nobody answered in time.
            httpcore2.ConnectError: refused or unreachable.
        """
        local = None if local_address is None else (local_address, 0)
        try:
            async with asyncio.timeout(timeout):
                _, stream = await asyncio.get_running_loop().create_connection(
                    cls, address, port, local_addr=local
                )
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        line = stream.get_extra_info("socket")
        for option in socket_options or ():
            line.setsockopt(*option)
        return stream

    # For the HTTP library

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if not self._unread and not self._has_ended:
            self._news = self._loop.create_future()
            try:
                await self._in_time(self._news, timeout)
            except TimeoutError as error:
                raise httpcore2.ReadTimeout("The server sent nothing in time.") from error
            finally:
                self._news = None
        if self._unread:
            piece = bytes(self._unread[:max_bytes])
            del self._unread[:max_bytes]
            if self._is_stopped and not self._unread:
                self._is_stopped = False
                self._transport.resume_reading()
            return piece
        if self._failure is not None:
            raise httpcore2.ReadError(str(self._failure)) from self._failure
        return b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        if self._transport.is_closing():
            raise httpcore2.WriteError("The server has closed the connection.") from self._failure
        self._transport.write(buffer)
        if self._is_full:
            self._room = self._loop.create_future()
            try:
                await self._in_time(self._room, timeout)
            except TimeoutError as error:
                raise httpcore2.WriteTimeout("The server took nothing in time.") from error
            finally:
                self._room = None
            if self._failure is not None:
                raise httpcore2.WriteError(str(self._failure)) from self._failure

    async def aclose(self) -> None:
        if not self._transport.is_closing():  # closing twice would break its TLS
            self._transport.close()
            await asyncio.sleep(0)  # what was written may still leave
        self._abort()

    def _abort(self) -> None:
        if not self._is_lost:
            self._transport.abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(_tls_seconds(timeout)):
                transport = await self._loop.start_tls(
                    self._transport, self, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError as error:
            self._abort()
            raise TlsUnanswered("The server does not answer encrypted connections.") from error
        except OSError as error:  # those of TLS, too
            self._abort()
            raise httpcore2.ConnectError(str(error)) from error
        except BaseException:
            self._abort()
            raise
        self._transport = cast("asyncio.Transport", transport)
        return self

    def get_extra_info(self, info: str) -> Any:
        names = {"client_addr": "sockname", "server_addr": "peername"}
        if (
            info == "is_readable"
        ):  # of a connection at rest: it has ended, or says what nobody asked for
            return bool(self._unread) or self._has_ended
        return self._transport.get_extra_info(names.get(info, info))

    # For the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if len(self._unread) > _MOST_UNREAD and not self._is_stopped:
            self._is_stopped = True
            self._transport.pause_reading()
        _wake(self._news)

    def eof_received(self) -> bool:
        self._has_ended = True
        _wake(self._news)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended = self._is_lost = True
        self._failure = exc or self._failure
        _wake(self._news)
        _wake(self._room)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        _wake(self._room)

    async def _in_time(self, waited: asyncio.Future[None], timeout: float | None) -> None:
        """Wait without a task or a scope: a timer alone.

        Raises:
            TimeoutError: it did not happen in time.
        """
        if timeout is None:
            await waited
            return
        timer = self._loop.call_later(timeout, _expire, waited)
        try:
            await waited
        finally:
            timer.cancel()


def _wake(waited: asyncio.Future[None] | None) -> None:
    if waited is not None and not waited.done():
        waited.set_result(None)


def _expire(waited: asyncio.Future[None]) -> None:
    if not waited.done():
        waited.set_exception(TimeoutError())
