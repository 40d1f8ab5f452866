"""How messages reach a server and come back: each transport is an entry here and one module beside it.

An app may add one of its own with `register()`. What opens a transport is imported when it is first used, since the
SDK takes a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from workspaces.outbound import HTTP_SCHEMES, WEBSOCKET_SCHEMES
from workspaces.words.texts import gettext, gettext_lazy

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mcp_servers.client.transports.stdio import OpenTransport
    from workspaces.words.texts import Text

Opener: TypeAlias = "Callable[[Any, OpenTransport], AbstractAsyncContextManager[tuple[Any, Any]]]"
"""Given the target, opens the pair of streams that the SDK's session accepts, for the length of a block.

Raises:
    MCPError, httpx2.TransportError, OSError: it could not be opened; see connect_failure().
"""

AUTO: Final = "auto"
"""Instead of a transport: the first one that works is used, and remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """One transport: what people, files and rows call it, what it takes, and how it is opened."""

    name: str
    """In rows, over REST and in the audit log."""
    label: Text
    load: Callable[[], Opener]
    about: Text = ""
    """Which servers use it, for people who choose among several."""
    schemes: tuple[str, ...] = ()
    """Of the URLs that it takes; none: the server is a program."""
    keywords: tuple[str, ...] = ()
    """As `type` in a list of servers, the one that exports use first. Without any, nobody can choose it."""
    is_automatic: bool = False
    """The automatic choice tries it, in the order of registration."""
    opens_with_get: bool = False
    """A server greets with an endless stream: it is asked with GET, and kept alive by pings while a call is silent."""
    mirrors_arguments: bool = False
    """On the newest revision some arguments go into headers as well, which takes the tools' schemas."""


_transports: dict[str, Transport] = {}


def register(transport: Transport) -> str:
    """Make a transport known; its name."""
    _transports[transport.name] = transport
    return transport.name


def transport_named(name: str) -> Transport:
    """One transport.

    Raises:
        KeyError: there is none of this name.
    """
    return _transports[name]


def label_of(name: str) -> str:
    """What people read; of a transport that is no longer there, its name."""
    if name == AUTO:
        return gettext("Automatic")
    found = _transports.get(name)
    return str(found.label) if found is not None else name


def automatic() -> list[str]:
    """What the automatic choice tries, in this order."""
    return [one.name for one in _transports.values() if one.is_automatic]


def opened_with_get() -> list[str]:
    """Those whose servers greet with an endless stream."""
    return [one.name for one in _transports.values() if one.opens_with_get]


def choices() -> list[tuple[str, str]]:
    """What rows may hold, with labels."""
    far = [one for one in _chosen() if one.schemes]
    near = [one for one in _chosen() if not one.schemes]
    return [(AUTO, label_of(AUTO)), *((one.name, str(one.label)) for one in (*far, *near))]


def remote_choices() -> list[tuple[str, str]]:
    """What people choose from for a server with a URL, each with the servers that it is for."""
    found = [(AUTO, gettext("Automatic: Trellis finds out"))]
    for one in _chosen():
        if one.schemes:
            words = {"label": one.label, "about": one.about}
            label = gettext("%(label)s: %(about)s") % words if one.about else str(one.label)
            found.append((one.name, label))
    return found


def schemes_of(name: str) -> tuple[str, ...]:
    """Which kinds of URL a transport takes; the automatic choice takes all, and the kind decides it."""
    if name != AUTO:
        return transport_named(name).schemes
    return tuple(dict.fromkeys(scheme for one in _chosen() for scheme in one.schemes))


def for_address(name: str, scheme: str) -> str:
    """The chosen transport, unless only one takes addresses of this kind."""
    takers = [one.name for one in _chosen() if scheme in one.schemes]
    return takers[0] if len(takers) == 1 else name


def by_keyword(keyword: str) -> str | None:
    """The name that a list of servers means; None: nothing that is known."""
    if keyword in ("", AUTO, "remote"):
        return AUTO
    return next((one.name for one in _chosen() if keyword in one.keywords), None)


def keyword_of(name: str) -> str:
    """How a list of servers calls a transport."""
    found = _transports.get(name)
    return found.keywords[0] if found is not None and found.keywords else AUTO


def keywords() -> list[str]:
    """How a list of servers calls each transport."""
    return [one.keywords[0] for one in _chosen()]


def address_help() -> str:
    """Which address leads to which transport, for people."""
    labels: dict[str, list[str]] = {}
    for one in _chosen():
        if one.schemes:
            labels.setdefault(one.schemes[-1], []).append(str(one.label))
    texts = []
    for scheme, names in labels.items():
        words = {"scheme": scheme, "transports": gettext(" or ").join(names)}
        text = gettext("An address with %(scheme)s:// is reached over %(transports)s.")
        texts.append(text % words)
    return " ".join(texts)


def automatic_help() -> str:
    """What the automatic choice does, for people."""
    tried = gettext(", then ").join(map(label_of, automatic()))
    return gettext("Automatic tries %(tried)s, and remembers what works.") % {"tried": tried}


def _chosen() -> Iterator[Transport]:
    return (one for one in _transports.values() if one.keywords)


def _load_streamable_http() -> Opener:
    from mcp_servers.client.transports.streamable_http import open_streams

    return open_streams


def _load_sse() -> Opener:
    from mcp_servers.client.transports.sse import open_streams

    return open_streams


def _load_websocket() -> Opener:
    from mcp_servers.client.transports.websocket import open_streams

    return open_streams


def _load_stdio() -> Opener:
    from mcp_servers.client.transports.stdio import open_streams

    return open_streams


STREAMABLE_HTTP: Final = register(
    Transport(
        name="streamable_http",
        label="Streamable HTTP",
        about=gettext_lazy("most servers"),
        load=_load_streamable_http,
        schemes=HTTP_SCHEMES,
        keywords=("http", "streamable-http", "streamable_http", "streamablehttp"),
        is_automatic=True,
        mirrors_arguments=True,
    )
)
SSE: Final = register(
    Transport(
        name="sse",
        label="HTTP with SSE",
        about=gettext_lazy("older servers"),
        load=_load_sse,
        schemes=HTTP_SCHEMES,
        keywords=("sse",),
        is_automatic=True,
        opens_with_get=True,
    )
)
WEBSOCKET: Final = register(
    Transport(
        name="websocket",
        label="WebSocket",
        about=gettext_lazy("servers whose address begins with wss://"),
        load=_load_websocket,
        schemes=WEBSOCKET_SCHEMES,
        keywords=("ws", "websocket"),
    )
)
STDIO: Final = register(
    Transport(
        name="stdio", label=gettext_lazy("Program"), load=_load_stdio, keywords=("stdio", "local")
    )
)
