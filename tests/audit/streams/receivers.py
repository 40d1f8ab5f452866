"""Sinks as they are outside: a program for webhooks, an OTLP collector, a syslog receiver with TLS."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import os
import select
import socket
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from asgiref.sync import sync_to_async
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.mcp_server import Listening
from tests.patience import PATIENCE


class HttpReceiver:
    """Keeps what is posted; answers as the test says, by default 200, or not before it is let go."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.let_go = threading.Event()
        if not hangs:
            self.let_go.set()
        self.heard: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[Response] = []
        self._listening = Listening(Starlette(routes=[Route("/", self._take, methods=["POST"])]))
        self.url = f"{self._listening.origin}/"

    async def _take(self, request: Request) -> Response:
        self.heard.append((dict(request.headers), await request.body()))
        if not self.let_go.is_set():
            await sync_to_async(self.let_go.wait, thread_sensitive=False)(PATIENCE)
        return self.answers.pop(0) if self.answers else Response(status_code=200)

    def stop(self) -> None:
        self.let_go.set()
        self._listening.stop()


@dataclass(frozen=True)
class Authority:
    """A certificate authority of our own, and a certificate of it for 127.0.0.1."""

    ca: str
    certificate: str
    key: str


def make_authority(host: str = "127.0.0.1") -> Authority:
    now = datetime.datetime.now(datetime.UTC)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test CA")])

    def build(name: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(ca_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    ca_id = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    ca = (
        build(ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=True,
                crl_sign=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .add_extension(ca_id, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    leaf = (
        build(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]), key.public_key())
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]),
            critical=False,
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_id), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return Authority(
        ca=ca.public_bytes(pem).decode(),
        certificate=leaf.public_bytes(pem).decode(),
        key=key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode(),
    )


_GOODBYE: Final = 19
"""Bytes of a record of TLS 1.3 with a close_notify: two of the alert, its type, and the tag."""


class SyslogReceiver:
    """Reads octet-counted frames over TLS, as RFC 6587 says; a frame that is not whole is a fault."""

    def __init__(
        self, authority: Authority, folder: Path, *, asks_for_client: bool = False
    ) -> None:
        (folder / "cert.pem").write_text(authority.certificate)
        (folder / "key.pem").write_text(authority.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        if asks_for_client:
            context.load_verify_locations(cadata=authority.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.target = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.messages: list[str] = []
        self.clients: list[object] = []
        self.drops = 0
        """How many of the next connections are cut off without being read."""
        self.stalls = False
        """Whether connections are taken and never read."""
        self.is_late = False
        """Whether it looks at who the client is only once the client has said goodbye."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def give_no_tickets(self) -> None:
        """Have no client know when it was let in."""
        self._context.num_tickets = 0

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), self._shaken(plain) as one:
                if self.drops:
                    self.drops -= 1
                    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    one.recv(1)
                    continue
                if self.stalls:
                    self._ended.wait(PATIENCE)
                    continue
                self.clients.append(one.getpeercert())
                whole = b""
                while piece := one.recv(65536):
                    whole += piece
                self._read(whole)
                with contextlib.suppress(OSError):
                    one.unwrap()

    def _shaken(self, plain: socket.socket) -> ssl.SSLSocket:
        one = self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        if self.is_late:
            one.setblocking(False)
            with contextlib.suppress(ssl.SSLWantReadError):
                select.select([one], [], [], PATIENCE)
                one.do_handshake()
            self._await_goodbye(socket.socket(fileno=os.dup(one.fileno())))
            one.setblocking(True)
        try:
            one.do_handshake()
        except OSError:
            one.close()
            raise
        return one

    @staticmethod
    def _await_goodbye(line: socket.socket) -> None:
        """Wait until the last of the TLS records that lie here unread is as short as a goodbye is."""
        with line:
            while True:
                select.select([line], [], [], PATIENCE)
                unread, start, size = line.recv(1_000_000, socket.MSG_PEEK), 0, 0
                while len(head := unread[start : start + 5]) == 5:
                    size = int.from_bytes(head[3:])
                    start += 5 + size
                has_ended = size == _GOODBYE and start == len(unread)
                least = 1 if has_ended else len(unread) + 1
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
                if has_ended:
                    return

    def _read(self, whole: bytes) -> None:
        while whole:
            length, _, rest = whole.partition(b" ")
            assert len(rest) >= int(length), "a frame is cut"
            self.messages.append(rest[: int(length)].decode())
            whole = rest[int(length) :]

    def stop(self) -> None:
        self._ended.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)
