"""Find where the arguments of a call can carry data: to the hosts that they name, or to the server itself. Pure.

A destination is a host name or `server:<id>`. What cannot be read as an address counts as sent to the server.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

_LABEL: Final = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_NAME: Final = rf"{_LABEL}(?:\.{_LABEL})*\.?"
# As lenient clients read it: of http and its like the slashes may be fewer.
# Schemes are short; one of any length would be looked for anew from each word on.
_URL: Final = re.compile(
    r"(?:\b(?:https?|wss?|ftp):/*|(?:\b[a-z][a-z0-9+.-]{0,40}:)?//)[^\s\"'<>`]+"
)
_SCHEME: Final = re.compile(r"(?:https?|wss?|ftp):/*|(?:[a-z][a-z0-9+.-]{0,40}:)?//")
_SECRET_BREAKS: Final = re.compile(r"[\t\r\n]")
# One word with a path, a port or an account, or with three labels: what a tool may well complete to an address.
_BARE: Final = re.compile(
    rf"(?:[^\s/@]+@)?(?P<host>{_LABEL}(?:\.{_LABEL})*\.[^\W\d_]{{2,63}}\.?)(?P<rest>[/?#:].*)?",
    re.DOTALL,
)
_IPV4: Final = re.compile(r"(?P<host>\d{1,3}(?:\.\d{1,3}){3})(?P<rest>[/?#:].*)?", re.DOTALL)
_WORDS: Final = re.compile(rf"(?<![\w.-]){_NAME}(?![\w-])")
_MOST_DEPTH: Final = 50


def destinations_of(
    server_id: UUID, server_name: str, arguments: Mapping[str, object]
) -> dict[str, str]:
    """Where a call can carry what is in its arguments: each destination with its name for people."""
    found: dict[str, str] = {}
    has_address = False
    for text in _texts(arguments):
        whole, hosts = _hosts_of(text)
        has_address = has_address or whole
        found.update(dict.fromkeys(hosts, ""))
    named = {host: host for host in found}
    return named if has_address else {server_key(server_id): server_name, **named}


def server_key(server_id: UUID) -> str:
    """How a server is written among destinations."""
    return f"server:{server_id}"


def names_host(text: str, host: str) -> bool:
    """Whether a person's text names exactly this host; a part of a longer name does not count."""
    return host in {_host(word) for word in _WORDS.findall(_plain(text))} or any(
        host in _hosts_of(word)[1] for word in text.split()
    )


def names_server(text: str, name: str) -> bool:
    """Whether a person's text has a server's name in it, as whole words."""
    wanted = _plain(name).strip()
    if not wanted:
        return False
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", _plain(text)) is not None


def _hosts_of(text: str) -> tuple[bool, set[str]]:
    """Whether a text as a whole is an address, and the hosts in it."""
    is_ambiguous = "\\" in text
    text = _plain(text).strip()
    if " " not in text and _SECRET_BREAKS.search(text):
        # Browsers leave such characters out of an address.
        is_ambiguous, text = True, _SECRET_BREAKS.sub("", text)
    whole = _URL.fullmatch(text) is not None
    hosts = {host for one in _URL.findall(text) if (host := _host_of_url(one))}
    if whole and hosts and is_ambiguous:
        hosts.add(text)  # clients read it in different ways, so it is a destination of its own
    bare = _BARE.fullmatch(text) or _IPV4.fullmatch(text)
    if bare is not None and not whole:
        host = _host(bare["host"])
        if bare["rest"] or "@" in text or host.count(".") > 1:
            return True, {host}
    return whole and bool(hosts), hosts


def _host_of_url(url: str) -> str:
    authority = re.split(r"[/?#]", _SCHEME.sub("", url, count=1), maxsplit=1)[0]
    try:
        return _host(urlsplit(f"//{authority}").hostname or "")
    except ValueError:
        return authority


def _host(name: str) -> str:
    return name.rstrip(".")


def _plain(text: str) -> str:
    """As the clients of tools read it: full-width forms are plain ones, and a backslash is a slash."""
    return unicodedata.normalize("NFKC", text).replace("\u3002", ".").replace("\\", "/").lower()


def _texts(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _MOST_DEPTH and isinstance(value, Mapping):
        for key, part in value.items():
            yield from _texts(key, depth + 1)
            yield from _texts(part, depth + 1)
    elif depth < _MOST_DEPTH and isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part, depth + 1)
