"""Web Push: a message that the push service of a browser carries and only that browser can read.

The message is encrypted for the browser as RFC 8291 says (one record of RFC 8188), and the request is signed with a key
of this installation as RFC 8292 says (VAPID), so that a push service takes messages for a device from us alone. It goes
through the egress client, which no library for this does: `pywebpush` sends by itself.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import httpx2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings

from workspaces.delivery import webhooks
from workspaces.outbound import Endpoint, parse_endpoint

MOST_BYTES: Final = 3_000
"""Of a message, before it is encrypted; every push service carries 4096 in all."""
PADDED_TO: Final = 512
"""Messages are filled up to a multiple of this, so that a size tells little."""
_RECORD_BYTES: Final = 4096
_TOKEN_SECONDS: Final = 12 * 3600
_CURVE: Final = ec.SECP256R1()
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


class InvalidSubscription(ValueError):
    """What a browser should have given is not there, or not as the standards say."""


@dataclass(frozen=True, slots=True)
class VapidKey:
    """A key pair of this installation; browsers tie a subscription to its public part."""

    id: str
    """The first 16 digits of SHA-256 of the public part: another key under the same name in the settings is another key."""
    private: ec.EllipticCurvePrivateKey = field(repr=False)
    public: str
    """As browsers take it: the uncompressed point, base64url."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a browser gave: where its push service takes messages, and how to encrypt them."""

    endpoint: Endpoint
    p256dh: bytes
    """The browser's public key, an uncompressed point."""
    auth: bytes = field(repr=False)
    """Its secret of 16 bytes."""


def vapid_keys() -> tuple[VapidKey, ...]:
    """All keys that messages can be signed with; the last is derived from the audit key. New subscriptions use the first."""
    named = (key.material for key in settings.TRELLIS.push_keys)
    return _keys((*named, settings.TRELLIS.audit_key_bytes))


def find_vapid_key(key_id: str) -> VapidKey | None:
    """The key with that id, if the settings still have it."""
    return next((key for key in vapid_keys() if key.id == key_id), None)


@lru_cache(maxsize=8)
def _keys(seeds: tuple[bytes, ...]) -> tuple[VapidKey, ...]:
    return tuple(map(_key, seeds))


def _key(seed: bytes) -> VapidKey:
    # 48 bytes, so that the remainder favours no number.
    wide = HKDF(SHA256(), length=48, salt=None, info=b"trellis web push key 1").derive(seed)
    private = ec.derive_private_key(int.from_bytes(wide) % (_ORDER - 1) + 1, _CURVE)
    point = _point(private.public_key())
    return VapidKey(hashlib.sha256(point).hexdigest()[:16], private, encode(point))


def read_subscription(endpoint: str, p256dh: str, auth: str) -> Subscription:
    """Read what a browser gave.

    Raises:
        InvalidEndpoint: the address is no plain https:// URL.
        InvalidSubscription: a key is not one.
    """
    address = parse_endpoint(endpoint, schemes=("https",))
    try:
        public, secret = _decode(p256dh), _decode(auth)
        ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, public)
    except ValueError as error:
        raise InvalidSubscription("The browser's key cannot be read.") from error
    if len(public) != 65 or len(secret) != 16:
        raise InvalidSubscription("The browser's key has the wrong length.")
    return Subscription(address, public, secret)


def encrypt(subscription: Subscription, message: bytes) -> bytes:
    """Encrypt a message for one browser, filled up to a size that tells little of it.

    Raises:
        ValueError: it is longer than a push service carries.
    """
    if len(message) > MOST_BYTES:
        raise ValueError("The message is too long.")
    fill = -(len(message) + 1) % PADDED_TO
    once = ec.generate_private_key(_CURVE)
    return seal_record(
        subscription, message + b"\x02" + bytes(fill), private=once, salt=os.urandom(16)
    )


def seal_record(
    subscription: Subscription,
    padded: bytes,
    *,
    private: ec.EllipticCurvePrivateKey,
    salt: bytes,
) -> bytes:
    """Encrypt one record with its head.

    Args:
        padded: the message, its end mark and what fills it up.
        private: a key pair that is used once.
        salt: 16 random bytes.
    """
    browser = ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, subscription.p256dh)
    ours = _point(private.public_key())
    shared = private.exchange(ec.ECDH(), browser)
    info = b"WebPush: info\0" + subscription.p256dh + ours
    material = _derive(shared, subscription.auth, info, 32)
    key = _derive(material, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(material, salt, b"Content-Encoding: nonce\0", 12)
    head = salt + _RECORD_BYTES.to_bytes(4) + bytes([len(ours)]) + ours
    return head + AESGCM(key).encrypt(nonce, padded, None)


def authorization(endpoint: Endpoint, key: VapidKey) -> str:
    """The header that tells a push service who sends: for its origin alone, and for half a day."""
    import jwt  # not in processes that send nothing, such as the scheduler

    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    port = "" if endpoint.port == 443 else f":{endpoint.port}"
    claims = {
        "aud": f"https://{host}{port}",
        "exp": int(time.time()) + _TOKEN_SECONDS,
        "sub": _contact(),
    }
    token = jwt.encode(claims, key.private, algorithm="ES256")
    return f"vapid t={token}, k={key.public}"


async def post_push(
    client: httpx2.AsyncClient,
    subscription: Subscription,
    payload: Mapping[str, object],
    *,
    key: VapidKey,
    topic: str,
    ttl_seconds: int,
) -> None:
    """Hand one message to a browser's push service.

    Args:
        topic: of those with the same one that wait for a device, the last alone is delivered. Up to 32 characters of base64url.
        ttl_seconds: how long the service keeps it for a device that is off.

    Raises:
        NotTaken: the service did not take it; with status 404 or 410 the subscription has ended.
    """
    body = encrypt(subscription, json.dumps(payload, separators=(",", ":")).encode())
    headers = {
        "authorization": authorization(subscription.endpoint, key),
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        "ttl": str(ttl_seconds),
        "topic": topic,
        "urgency": "high",
    }
    await webhooks.post(client, str(subscription.endpoint), body, headers)


def encode(raw: bytes) -> str:
    """Base64url without padding, as all of Web Push writes it."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("no base64url") from error


def _derive(material: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length=length, salt=salt, info=info).derive(material)


def _point(public: ec.EllipticCurvePublicKey) -> bytes:
    return public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _contact() -> str:
    """Whom a push service may ask: our public address, or the sender of our mails where that is not encrypted."""
    origin = settings.TRELLIS.public_origins[0]
    if urlsplit(origin).scheme == "https":
        return str(origin)
    return f"mailto:{settings.DEFAULT_FROM_EMAIL.rpartition('<')[2].rstrip('>')}"
