"""The stdio transport: one confined child process, read within bounds.

Written because the SDK's own reader has no limit on a line, takes over the service's HOME, PATH and USER, and cannot
keep what the child writes to its error stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import shutil
import sys
import tempfile
import termios
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from mcp_servers.client.transports.messages import (
    LINES_PER_MESSAGE,
    LINES_PER_SECOND,
    read_message,
    write_message,
)
from mcp_servers.client.transports.session_streams import session_streams
from mcp_servers.client.transports.targets import LONGEST_CONNECT_SECONDS
from workspaces.outbound import Pace
from workspaces.process.shutdown import is_shutting_down

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    from mcp_servers.client.transports.targets import StdioSpec

logger = logging.getLogger(__name__)

MAX_LINE_BYTES: Final = 8 * 2**20
"""As much as one message over HTTP; pictures of whole web pages come in one line."""
STDERR_BYTES: Final = 64 * 1024
MAX_STDERR_LINE: Final = 32 * 1024
"""Of which whoever notes the line keeps the beginning. There is more, so that no half of a secret is at its end."""
STDERR_BYTES_PER_SECOND: Final = 2.0 * 2**20
"""Of a child that never stops: it waits, so that others have the loop."""
LINE_TOO_LONG: Final = "line_too_long"
FLOODED: Final = "flooded"
MAX_STRAY_LINES: Final = 10_000
"""Lines that are no protocol, after which the child counts as broken."""
_SHOWN_STRAY_LINES: Final = 20
"""As many of them show what was started instead of a server."""

MAX_SCRATCH_PATH: Final = 50
"""Bytes. Playwright adds some 45 to it, and macOS takes 104 for a socket."""

EXIT_SECONDS: Final = 2.0
"""How long a child may take to end by itself after its input closed."""
HURRIED_EXIT_SECONDS: Final = 0.5
"""The same at the end of our process, as supervisors kill soon. One that is in a call mostly does not look."""

HURRY: Final = b"!"
"""On the lifeline: the keeper waits less for a program to end when it is asked to."""
_KILL_SECONDS: Final = 5.0
_LAST_WORDS_SECONDS: Final = 1.0
_SEARCH_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_KEEPER: Final = str(Path(__file__).with_name("child.py"))


class StderrRing:
    """The end of what a child wrote to its error stream."""

    def __init__(self, size_bytes: int = STDERR_BYTES) -> None:
        self._size = size_bytes
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self.dropped_bytes = 0
        self.stray_lines = 0
        """Lines on standard output that were no protocol."""

    def write(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._held += len(chunk)
        while self._held > self._size:
            first = self._chunks.popleft()
            self._held -= len(first)
            self.dropped_bytes += len(first)

    def text(self) -> str:
        """What is held, with anything unreadable replaced."""
        return (
            b"".join(self._chunks)
            .decode("utf-8", "replace")
            .replace("\0", "\N{REPLACEMENT CHARACTER}")
        )


class StdioTransport:
    """A transport of the SDK's shape: `async with transport as (read, write)`."""

    def __init__(self, spec: StdioSpec, *, on_line: Callable[[str], None] | None = None) -> None:
        self._spec = spec
        self._on_line = on_line
        self._pace = Pace(LINES_PER_SECOND)
        self._is_ending = asyncio.Event()
        self._has_read_all = asyncio.Event()
        self._has_written = self._has_heard = False
        self.stderr = StderrRing()
        self.pid: int | None = None
        """The keeper's process id while the child runs."""
        self.exit_code: int | None = None
        """How the child ended; 128 and the signal's number, if one ended it."""
        self.has_read = False
        """It ended after it had read all that was written to it, as far as the system can tell."""
        self.failure: str | None = None
        """Why reading stopped, if it was not the child's orderly end: "line_too_long" or "flooded"."""
        self._context: contextlib.AbstractAsyncContextManager[_Streams] | None = None

    async def __aenter__(self) -> _Streams:
        self._context = self._open()
        return await self._context.__aenter__()

    async def __aexit__(self, *exc_info: object) -> bool | None:
        assert self._context is not None
        return await self._context.__aexit__(*exc_info)  # type: ignore[arg-type]

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[_Streams, None]:
        process, lifeline, stdin = await self._start()
        self.pid = process.pid
        with session_streams() as streams:
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._read, process, streams.to_session)
                    tasks.start_soon(
                        self._write_stdin, process, streams.from_session, streams.to_session
                    )
                    try:
                        yield streams.read, streams.write
                    finally:
                        # Shielded: whatever cancels the owner, the child has to be ended and collected.
                        with anyio.CancelScope(shield=True):
                            if stdin is not None:
                                self.has_read = self._has_written and not _unread_bytes(stdin)
                                os.close(stdin)
                            await self._stop(process, lifeline)
                        tasks.cancel_scope.cancel()
            finally:
                self.pid, self.exit_code = None, process.returncode

    async def _start(self) -> tuple[asyncio.subprocess.Process, int, int | None]:
        """Give the keeper, its lifeline, and the input of the program; None: it has ended already."""
        spec = self._spec
        spec.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        await asyncio.to_thread(_forget_half_made, spec.home)
        scratch, goes_with_it = _scratch_of(spec.home)
        read_end, write_end = os.pipe()
        try:
            # The keeper sets the limits after its fork; a function between fork and exec in this process, which has
            # threads, could deadlock.
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-I", "-S", _KEEPER, str(read_end), json.dumps(asdict(spec.limits))),
                *(goes_with_it, *spec.argv),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=spec.home,
                env={
                    "PATH": _SEARCH_PATH,
                    "LANG": "C.UTF-8",
                    "HOME": str(spec.home),
                    "TMPDIR": scratch,
                    **spec.env,
                },
                pass_fds=(read_end,),
                start_new_session=True,
            )
            # The loop closes its own once nobody can read any more, before what is unread was counted. On a busy machine
            # that can be before we are here.
            assert process.stdin is not None
            pipe = process.stdin.transport.get_extra_info("pipe")
            stdin = None if pipe.closed else os.dup(pipe.fileno())
        except BaseException:
            os.close(write_end)
            if goes_with_it:
                shutil.rmtree(goes_with_it, ignore_errors=True)
            raise
        finally:
            os.close(read_end)
        return process, write_end, stdin

    async def _read(
        self,
        process: asyncio.subprocess.Process,
        to_session: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        try:
            async with anyio.create_task_group() as readers:
                readers.start_soon(self._read_stderr, process)
                readers.start_soon(self._read_stdout, process, to_session)
        finally:
            # Also when it is cut off: nobody waits for last words that nobody reads.
            self._has_read_all.set()

    async def _read_stdout(
        self,
        process: asyncio.subprocess.Process,
        to_session: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        assert process.stdout is not None
        buffer = bytearray()
        async with to_session:
            while chunk := await process.stdout.read(65536):
                start = len(buffer)
                buffer += chunk
                while (newline := buffer.find(b"\n", start)) >= 0:
                    line = bytes(buffer[:newline])
                    del buffer[: newline + 1]
                    start = 0
                    if len(line) > MAX_LINE_BYTES:
                        self.failure = LINE_TOO_LONG
                        return
                    if line.strip() and not await self._deliver(line, to_session):
                        return
                if len(buffer) > MAX_LINE_BYTES:
                    self.failure = LINE_TOO_LONG
                    return

    async def _deliver(
        self,
        line: bytes,
        to_session: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> bool:
        """Hand one line on; False when reading is over."""
        message = read_message(line)
        if isinstance(message, ValueError):
            # Greetings and debug prints on standard output are common, so they cost nothing but a count.
            self.stderr.stray_lines += 1
            if self.stderr.stray_lines > MAX_STRAY_LINES:
                self.failure = FLOODED
                return False
            if not self._has_heard and self.stderr.stray_lines <= _SHOWN_STRAY_LINES:
                # Before its first message, a child has got nothing of anybody's that it could repeat.
                self.stderr.write(line[-MAX_STDERR_LINE:] + b"\n")
            if self.stderr.stray_lines % 100 == 0:
                await asyncio.sleep(0)  # noise must not keep the loop from the other connections
            return True
        self._has_heard = True
        if pause := self._pace.take(LINES_PER_MESSAGE):
            await asyncio.sleep(pause)
        try:
            await to_session.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True

    async def _write_stdin(
        self,
        process: asyncio.subprocess.Process,
        from_session: MemoryObjectReceiveStream[SessionMessage],
        to_session: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        assert process.stdin is not None
        try:
            async with from_session:
                async for item in from_session:
                    process.stdin.write(write_message(item).encode() + b"\n")
                    if not process.stdin.transport.is_closing():
                        self._has_written = True
                    await process.stdin.drain()
        except (OSError, anyio.ClosedResourceError):
            # The child reads no more: end the read side too, or every waiting call would hang.
            to_session.close()

    async def _read_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        rest = b""
        pace = Pace(STDERR_BYTES_PER_SECOND)
        while chunk := await process.stderr.read(16384):
            self.stderr.write(chunk)
            rest = self._tell_lines(rest + chunk)
            # A child that floods its error stream must not take the loop from the other connections.
            await asyncio.sleep(0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pace.take(len(chunk))):
                    await self._is_ending.wait()  # its last words are not to be lost

    def _tell_lines(self, data: bytes) -> bytes:
        """Tell of the whole lines; gives the beginning of the last one."""
        if self._on_line is None:
            return b""
        *lines, rest = data.split(b"\n")
        for line in lines:
            if line.strip():
                self._on_line(line[:MAX_STDERR_LINE].decode("utf-8", "replace").rstrip())
        return rest[:MAX_STDERR_LINE]

    async def _stop(self, process: asyncio.subprocess.Process, lifeline: int) -> None:
        """Close the input, wait, let the keeper end the program, and collect the keeper in any case."""
        assert process.stdin is not None
        self._is_ending.set()
        process.stdin.close()
        try:
            is_hurried = is_shutting_down()
            if not await _ended(process, HURRIED_EXIT_SECONDS if is_hurried else EXIT_SECONDS):
                if is_hurried:
                    with contextlib.suppress(OSError):  # the keeper has just ended
                        os.write(lifeline, HURRY)
                os.close(lifeline)
                lifeline = -1
                if not await _ended(process, _KILL_SECONDS):
                    logger.warning("the keeper of a stdio server did not end; killing it")
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()
                    await _ended(process, _KILL_SECONDS)
        finally:
            if lifeline >= 0:
                os.close(lifeline)
            # Also when we are cut off: closing the pipes kills a keeper that is still at work, and whatever the program
            # has started would stay. And a loop that closes before its child has ended complains of it.
            await _ended(process, _KILL_SECONDS)
            try:
                # Its last words may still be in the pipes. Whoever got away may hold them open.
                with anyio.move_on_after(_LAST_WORDS_SECONDS):
                    await self._has_read_all.wait()
            finally:
                _close_pipes(process)


@dataclass(slots=True)
class OpenTransport:
    """What a connection may want to know of the transport it runs on."""

    on_error_line: Callable[[str], None]
    """Told of each line that a program writes to its error stream."""
    stderr: StderrRing | None = None
    stdio: StdioTransport | None = None
    ended_first: tuple[Exception, StdioTransport | None] | None = None
    """How a first attempt ended, while or after a second one was made."""


@contextlib.asynccontextmanager
async def open_streams(
    target: StdioSpec, opened: OpenTransport
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open this transport, see `transports.Opener`."""
    transport = StdioTransport(target, on_line=opened.on_error_line)
    # What an attempt before it said stays.
    transport.stderr = opened.stderr or transport.stderr
    opened.stdio, opened.stderr = transport, transport.stderr
    async with transport as streams:
        yield streams


_Streams = tuple[
    "MemoryObjectReceiveStream[SessionMessage | Exception]",
    "MemoryObjectSendStream[SessionMessage]",
]


def _unread_bytes(pipe: int) -> int:
    """How much is written to it and not read; 0 if the system does not tell the writer, as macOS."""
    try:
        size = fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))
    except OSError:
        return 0
    return int.from_bytes(size, sys.byteorder)


def _scratch_of(home: Path) -> tuple[str, str]:
    """A child's folder for temporary files, and what of it goes when the child ends.

    Programs make sockets in it, whose whole path may have a hundred bytes; of a home that lies too deep, it is
    elsewhere, and for this one child.
    """
    inside = home / "tmp"
    if len(os.fsencode(inside.absolute())) <= MAX_SCRATCH_PATH:
        inside.mkdir(mode=0o700, exist_ok=True)
        return str(inside), ""
    elsewhere = tempfile.mkdtemp(prefix="mcp-")
    return elsewhere, elsewhere


def _forget_half_made(home: Path) -> None:
    """Remove what `npx` had not finished when it was ended: it neither uses such a folder nor makes it anew.

    It writes `package.json` last. Another process may be at it now, so a young folder stays.
    """
    for packages in home.glob(".npm/_npx/*/node_modules"):
        if not packages.with_name("package.json").exists():
            with contextlib.suppress(OSError):
                if time.time() - packages.stat().st_mtime > LONGEST_CONNECT_SECONDS:
                    shutil.rmtree(packages.parent)


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    # Not process.wait(), which also waits for the pipes, and a grandchild may hold those.
    deadline = asyncio.get_running_loop().time() + seconds
    while process.returncode is None:
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(0.01)
    return True


def _close_pipes(process: asyncio.subprocess.Process) -> None:
    # A descendant that got away may hold the other ends; nothing public closes ours.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
