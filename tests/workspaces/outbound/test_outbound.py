"""The one way out: which URLs, addresses and headers are taken, and that slow names keep nobody waiting."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from asyncio.selector_events import BaseSelectorEventLoop
from collections import Counter
from typing import Any

import httpx2
import pytest

from tests.fakes.mcp_server import Receive, Scope, Send, reply
from tests.patience import PATIENCE
from tests.workspaces.outbound.networks import LOOPBACK
from workspaces import outbound
from workspaces.errors import InvalidEndpoint
from workspaces.outbound import Bounds, is_allowed_address, names, parse_endpoint
from workspaces.outbound.egress import EgressTransport

REFUSED_ADDRESSES = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.254",
    "127.0.0.1",
    "127.1.2.3",
    "127.255.255.255",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.170",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.255",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::2",
    "::7f00:1",
    "::10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:192.168.1.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "64:ff9b:1::10.0.0.1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:10::1",
    "2001:20::1",
    "2001:2::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::",
    "2002:c0a8:101::",
    "2002:a9fe:a9fe::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "8000::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]

ALLOWED_ADDRESSES = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "2606:4700:4700::1111",
    "2a00:1450:4001:80b::200e",
    "64:ff9b::808:808",
    "2002:808:808::",
]


@pytest.mark.parametrize("text", REFUSED_ADDRESSES)
def test_an_address_that_is_not_global_is_refused(text: str) -> None:
    """SEC-28: mapped, compatible, 6to4, NAT64, Teredo, multicast, shared, link-local, metadata and private."""
    assert not is_allowed_address(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ALLOWED_ADDRESSES)
def test_a_global_address_is_taken(text: str) -> None:
    """SEC-28: also where it is wrapped."""
    assert is_allowed_address(ipaddress.ip_address(text))
    assert not is_allowed_address(ipaddress.ip_address(text), only_networks=True)


def test_the_table_is_long_enough() -> None:
    """SEC-28 asks for at least 60 addresses."""
    assert len(REFUSED_ADDRESSES) >= 60


def test_the_owner_may_open_a_network() -> None:
    """SEC-28: explicitly, for the unwrapped address, and for nothing else."""
    networks = (ipaddress.ip_network("10.1.0.0/16"),)
    assert is_allowed_address(ipaddress.ip_address("10.1.2.3"), networks=networks)
    assert is_allowed_address(ipaddress.ip_address("::ffff:10.1.2.3"), networks=networks)
    assert is_allowed_address(
        ipaddress.ip_address("10.1.2.3"), networks=networks, only_networks=True
    )
    assert not is_allowed_address(ipaddress.ip_address("10.2.2.3"), networks=networks)


class Packets:
    """Every address that a socket was to be opened to."""

    def __init__(self) -> None:
        self.addresses: list[str] = []


@pytest.fixture
def packets(monkeypatch: pytest.MonkeyPatch) -> Packets:
    """Lets no packet out, and notes whom it was for."""
    seen = Packets()

    async def sock_connect(loop: Any, sock: socket.socket, address: tuple[Any, ...]) -> None:
        seen.addresses.append(address[0])
        raise OSError("no network in this test")

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_connect", sock_connect)
    return seen


def answer_with(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Have every name resolve to these addresses; gives the list of names asked for."""
    asked: list[str] = []

    def getaddrinfo(host: Any, port: Any, **kwargs: Any) -> list[Any]:
        asked.append(str(host))
        return [
            (
                socket.AF_INET6 if ":" in text else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (text, port),
            )
            for text in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.parametrize("text", REFUSED_ADDRESSES)
async def test_no_packet_leaves_for_a_refused_address(
    text: str, packets: Packets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-28: through the real client, as a literal and as a DNS answer."""
    answer_with(monkeypatch, text)
    host = f"[{text}]" if ":" in text else text
    async with outbound.client(networks=()) as client:
        for url in (
            f"https://{host}/",
            f"http://{host}/",
            "https://example.org/",
            "http://example.org/",
        ):
            # A literal with a zone is not even a URL.
            with pytest.raises(
                (httpx2.ConnectError, httpx2.UnsupportedProtocol, httpx2.InvalidURL)
            ):
                await client.get(url)
    assert packets.addresses == []


async def test_every_answer_is_checked(packets: Packets, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-29: of a public and a private answer in one reply, only the public one is connected to."""
    answer_with(monkeypatch, "127.0.0.1", "93.184.216.34", "::1")
    async with outbound.client(networks=()) as client:
        for _ in range(500):
            with pytest.raises(httpx2.ConnectError):
                await client.get("https://example.org/")
    assert set(packets.addresses) == {"93.184.216.34"}


async def test_a_name_is_resolved_once_for_check_and_use(
    packets: Packets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-29: a name that alternates gains nothing, because the checked address is the one connected to."""
    turns = 0

    def getaddrinfo(host: Any, port: Any, **kwargs: Any) -> list[Any]:
        nonlocal turns
        turns += 1
        address = "93.184.216.34" if turns % 2 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    async with outbound.client(networks=()) as client:
        for _ in range(500):
            with pytest.raises(httpx2.ConnectError):
                await client.get("https://example.org/")
    assert turns == 500
    assert set(packets.addresses) == {"93.184.216.34"}


async def test_plain_http_stays_in_the_owners_networks(
    packets: Packets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design, 7: http:// only where the owner allows it."""
    answer_with(monkeypatch, "93.184.216.34")
    async with outbound.client(networks=LOOPBACK) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get("http://example.org/")
    assert packets.addresses == []


REFUSED_URLS = [
    *(
        "",
        "example.org",
        "//example.org/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://example.org/",
    ),
    *(
        "javascript:alert(1)",
        "data:text/plain,x",
        "ws://example.org/",
        "https:example.org",
        "https:/example.org",
    ),
    *(
        "https:///example.org",
        "https://",
        "https://user@example.org/",
        "https://user:pw@example.org/",
    ),
    *(
        "https://example.org@evil.example/",
        "https://evil.example\\@example.org/",
        "https://example.org\\evil/",
    ),
    *(
        "https://example.org/\\evil",
        "https://exa mple.org/",
        "https://example.org/a b",
        " https://example.org/",
    ),
    *(
        "https://example.org/ ",
        "https://example.org/\t",
        "https://exam\tple.org/",
        "https://example.org/\n",
    ),
    *("https://example.org/\r\nX: y", "https://example.org/\x00", "https://example.org/#fragment"),
    *("https://example.org/%", "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/"),
    *(
        "https://127.1/",
        "https://127.0.1/",
        "https://0x7f.0.0.1/",
        "https://1.2.3.4.5/",
        "https://256.1.1.1/",
    ),
    *(
        "https://01.2.3.4/",
        "https://[::1",
        "https://[::1]x/",
        "https://[fe80::1%25eth0]/",
        "https://[1.2.3.4]/",
    ),
    *("https://[::g]/", "https://example..org/", "https://.example.org/", "https://-example.org/"),
    *("https://example-.org/", "https://example.org./", "https://ex%61mple.org/", "https://xn--a/"),
    *(
        "https://example.org:0/",
        "https://example.org:22/",
        "https://example.org:25/",
        "https://example.org:65536/",
    ),
    *(
        "https://example.org:6379/",
        "https://example.org:5432/",
        "https://example.org:99999/",
        "https://example.org:+80/",
    ),
    *(
        "https://example.org:80:80/",
        "https://" + "a" * 64 + ".org/",
        "https://example.org/" + "a" * 2048,
    ),
    *(
        "https://exa\u2044mple.org/",
        "https://example.org/\u00e9",
        "https://\u3002/",
        "https://example.org/<script>",
    ),
]


@pytest.mark.parametrize("url", REFUSED_URLS)
async def test_a_url_with_two_readings_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-31: refused by the parser, and by the client before any name is looked up."""
    asked = answer_with(monkeypatch, "93.184.216.34")
    with pytest.raises(InvalidEndpoint):
        parse_endpoint(url)
    assert asked == []


def test_the_list_of_urls_is_long_enough() -> None:
    """SEC-31 asks for at least 40 URLs."""
    assert len(REFUSED_URLS) >= 40


@pytest.mark.parametrize(
    ("url", "origin", "text"),
    [
        ("https://Example.ORG", "https://example.org:443", "https://example.org/"),
        (
            "HTTPS://example.org:443/mcp?a=b&c=%20",
            "https://example.org:443",
            "https://example.org/mcp?a=b&c=%20",
        ),
        ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000", "http://127.0.0.1:8000/mcp"),
        (
            "https://[2606:4700::1111]/",
            "https://[2606:4700::1111]:443",
            "https://[2606:4700::1111]/",
        ),
        (
            "https://bücher.example/",
            "https://xn--bcher-kva.example:443",
            "https://xn--bcher-kva.example/",
        ),
    ],
)
def test_a_plain_url_has_one_form(url: str, origin: str, text: str) -> None:
    """SEC-31: the stored form is the one that is checked and fetched."""
    endpoint = parse_endpoint(url)
    assert (endpoint.origin, str(endpoint)) == (origin, text)
    assert parse_endpoint(str(endpoint)) == endpoint


@pytest.mark.parametrize("text", ["${SECRET_KEY}", "$HOME", "{{user.token}}", "{0.__class__}"])
def test_tenants_text_is_not_expanded(text: str) -> None:
    """SEC-35: a placeholder in a URL is refused or kept as it is."""
    with contextlib.suppress(InvalidEndpoint):
        assert text in str(parse_endpoint(f"https://example.org/{text}"))
    outbound.check_headers({"X-Key": text})


@pytest.mark.parametrize(
    "headers",
    [
        {"Bad Name": "x"},
        {"X\r\nY": "x"},
        {"X": "a\r\nHost: evil"},
        {"X": "a\nb"},
        {"X": "a\x00b"},
        {"X": "☃"},
        {"Host": "x"},
        {"content-length": "1"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "close"},
        {"Mcp-Session-Id": "x"},
        {"MCP-Protocol-Version": "x"},
        {"Cookie": "a=b"},
        {"X-Forwarded-For": "1.2.3.4"},
        {"X-Key": "a", "x-key": "b"},
        {"": "x"},
        {f"X-{number}": "x" for number in range(40)},
    ],
)
def test_a_header_cannot_break_a_request(headers: dict[str, str]) -> None:
    """SEC-36: no splitting, no reserved name, no doubles."""
    with pytest.raises(InvalidEndpoint):
        outbound.check_headers(headers)


@pytest.mark.parametrize(
    ("urls", "error"),
    [
        (["http://127.0.0.1:9999/", "https://no-such-name.invalid/"], httpx2.ConnectError),
        (
            ["http://10.0.0.1/", "http://93.184.216.34/", "https://169.254.169.254:8443/"],
            outbound.NetworkRefused,
        ),
    ],
    ids=["where nothing answers", "in networks that are not allowed"],
)
async def test_hosts_of_one_kind_look_alike(
    urls: list[str], error: type[httpx2.ConnectError]
) -> None:
    """SEC-34: the text names no address, and nothing of what answers inside a network that is not allowed."""
    texts = set()
    async with outbound.client() as client:
        for url in urls:
            with pytest.raises(httpx2.ConnectError) as caught:
                await client.get(url)
            assert type(caught.value) is error
            texts.add(str(caught.value))
    assert len(texts) == 1


async def test_what_stays_in_the_process_skips_the_rules() -> None:
    """A mounted transport serves its prefix alone."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, 200, b'{"ok": true}')

    async with outbound.client(
        mounts={"http://demo-model": httpx2.ASGITransport(app=app)}
    ) as client:
        assert (await client.get("http://demo-model/v1")).json() == {"ok": True}


def test_the_environments_proxy_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tenants' requests do not go where a variable says."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    client = outbound.client()
    assert client._mounts == {}


def test_the_library_still_takes_our_backend() -> None:
    """Contract: the private attribute that our address check hangs on exists."""
    transport = EgressTransport(bounds=Bounds(), networks=())
    for inner in transport._inner.values():
        assert isinstance(inner._pool._network_backend, outbound.GuardedBackend)


SLOW = 30
"""Names that nobody answers for, more than an event loop has threads for."""


async def test_names_that_nobody_answers_for_keep_nobody_else_waiting(
    packets: Packets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-682: other names are looked up meanwhile, and the threads that all other work shares stay free."""
    is_over = threading.Event()
    asked: Counter[str] = Counter()

    def getaddrinfo(host: str, port: int, **kwargs: Any) -> list[Any]:
        asked[host] += 1
        if host != "example.org":
            is_over.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    bounds = Bounds(connect_seconds=PATIENCE)
    async with outbound.client(networks=(), bounds=bounds) as client:
        waiting = [
            # Twice each, as by two people.
            asyncio.create_task(client.get(f"https://{number % SLOW}.example.net/"))
            for number in range(2 * SLOW)
        ]
        async with asyncio.timeout(PATIENCE):
            while len(asked) < SLOW:
                await asyncio.sleep(0.01)
        async with asyncio.timeout(5):
            assert await asyncio.to_thread(int, "7") == 7
            with pytest.raises(httpx2.ConnectError):
                await client.get("https://example.org/")
        assert packets.addresses == ["93.184.216.34"]
        waiting[0].cancel()
        is_over.set()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
    # One of two that asked for the same name has left; the other one got its answer.
    assert isinstance(ended[0], asyncio.CancelledError)
    assert {type(one) for one in ended[1:]} == {httpx2.ConnectError}
    assert len(packets.addresses) == 2 * SLOW
    assert set(asked.values()) == {1}


async def test_lookups_of_a_process_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-682: beyond so many at once, the next one waits for its place or for its time."""
    is_over = threading.Event()

    def getaddrinfo(host: str, port: int, **kwargs: Any) -> list[Any]:
        is_over.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(names, "MOST_AT_ONCE", 3)
    lookups = names.Lookups()
    waiting = [asyncio.create_task(lookups.addresses_of(f"{n}.example", 443)) for n in range(3)]
    await asyncio.sleep(0.05)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await lookups.addresses_of("another.example", 443)
    is_over.set()
    assert await asyncio.gather(*waiting) == [[], [], []]
    assert await lookups.addresses_of("another.example", 443) == []


async def test_a_client_checks_each_url_anew() -> None:
    """REL-2906: the URL that a client asks again is not read again, and one that differs in a character is."""
    transport = EgressTransport(bounds=Bounds(), networks=())
    with pytest.raises(InvalidEndpoint):
        transport._scheme_of("")
    good = "https://example.org/mcp"
    assert [transport._scheme_of(url) for url in (good, good, "http://example.org/")] == [
        "https",
        "https",
        "http",
    ]
    for bad in ("https://example.org:22/mcp", "ftp://example.org/", f"{good}\\"):
        assert transport._scheme_of(good) == "https"
        with pytest.raises(InvalidEndpoint):
            transport._scheme_of(bad)
        with pytest.raises(InvalidEndpoint):
            transport._scheme_of(bad)
    await transport.aclose()
