"""Ed25519 keys that sign statements about the log."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from audit.proof.trellis_verify import canonical, fingerprint_of

_DERIVED = b"trellis audit signing key 1"


class SigningKeyMissing(RuntimeError):
    """The log was signed with a key that is not in the settings, so that no new key can be introduced."""

    def __init__(self, key_id: str) -> None:
        super().__init__(
            f"The audit log is signed with key {key_id}, which is not in TRELLIS_AUDIT_SIGNING_KEYS."
            " Add it after the new key until the change has been signed; no checkpoint is made until then."
        )
        self.key_id = key_id


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key pair; its id in statements is the beginning of its fingerprint."""

    private: Ed25519PrivateKey = field(repr=False)
    public: str
    fingerprint: str

    @property
    def id(self) -> str:
        """The first 16 digits of SHA-256 of the public key."""
        return self.fingerprint[:16]

    @property
    def named(self) -> dict[str, str]:
        """How statements name it."""
        return {"id": self.id, "public": self.public}

    def sign(self, text: str) -> str:
        """The signature, as base64."""
        return base64.b64encode(self.private.sign(text.encode())).decode()


def signing_keys() -> tuple[SigningKey, ...]:
    """The keys of the settings, the one that signs first; without any, one derived from the audit key."""
    seeds = tuple(key.material for key in settings.TRELLIS.audit_signing_keys)
    return _keys(seeds or (_derived(settings.TRELLIS.audit_key_bytes),))


def find_key(key_id: str) -> SigningKey | None:
    """The key with that id; the derived one is found too, as it may be what was used before there was a setting."""
    derived = _keys((_derived(settings.TRELLIS.audit_key_bytes),))
    return next((key for key in (*signing_keys(), *derived) if key.id == key_id), None)


def signed(content: dict[str, Any], key: SigningKey) -> tuple[str, str]:
    """A statement in its canonical form with the key's name in it, and its signature."""
    text = canonical({**content, "key": key.named}).decode()
    return text, key.sign(text)


@lru_cache(maxsize=8)
def _derived(audit_key: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=_DERIVED).derive(audit_key)


@lru_cache(maxsize=8)
def _keys(seeds: tuple[bytes, ...]) -> tuple[SigningKey, ...]:
    keys = []
    for seed in seeds:
        private = Ed25519PrivateKey.from_private_bytes(seed)
        raw = private.public_key().public_bytes_raw()
        keys.append(SigningKey(private, base64.b64encode(raw).decode(), fingerprint_of(raw)))
    return tuple(keys)
