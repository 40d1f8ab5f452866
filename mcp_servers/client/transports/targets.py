"""Where a server is, and with what it is reached: behind a URL, or a program. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from httpx2 import Auth

    from workspaces.outbound import Endpoint

LONGEST_CONNECT_SECONDS: Final = 60.0
"""As much as a server can be given to open a connection, or a program to start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSpec:
    """A server behind a URL."""

    endpoint: Endpoint = field(repr=False)
    """Its query, and of a hosted server all of it, may be a secret."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """With the credentials; checked by outbound.check_headers(), apart from Authorization which we build."""
    transport: str = "auto"
    """One of `transports`, or the automatic choice."""
    remembered: str | None = None
    """What the automatic choice found to work last time; it is tried first."""
    auth: Auth | None = field(default=None, repr=False, compare=False)
    """Puts a token on each request, where tokens come and go while a connection is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLimits:
    """What one child may use."""

    memory_bytes: int = 1024 * 2**20
    processes: int = 64
    """Processes and threads, besides those the platform's user already has. Not enforced for root by the kernel."""
    open_files: int = 1024
    """What a login shell allows; programs that read hundreds of their own files at once need it."""
    file_bytes: int = 100 * 2**20
    cpu_seconds: int = 3600
    """Over the child's whole life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioSpec:
    """A program of the catalogue with its arguments filled in."""

    argv: tuple[str, ...]
    """The program's absolute path first."""
    home: Path
    """The child's own folder: its HOME and working directory; made when missing."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Declared names only; nothing of the service's own environment is added."""
    limits: ChildLimits = field(default_factory=ChildLimits)

    def names_folder(self) -> bool:
        """Whether an argument, or what stands behind its ``=``, is a folder of this machine."""
        values = (one for arg in self.argv[1:] for one in (arg, arg.partition("=")[2]))
        return any(value.startswith("/") and os.path.isdir(value) for value in values)  # noqa: PTH112  never raises
