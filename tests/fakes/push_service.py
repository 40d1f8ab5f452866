"""A push service as browsers have them, and a browser that reads what comes through it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.audit.streams.receivers import make_authority
from tests.fakes.mcp_server import Listening
from workspaces.outbound import ssl_context


def unpad(text: str) -> bytes:
    """Read base64url."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def pad(raw: bytes) -> str:
    """Write base64url."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class PushService:
    """Takes messages over TLS; answers with what the test says, by default 201. Our process trusts its certificate."""

    def __init__(self, folder: Path) -> None:
        authority = make_authority()
        files = (folder / "push.pem", folder / "push.key")
        files[0].write_text(authority.certificate)
        files[1].write_text(authority.key)
        ssl_context().load_verify_locations(cadata=authority.ca)
        self.heard: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[int] = []
        routes = [Route("/{path:path}", self._take, methods=["POST"])]
        self._listening = Listening(Starlette(routes=routes), tls=(str(files[0]), str(files[1])))
        self.origin = self._listening.origin

    async def _take(self, request: Request) -> Response:
        self.heard.append((request.url.path, dict(request.headers), await request.body()))
        return Response(status_code=self.answers.pop(0) if self.answers else 201)

    def stop(self) -> None:
        self._listening.stop()


class Browser:
    """One browser: it makes a subscription and decrypts by RFC 8291, with nothing of the product's code."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._private = ec.generate_private_key(ec.SECP256R1())
        self._public = self._private.public_key().public_bytes(
            Encoding.X962, PublicFormat.UncompressedPoint
        )
        self._auth = os.urandom(16)

    @property
    def subscription(self) -> dict[str, str]:
        """What `PushManager.subscribe()` gives."""
        return {
            "endpoint": self.endpoint,
            "p256dh": pad(self._public),
            "auth": pad(self._auth),
        }

    def read(self, body: bytes) -> dict[str, Any]:
        """Decrypt a message. Fails if it is none for this browser."""
        salt, length = body[:16], body[20]
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        shared = self._private.exchange(
            ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        )
        material = _hkdf(self._auth, shared, b"WebPush: info\0" + self._public + sender, 32)
        key = _hkdf(salt, material, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _hkdf(salt, material, b"Content-Encoding: nonce\0", 12)
        padded = AESGCM(key).decrypt(nonce, sealed, None)
        message, mark, _ = padded.rpartition(b"\x02")
        assert mark
        answer: dict[str, Any] = json.loads(message)
        return answer


def claims_of(headers: dict[str, str], *, audience: str) -> tuple[dict[str, Any], str]:
    """Check who sent a message, as RFC 8292 says; gives the claims and the key that the browser has to know."""
    scheme, _, values = headers["authorization"].partition(" ")
    assert scheme == "vapid"
    given = dict(part.strip().split("=", 1) for part in values.split(","))
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unpad(given["k"]))
    claims: dict[str, Any] = jwt.decode(given["t"], key, algorithms=["ES256"], audience=audience)
    return claims, given["k"]


def _hkdf(salt: bytes, material: bytes, info: bytes, length: int) -> bytes:
    extracted = hmac.new(salt, material, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()[:length]
