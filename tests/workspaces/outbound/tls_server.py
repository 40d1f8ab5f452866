"""A server that speaks TLS with a certificate of an authority of our own."""

from __future__ import annotations

import ssl
from pathlib import Path

from tests.audit.streams.receivers import Authority


def server_context(authority: Authority, folder: Path) -> ssl.SSLContext:
    (folder / "cert.pem").write_text(authority.certificate)
    (folder / "key.pem").write_text(authority.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context
