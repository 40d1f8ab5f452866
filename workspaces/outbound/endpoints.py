"""URLs and headers that people give us: read strictly, one spelling, one meaning. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import idna
from django.utils.translation import gettext as _

from workspaces.errors import InvalidEndpoint

MAX_URL_LENGTH: Final = 2048
HTTP_SCHEMES: Final = ("http", "https")
WEBSOCKET_SCHEMES: Final = ("ws", "wss")

_URL: Final = re.compile(
    r"(?P<scheme>https?|wss?)://(?P<host>\[[0-9a-f:.]+\]|[^\[\]/?#:@]+)(?::(?P<port>[0-9]{1,5}))?(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?",
    re.IGNORECASE,
)
_URL_CHARACTERS: Final = re.compile(r"(?:%[0-9A-Fa-f]{2}|[A-Za-z0-9\-._~:/?\[\]!$&'()*+,;=@])*")
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}

# Ports of services that speak no HTTP but may understand some of it, besides everything below 1024: the list of the
# Fetch standard ("bad port"), and databases, caches, queues and container engines.
_REFUSED_HIGH_PORTS: Final = frozenset(
    (
        *(
            1719,
            1720,
            1723,
            2049,
            3659,
            4045,
            4190,
            5060,
            5061,
            6000,
            6566,
            *range(6665, 6670),
            6679,
            6697,
            10080,
        ),
        *(
            1433,
            1521,
            2181,
            2375,
            2376,
            2379,
            2380,
            3306,
            5432,
            5433,
            5672,
            6379,
            6380,
            9042,
            9092,
            10250,
            11211,
            27017,
        ),
    )
)

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,8192}")
_RESERVED_HEADERS: Final = frozenset(
    [
        "accept-encoding",
        "accept",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "last-event-id",
        "origin",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A URL that passed the rules; the only form in which one is stored and fetched."""

    scheme: str
    host: str
    """Lower case, ASCII (IDNA); an IPv6 address without brackets."""
    port: int
    target: str
    """Path and query."""

    @property
    def origin(self) -> str:
        """Scheme, host and port; stored credentials belong to exactly one origin."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target}"


def parse_endpoint(text: str, *, schemes: Collection[str] = HTTP_SCHEMES) -> Endpoint:
    """Read a URL strictly: one spelling, one meaning, for the check and for the fetch.

    Args:
        schemes: which ones are wanted here; by default those of plain requests.

    Raises:
        InvalidEndpoint: nothing, another scheme, or a URL with user information, fragment, backslash, blanks or control
            characters, a host that is no name and no canonical address, a refused port, or over 2048 characters.
    """
    if not text:
        raise InvalidEndpoint(_("Enter a URL."))
    if len(text) > MAX_URL_LENGTH:
        raise InvalidEndpoint(
            _("A URL may have at most %(most)s characters.") % {"most": MAX_URL_LENGTH}
        )
    match = _URL.fullmatch(text)
    scheme = match["scheme"].lower() if match is not None else ""
    if match is None or scheme not in schemes:
        wanted = " or ".join(f"{name}://" for name in schemes)
        raise InvalidEndpoint(_("This is not a plain %(wanted)s URL.") % {"wanted": wanted})
    host = _parse_host(match["host"])
    port = int(match["port"]) if match["port"] else _DEFAULT_PORTS[scheme]
    if port not in (80, 443) and (not 1024 <= port <= 65535 or port in _REFUSED_HIGH_PORTS):
        raise InvalidEndpoint(_("Port %(port)s is not allowed.") % {"port": port})
    target = (match["path"] or "/") + (f"?{match['query']}" if match["query"] is not None else "")
    if not _URL_CHARACTERS.fullmatch(target):
        raise InvalidEndpoint(_("The URL has characters that must be percent-encoded."))
    return Endpoint(scheme, host, port, target)


def check_headers(headers: Mapping[str, str]) -> None:
    """Make sure that a tenant's headers can neither break a request apart nor take over the protocol's own.

    Raises:
        InvalidEndpoint: a name that is no token or is reserved, a value with CR, LF, NUL or characters beyond
            Latin-1, the same name twice, or more than 32 headers.
    """
    if len(headers) > 32:
        raise InvalidEndpoint(_("At most 32 headers are allowed."))
    seen: set[str] = set()
    for name, value in headers.items():
        lowered = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise InvalidEndpoint(_("A header's name may hold letters, digits and - only."))
        if lowered in _RESERVED_HEADERS or lowered.startswith(
            ("mcp-", "proxy-", "sec-", "x-forwarded-")
        ):
            raise InvalidEndpoint(_("The header %(name)s is set by the platform.") % {"name": name})
        if lowered in seen:
            raise InvalidEndpoint(_("The header %(name)s is given twice.") % {"name": name})
        seen.add(lowered)
        if not _HEADER_VALUE.fullmatch(value):
            raise InvalidEndpoint(
                _("The value of the header %(name)s has characters that a header cannot carry.")
                % {"name": name}
            )


def _parse_host(text: str) -> str:
    if text.startswith("["):
        try:
            return str(ipaddress.IPv6Address(text[1:-1]))
        except ValueError as error:
            raise InvalidEndpoint(_("The host is not a valid address.")) from error
    try:
        host = text.lower() if text.isascii() else idna.encode(text, uts46=True).decode()
    except (idna.IDNAError, UnicodeError) as error:
        raise InvalidEndpoint(_("The host is not a valid name.")) from error
    labels = host.removesuffix(".").split(".")
    # A last label that is a number makes the whole host an address (WHATWG URL, "ends in a number"); of the many
    # spellings of an IPv4 address (octal, hexadecimal, one number, fewer parts) only the canonical one is taken.
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]):
        try:
            if str(ipaddress.IPv4Address(host)) == host:
                return host
        except ValueError:
            pass
        raise InvalidEndpoint(_("The host is not a valid address."))
    if (
        host.endswith(".")
        or len(host) > 253
        or not all(_LABEL.fullmatch(label) for label in labels)
    ):
        raise InvalidEndpoint(_("The host is not a valid name."))
    if any(label.startswith("xn--") for label in labels):
        try:
            idna.decode(host)
        except (idna.IDNAError, UnicodeError) as error:
            raise InvalidEndpoint(_("The host is not a valid name.")) from error
    return host
