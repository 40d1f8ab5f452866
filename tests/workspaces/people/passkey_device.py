"""A device with passkeys: keys on P-256, without attestation, as WebAuthn has a browser give them in JSON.

Source: https://www.w3.org/TR/webauthn-3/#sctn-authenticator-data
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor

_PRESENT: Final = 0x01
_VERIFIED: Final = 0x04
_HAS_KEY: Final = 0x40


def encoded(raw: bytes) -> str:
    """Bytes as WebAuthn writes them in JSON."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@dataclass
class PasskeyDevice:
    """One passkey, and who may use it."""

    origin: str = "http://localhost"
    """The page that asks."""
    is_unlocked: bool = True
    """Whether its owner gives their finger, face or PIN; otherwise it only knows that somebody is there."""
    id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    owner: str = ""
    _key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def create(self, options: dict[str, Any]) -> str:
        """Make the passkey that a page asks for."""
        asked = options["publicKey"]
        self.owner = asked["user"]["id"]
        point = self._key.public_key().public_numbers()
        public = cbor.encode(
            {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32, "big"), -3: point.y.to_bytes(32, "big")}
        )
        new = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + public
        data = self._data(asked["rp"]["id"], _HAS_KEY) + new
        attestation = cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})
        client_data = self._client_data("webauthn.create", asked["challenge"])
        answer = {"clientDataJSON": encoded(client_data), "attestationObject": encoded(attestation)}
        return self._credential(answer, {"credProps": {"rk": True}})

    def get(self, options: dict[str, Any]) -> str:
        """Prove to a page that it is there."""
        asked = options["publicKey"]
        client_data = self._client_data("webauthn.get", asked["challenge"])
        data = self._data(asked["rpId"], 0)
        signed = data + hashlib.sha256(client_data).digest()
        answer = {
            "clientDataJSON": encoded(client_data),
            "authenticatorData": encoded(data),
            "signature": encoded(self._key.sign(signed, ec.ECDSA(hashes.SHA256()))),
            "userHandle": self.owner,
        }
        return self._credential(answer, {})

    def _credential(self, answer: dict[str, str], extensions: dict[str, Any]) -> str:
        return json.dumps(
            {
                "id": encoded(self.id),
                "rawId": encoded(self.id),
                "type": "public-key",
                "response": answer,
                "clientExtensionResults": extensions,
            }
        )

    def _client_data(self, kind: str, challenge: str) -> bytes:
        return json.dumps(
            {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        ).encode()

    def _data(self, host: str, more: int) -> bytes:
        flags = _PRESENT | (_VERIFIED if self.is_unlocked else 0) | more
        return hashlib.sha256(host.encode()).digest() + bytes([flags]) + bytes(4)
