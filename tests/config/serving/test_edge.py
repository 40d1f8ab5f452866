"""The doors that every connection passes before any of our code sees it."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from config.serving.edge import CleanHeaders, OriginGuard, TrustedProxies

ORIGIN = "https://chat.example.org"


class Inner:
    """An application that remembers the scope it was built with."""

    def __init__(self) -> None:
        self.scope: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope = scope


async def connect(app: Any, **scope: Any) -> list[Any]:
    """Make one connection and give what was sent back."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing should be read")

    await app({"path": "/ws/w/a/", **scope}, receive, send)
    return sent


def headers(**values: str) -> list[tuple[bytes, bytes]]:
    return [
        (name.replace("_", "-").encode(), value.encode("latin1")) for name, value in values.items()
    ]


@pytest.mark.parametrize("hosts", [["chat.example.org"], ["*"]])
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        None,
        "",
        "https://chat.example.org:8443",
        "http://chat.example.org",
        "https://chat.example.org.evil.example",
        "https://evilchat.example.org",
        "https://sub.chat.example.org",
        "https://chat.example.org@evil.example",
        "https://chat.example.org/path",
        "wss://chat.example.org",
        "file://",
        "*",
        "https://[::1",
    ],
)
async def test_a_socket_from_elsewhere_never_reaches_the_consumer(
    origin: str | None, hosts: list[str]
) -> None:
    """SEC-15: scheme, host and port are compared, also when every host is allowed."""
    inner = Inner()
    given = headers(host="chat.example.org") + (
        headers(origin=origin) if origin is not None else []
    )
    sent = await connect(
        OriginGuard(inner, origins=[ORIGIN], hosts=hosts), type="websocket", headers=given
    )
    assert inner.scope is None
    assert [message["type"] for message in sent] == ["websocket.close"]


async def test_two_origins_are_refused() -> None:
    """SEC-15."""
    inner = Inner()
    given = headers(host="chat.example.org", origin=ORIGIN) + headers(origin=ORIGIN)
    await connect(
        OriginGuard(inner, origins=[ORIGIN], hosts=["*"]), type="websocket", headers=given
    )
    assert inner.scope is None


@pytest.mark.parametrize("origin", [ORIGIN, "https://Chat.Example.org", f"{ORIGIN}:443"])
async def test_our_own_page_may_open_a_socket(origin: str) -> None:
    """SEC-15."""
    inner = Inner()
    guard = OriginGuard(inner, origins=[ORIGIN], hosts=["chat.example.org"])
    given = headers(host="chat.example.org", origin=origin)
    assert await connect(guard, type="websocket", headers=given) == []
    assert inner.scope is not None


async def test_a_socket_for_a_foreign_host_is_refused() -> None:
    """SEC-16."""
    inner = Inner()
    guard = OriginGuard(inner, origins=[ORIGIN], hosts=["chat.example.org"])
    await connect(guard, type="websocket", headers=headers(host="evil.example", origin=ORIGIN))
    assert inner.scope is None


@pytest.mark.parametrize(
    "given",
    [
        headers(host="a") + headers(host="b"),
        headers(host="a", x_name="one\x0btwo"),
        headers(host="a", x_name="one\x85two"),
        headers(host="a", x_name="one\r\ntwo"),
        headers(host="a", x_name="one\x00two"),
    ],
)
async def test_ambiguous_headers_are_refused(given: Any) -> None:
    """SEC-16, SEC-26: what two servers would read in two ways is 400."""
    inner = Inner()
    sent = await connect(CleanHeaders(inner), type="http", headers=given)
    assert inner.scope is None
    assert sent[0]["status"] == 400


async def test_an_absolute_form_target_is_refused() -> None:
    """SEC-16."""
    inner = Inner()
    sent = await connect(
        CleanHeaders(inner), type="http", path="http://evil.example/", headers=headers(host="a")
    )
    assert inner.scope is None
    assert sent[0]["status"] == 400


async def seen_behind(peer: str, **given: str) -> Any:
    inner = Inner()
    app = TrustedProxies(inner, networks=[ip_network("10.0.0.0/8")])
    await connect(
        app, type="http", scheme="http", client=[peer, 1], headers=headers(host="a", **given)
    )
    return inner.scope


async def test_forwarding_headers_from_outside_mean_nothing() -> None:
    """SEC-26: and no later code can see them."""
    scope = await seen_behind(
        "203.0.113.9",
        x_forwarded_for="198.51.100.1",
        x_forwarded_proto="https",
        x_real_ip="1.2.3.4",
    )
    assert scope["client"][0] == "203.0.113.9"
    assert scope["scheme"] == "http"
    assert [key for key, _ in scope["headers"]] == [b"host"]


async def test_a_configured_proxy_is_believed() -> None:
    """SEC-26: the last address that is no proxy of ours is the client."""
    scope = await seen_behind(
        "10.0.0.1",
        x_forwarded_for="198.51.100.66, 198.51.100.1, 10.0.0.7",
        x_forwarded_proto="https",
    )
    assert scope["client"][0] == "198.51.100.1"
    assert scope["scheme"] == "https"


@pytest.mark.parametrize("value", ["nonsense", "", "198.51.100.1, nonsense", "nonsense, 10.0.0.7"])
async def test_a_proxy_that_says_nonsense_changes_nothing_dangerous(value: str) -> None:
    """SEC-26: an address that does not parse is never taken."""
    scope = await seen_behind("10.0.0.1", x_forwarded_for=value)
    assert scope["client"][0] in {"10.0.0.1", "10.0.0.7"}
