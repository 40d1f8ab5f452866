"""Web Push as the standards say it."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings as django_settings
from pytest_django import Settings

from config.env import EncryptionKey
from tests.fakes.push_service import Browser, claims_of, unpad
from tests.isolation.world import BROWSER_KEY
from workspaces.delivery.web_push import (
    MOST_BYTES,
    PADDED_TO,
    InvalidSubscription,
    authorization,
    encrypt,
    find_vapid_key,
    read_subscription,
    seal_record,
    vapid_keys,
)
from workspaces.errors import InvalidEndpoint

ENDPOINT = "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV"


def test_a_message_is_encrypted_as_the_standard_shows() -> None:
    """REL-612: byte by byte the example of RFC 8291, section 5."""
    subscription = read_subscription(ENDPOINT, BROWSER_KEY, "BTBZMqHH6r4Tts7J_aSIgg")
    number = int.from_bytes(unpad("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
    body = seal_record(
        subscription,
        b"When I grow up, I want to be a watermelon\x02",
        private=ec.derive_private_key(number, ec.SECP256R1()),
        salt=unpad("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    assert body == unpad(
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


def test_sizes_tell_little_and_have_a_limit() -> None:
    """SEC-406: short messages have one size; each is encrypted with a key of its own."""
    browser = Browser(ENDPOINT)
    subscription = read_subscription(**browser.subscription)
    bodies = [encrypt(subscription, b'{"a":' + b"1" * length + b"}") for length in (1, 400)]
    assert {len(body) for body in bodies} == {16 + 4 + 1 + 65 + PADDED_TO + 16}
    assert bodies[0][21:86] != bodies[1][21:86]
    assert browser.read(bodies[0]) == {"a": 1}
    with pytest.raises(ValueError, match="too long"):
        encrypt(subscription, b"x" * (MOST_BYTES + 1))


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("endpoint", "http://push.example.net/a", InvalidEndpoint),
        ("endpoint", "https://me@push.example.net/a", InvalidEndpoint),
        ("p256dh", "A" * 87, InvalidSubscription),
        ("p256dh", "not base64!", InvalidSubscription),
        ("auth", "AAAA", InvalidSubscription),
    ],
)
def test_what_is_no_subscription_is_refused(field: str, value: str, error: type[Exception]) -> None:
    """SEC-406: an address that is not encrypted, a point that is not on the curve, a secret of another length."""
    with pytest.raises(error):
        read_subscription(**{**Browser(ENDPOINT).subscription, field: value})


def test_requests_are_signed_for_one_push_service(settings: Settings) -> None:
    """REL-612: with the key that the device knows, by RFC 8292; changing the first key leaves old devices theirs."""
    made = [EncryptionKey("p1", bytes([number]) * 32) for number in range(3)]

    def use(*keys: EncryptionKey) -> None:
        settings.TRELLIS = django_settings.TRELLIS.model_copy(update={"push_keys": keys})

    use(made[0])
    before = vapid_keys()[0]
    use(made[1], made[0])
    assert vapid_keys()[0].id != before.id
    found = find_vapid_key(before.id)
    assert found is not None
    assert found.public == before.public
    endpoint = read_subscription(**Browser(ENDPOINT).subscription).endpoint
    claims, public = claims_of(
        {"authorization": authorization(endpoint, before)}, audience="https://push.example.net"
    )
    assert public == before.public
    assert claims["sub"].startswith("mailto:")
    use(made[2])
    assert find_vapid_key(before.id) is None, "another key of the same name"
    use()
    assert len(vapid_keys()) == 1, "one derived from the audit key"


def test_a_key_is_a_whole_point_and_shows_no_secret() -> None:
    """REL-612, SEC-406: browsers take an uncompressed point."""
    key = vapid_keys()[0]
    raw = unpad(key.public)
    assert (len(raw), raw[0]) == (65, 4)
    assert "private" not in repr(key)
    subscription = read_subscription(**Browser(ENDPOINT).subscription)
    assert base64.b64encode(subscription.auth).decode() not in repr(subscription)
    assert str(subscription.auth) not in repr(subscription)
