"""The platform's own servers, from its file, in the memory of each process. The only place that knows their secrets.

The file is looked for as MCP_SERVERS_FILE, else as `mcp-servers.json` in the project's folder, in the data folder, and
in the user's configuration folder (`~/.config/trellis/`); the first that exists is used. It is read again when it has
changed. While it cannot be read, what it said before stays in force, and the fault is told.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from django.conf import settings
from django.utils.crypto import salted_hmac

from mcp_servers.client import transports
from mcp_servers.client.canonical import canonical_json
from mcp_servers.client.errors import InvalidJson
from mcp_servers.models import version_pins
from mcp_servers.registry.files.file_format import (
    MAX_FILE_BYTES,
    Entry,
    MissingVariable,
    ServerList,
    read_server_list,
)
from workspaces import outbound
from workspaces.errors import DomainError, InvalidEndpoint
from workspaces.secret_memory import (
    HeldSecrets,
    holding_secrets,
    is_plain,
    is_secret_key,
    remember_secret,
    secrets_in_url,
)

logger = logging.getLogger(__name__)

FILE_NAME: Final = "mcp-servers.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDefinition:
    """One server of the file, ready to be connected to; or why not."""

    entry: Entry = field(repr=False)
    """With its variables filled in, if there is no problem."""
    digest: str
    """Changes with everything the file says about it; tells nothing about secrets."""
    problem: str = ""
    warning: str = ""
    """What the platform's owner should mend; the server works."""
    secrets: HeldSecrets | None = field(default=None, repr=False, compare=False)
    """Its own: masked for as long as the file says so."""

    @property
    def name(self) -> str:
        """As in the file."""
        return self.entry.name

    @property
    def target_label(self) -> str:
        """Where it is, as anybody may know: the origin, or the program's name. Paths and arguments may be secrets."""
        if self.entry.is_stdio:
            return Path(self.entry.command).name
        try:
            return endpoint_of(self.entry).origin
        except InvalidEndpoint:
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformFileState:
    """What the file says now, as far as it can be read."""

    path: Path | None = None
    definitions: Mapping[str, ServerDefinition] = field(
        default_factory=lambda: MappingProxyType({})
    )
    problems: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Entries that cannot be read, and why."""
    error: str = ""
    """Why the file as a whole cannot be read; then the definitions are those of before."""
    is_read: bool = False
    """False: no file was ever read, or there is none."""


class Registry:
    """The file's state, read again when the file has changed. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = PlatformFileState()
        self._stamp: tuple[object, ...] | None = None
        self._digest = b""

    def state(self) -> PlatformFileState:
        """What the file says; costs one look at its date while it does not change."""
        with self._lock:
            path = find_file()
            stamp = _stamp(path)
            if stamp != self._stamp:
                self._stamp = stamp
                self._state = self._read(path)
            return self._state

    def definition(self, name: str) -> ServerDefinition | None:
        """The server of that name, if the file has it and it is not disabled there."""
        return self.state().definitions.get(name)

    def forget(self) -> None:
        """Read the file again at the next look, whatever its date."""
        with self._lock:
            self._stamp = None

    def _read(self, path: Path | None) -> PlatformFileState:
        if path is None:
            return PlatformFileState()
        try:
            listed = read_server_list(_content(path))
        except OSError as error:
            return self._unreadable(path, error.strerror or type(error).__name__)
        except DomainError as error:
            return self._unreadable(path, error.message)
        return _state_of(path, listed)

    def _unreadable(self, path: Path, reason: str) -> PlatformFileState:
        logger.error("mcp_servers_file_unreadable", extra={"file": path.name, "reason": reason})
        return PlatformFileState(
            path=path,
            definitions=self._state.definitions,
            problems=self._state.problems,
            error=f"{path.name}: {reason}",
            is_read=self._state.is_read,
        )


registry: Final = Registry()


def find_file() -> Path | None:
    """The file in use; one that is named by the setting counts even if it does not exist."""
    named: Path | None = settings.TRELLIS.mcp_servers_file
    if named is not None:
        return named
    return next((path for path in _places() if path.is_file()), None)


def endpoint_of(entry: Entry) -> outbound.Endpoint:
    """The address of a remote server.

    Raises:
        InvalidEndpoint: it is none that may be used.
    """
    scheme = entry.url.partition("://")[0].lower()
    transport = transports.for_address(entry.transport, scheme)
    return outbound.parse_endpoint(entry.url, schemes=transports.schemes_of(transport))


def argv_of(entry: Entry) -> tuple[str, ...]:
    """The program with its arguments, found on the platform's own search path.

    Raises:
        FileNotFoundError: there is no such program.
    """
    command = entry.command
    if "/" not in command:
        found = shutil.which(command)
        if found is None and command in ("python", "python3"):
            found = sys.executable
        if found is None:
            raise FileNotFoundError(command)
        command = found
    elif not Path(command).is_absolute() or not Path(command).exists():
        raise FileNotFoundError(command)
    return (command, *entry.args)


def _places() -> Iterable[Path]:
    yield Path(settings.BASE_DIR) / FILE_NAME
    yield settings.TRELLIS.data_dir / FILE_NAME
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    try:
        yield Path(home).expanduser() / "trellis" / FILE_NAME
    except RuntimeError:
        return  # a user without a home


def _stamp(path: Path | None) -> tuple[object, ...]:
    if path is None:
        return (None,)
    try:
        found = path.stat()
    except OSError as error:
        return (path, error.errno)
    return (path, found.st_mtime_ns, found.st_size, found.st_ino)


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def _state_of(path: Path, listed: ServerList) -> PlatformFileState:
    definitions = {
        entry.name: _definition(entry) for entry in listed.entries if not entry.is_disabled
    }
    for definition in definitions.values():
        if definition.warning:
            logger.warning(
                "mcp_servers_file_entry_unpinned",
                extra={"entry": definition.name, "reason": definition.warning},
            )
    for name, reason in listed.problems.items():
        logger.warning("mcp_servers_file_entry_unreadable", extra={"entry": name, "reason": reason})
    return PlatformFileState(
        path=path,
        definitions=MappingProxyType(definitions),
        problems=MappingProxyType(dict(listed.problems)),
        is_read=True,
    )


def _definition(entry: Entry) -> ServerDefinition:
    if entry.uses_sign_in:
        return ServerDefinition(
            entry=entry, digest="", problem="Only a workspace's own server can have a sign-in."
        )
    try:
        raw = canonical_json(entry.raw())
    except InvalidJson as error:
        return ServerDefinition(entry=entry, digest="", problem=error.message)
    # Keyed, because the file may hold short secrets in the clear, and the digest is stored.
    digest = salted_hmac(
        "mcp_servers.registry.files.platform_file", raw, algorithm="sha256"
    ).hexdigest()
    try:
        filled = entry.expanded(os.environ)
        with holding_secrets() as secrets:
            _remember_secrets(entry, filled)
        if filled.is_stdio:
            argv_of(filled)
        else:
            endpoint_of(filled)
            outbound.check_headers(filled.headers)
    except (MissingVariable, InvalidEndpoint) as error:
        return ServerDefinition(entry=entry, digest=digest, problem=str(error))
    except FileNotFoundError:
        return ServerDefinition(
            entry=entry, digest=digest, problem="Its program is not installed on this machine."
        )
    warning = version_pins.version_problem(filled.command, filled.args) if filled.is_stdio else ""
    return ServerDefinition(entry=filled, digest=digest, warning=warning, secrets=secrets)


def _remember_secrets(entry: Entry, filled: Entry) -> None:
    """Have the file's secrets masked everywhere. What any text may hold is none, unless its name says so."""
    named = {name: os.environ[name] for name in entry.variables() if name in os.environ}
    for name, value in (*filled.headers.items(), *filled.env.items(), *named.items()):
        if is_secret_key(name) or not is_plain(value):
            remember_secret(value, workspace_id=None)
    for value in secrets_in_url(filled.url):
        remember_secret(value, workspace_id=None)
