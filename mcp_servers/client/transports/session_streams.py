"""The two directions between a session and the transport that carries its messages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage


class SessionStreams(NamedTuple):
    """Nothing is kept in between: who sends waits until the other end takes it."""

    read: MemoryObjectReceiveStream[SessionMessage | Exception]
    """What the session reads."""
    write: MemoryObjectSendStream[SessionMessage]
    """Where the session writes."""
    to_session: MemoryObjectSendStream[SessionMessage | Exception]
    from_session: MemoryObjectReceiveStream[SessionMessage]


@contextlib.contextmanager
def session_streams() -> Iterator[SessionStreams]:
    """Open both directions, and close all four ends at the end of the block."""
    to_session, read = anyio.create_memory_object_stream[Any](0)
    write, from_session = anyio.create_memory_object_stream[Any](0)
    streams = SessionStreams(read, write, to_session, from_session)
    try:
        yield streams
    finally:
        for stream in streams:
            stream.close()
