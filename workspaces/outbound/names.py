"""Looking up names of hosts, each in a thread of its own.

The system's resolver cannot be called off, and takes half a minute for a name that nobody answers for. On the threads
that an event loop shares out, a few such names would keep all other work waiting, and a process from ending.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import socket
import threading
from typing import Any, Final

MOST_AT_ONCE: Final = 100
"""Names that are being looked up by one process. Beyond that, lookups wait until one has ended, or for their time."""
_LOOK_SECONDS: Final = 0.05

Found = concurrent.futures.Future[list[Any]]


class Lookups:
    """Those of one process. A name that several ask for at one moment is looked up once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._running: dict[tuple[str, int], Found] = {}

    async def addresses_of(self, host: str, port: int) -> list[Any]:
        """What `socket.getaddrinfo` finds, for as long as the caller waits for it.

        Raises:
            OSError: there is no such name.
            UnicodeError: it is no name.
        """
        while (found := self._join(host, port)) is None:  # noqa: ASYNC110 - threads give places back
            await asyncio.sleep(_LOOK_SECONDS)
        # Whoever leaves does not take the answer from others.
        return await asyncio.shield(asyncio.wrap_future(found))

    def _join(self, host: str, port: int) -> Found | None:
        """The lookup of this name, begun if need be; None: too many run."""
        with self._lock:
            if self._pid != os.getpid():  # the threads stayed behind
                self._pid = os.getpid()
                self._running = {}
            if (running := self._running.get((host, port))) is not None:
                return running
            if len(self._running) >= MOST_AT_ONCE:
                return None
            found: Found = concurrent.futures.Future()
            self._running[host, port] = found
        look = threading.Thread(
            target=self._look, args=(host, port, found), name="lookup", daemon=True
        )
        try:
            look.start()
        except RuntimeError as error:  # the process has no threads left
            self._end(host, port, found)
            raise OSError("no thread for a lookup") from error
        return found

    def _look(self, host: str, port: int, found: Found) -> None:
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except Exception as error:  # noqa: BLE001 - for whoever asked
            self._end(host, port, found)
            found.set_exception(error)
        else:
            self._end(host, port, found)
            found.set_result(answers)

    def _end(self, host: str, port: int, found: Found) -> None:
        with self._lock:
            if self._running.get((host, port)) is found:
                del self._running[host, port]


lookups: Final = Lookups()
