"""A sink that speaks syslog: RFC 5424 messages, octet-counted (RFC 6587, 3.4.1), over TLS (RFC 5425).

The protocol knows no answer. A batch counts as taken when the connection it was written to was closed in good order
with everything acknowledged; what a receiver read and lost before storing it is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import re
import ssl
import sys
import termios
from collections.abc import Sequence
from datetime import UTC
from typing import Final

from audit.streams.events import StreamedEntry
from audit.streams.sinks import SinkReceipt
from workspaces import outbound
from workspaces.delivery.webhooks import CONNECT_SECONDS, DeliveryRefused
from workspaces.words.formats import whole

_FACILITY: Final = 13  # log audit
_WARNING, _NOTICE = 4, 5
_ACKNOWLEDGE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.02
_ENTERPRISE: Final = "32473"
"""The number that RFC 5612 keeps for those who have none of their own."""
_NO_GOODBYE: Final = "It did not end the connection in time."
_SURELY_TAKEN: Final = 8192
"""Bytes of a message that every receiver should take. Source: RFC 5425, 4.3.1."""
_LATE_DATA: Final = "APPLICATION_DATA_AFTER_CLOSE_NOTIFY"
"""It had something to say, which nobody waits for."""
_NOT_PRINTABLE: Final = re.compile(r"[^\x21-\x7e]")


class _ConnectionEnded(DeliveryRefused):
    def __init__(self) -> None:
        super().__init__("It ended the connection.")


class SyslogSink:
    """Sends each batch over a connection of its own, whose orderly end is the yes."""

    def __init__(self, *, host: str, port: int, context: ssl.SSLContext, hostname: str) -> None:
        self._host = host
        self._port = port
        self._context = context
        self._hostname = hostname

    async def send(self, events: Sequence[StreamedEntry]) -> SinkReceipt:
        messages = [message_of(event, hostname=self._hostname) for event in events]
        frames = b"".join(map(framed, messages))
        try:
            _reader, writer = await outbound.connect_tls(
                self._host,
                self._port,
                context=self._context,
                networks=outbound.allowed_networks(),
                connect_seconds=CONNECT_SECONDS,
            )
        except ssl.SSLCertVerificationError as error:
            raise DeliveryRefused(
                "Its certificate is not trusted, or is another host's."
            ) from error
        except ssl.SSLError as error:
            raise DeliveryRefused("A TLS connection could not be made.") from error
        except TimeoutError as error:
            raise DeliveryRefused("There was no answer in time.") from error
        except PermissionError as error:
            raise DeliveryRefused(outbound.NETWORK_REFUSED) from error
        except OSError as error:
            raise DeliveryRefused("It could not be reached.") from error
        try:
            await _hand_over(writer, frames)
        except _ConnectionEnded as error:
            longest = max(map(len, messages))
            if longest <= _SURELY_TAKEN:
                raise
            raise DeliveryRefused(
                f"{error} The longest entry has {whole(longest)} bytes: see whether it takes messages of that size."
            ) from error
        finally:
            with contextlib.suppress(Exception):
                writer.transport.abort()
            await asyncio.sleep(0)
        return SinkReceipt()

    async def aclose(self) -> None:
        """Nothing stays open."""


def message_of(event: StreamedEntry, *, hostname: str) -> bytes:
    """One RFC 5424 message. All of it is printable ASCII, so no value can end it or begin another (SEC-106)."""
    severity = _WARNING if event.is_warning else _NOTICE
    moment = event.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    header = (
        f"<{_FACILITY * 8 + severity}>1 {moment} {_word(hostname, 255)} trellis - "
        f"{_word(event.action, 32)}"
    )
    data = (
        f'[audit@{_ENTERPRISE} uid="{event.uid}" chain="{event.chain_id}" seq="{event.seq}"'
        f' hash="{_word(event.hash, 64)}"]'
    )
    return f"{header} {data} {event.as_text()}".encode("ascii")


def framed(message: bytes) -> bytes:
    """A message with its length before it; what is in it does not matter then."""
    return b"%d %s" % (len(message), message)


def _word(text: str, most: int) -> str:
    return _NOT_PRINTABLE.sub("_", text)[:most] or "-"


async def _hand_over(writer: asyncio.StreamWriter, frames: bytes) -> None:
    """Write it, wait until the other machine has it, and end the connection in good order.

    Raises:
        DeliveryRefused: the other side ended it, does not read, or refuses our certificate, which TLS 1.3 tells only here.
    """
    try:
        writer.write(frames)
        await writer.drain()
        await _until_acknowledged(writer)
    except (OSError, ValueError) as error:  # a line that is gone has no number any more
        raise _ConnectionEnded from error
    tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
    try:
        writer.close()
        await writer.wait_closed()
        _expect_no_refusal(tls)
    except TimeoutError as error:
        # Its machine has acknowledged everything. One that let us in only did not say goodbye.
        if not _has_let_us_in(tls):
            raise DeliveryRefused(_NO_GOODBYE) from error
    except ssl.SSLError as error:
        if error.reason != _LATE_DATA:
            raise _ConnectionEnded from error
    except OSError as error:
        raise _ConnectionEnded from error


def _expect_no_refusal(tls: ssl.SSLObject) -> None:
    """Raise SSLError where what came instead of a goodbye was a refusal. OpenSSL takes the one for the other.

    Only once: a connection that was refused is broken, so a second goodbye fails.
    Source: OpenSSL, ssl3_shutdown() and ssl3_read_bytes(): a fatal alert counts as close_notify in a shutdown.
    """
    with contextlib.suppress(ssl.SSLWantReadError):  # it ended the connection without either
        tls.unwrap()


def _has_let_us_in(tls: ssl.SSLObject) -> bool:
    """Whether the other side is known to have looked at who we are. In TLS 1.3 only its tickets say so."""
    session = tls.session
    return tls.version() != "TLSv1.3" or (session is not None and session.has_ticket)


async def _until_acknowledged(writer: asyncio.StreamWriter) -> None:
    """Wait until the other machine has everything, seen twice. Source: tcp(7), SIOCOUTQ.

    Raises:
        DeliveryRefused: it has ended the connection, or does not read.
    """
    line = writer.get_extra_info("socket")
    if line is None:  # so Python tells from 3.13 on that the connection is gone
        raise _ConnectionEnded
    seen = 0
    for _ in range(round(_ACKNOWLEDGE_SECONDS / _LOOK_SECONDS)):
        raw = fcntl.ioctl(line.fileno(), termios.TIOCOUTQ, b"\0" * 4)
        waiting = int.from_bytes(raw, sys.byteorder) + writer.transport.get_write_buffer_size()
        seen = seen + 1 if waiting == 0 else 0
        if seen == 2:
            return
        await asyncio.sleep(_LOOK_SECONDS)
    raise DeliveryRefused("It does not read what it is sent.")
