"""Small nudges to open pages: "look at this again". Rows are the truth, so a lost one costs nothing."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import threading
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.db import transaction

from workspaces.database import leave_database
from workspaces.process.loop_threads import LoopThread
from workspaces.process.outages import LastingOutage

logger = logging.getLogger(__name__)

_outage = LastingOutage(logger, begins="nudges_lost", ends="nudges_sent_again")
deafness: Final = LastingOutage(logger, begins="nudges_not_received", ends="nudges_received_again")
"""While it lasts, this process may not hear at once what others tell."""

_SEND_TIMEOUT_SECONDS = 2.0


REQUEST_CHANGED: Final = "request.changed"
"""A member asked for something, or a request was decided or withdrawn; also a call that waits for a second person."""


SERVER_CHECKED: Final = "server.checked"
"""A health check that changed no status. It comes again and again, and only pages that show checks ask for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    kind: str
    """What changed: "server.changed", "server.checked", "tools.changed", "bud.changed", "conversation.changed", "draft.changed",
    "folder.changed", "request.changed", "import.changed", "data_copy.changed", "membership.changed"."""
    id: str
    """The id of the row."""
    user_id: str | None = None
    """Only this person is told; None tells everyone in the workspace."""


def workspace_group(workspace_id: UUID | str) -> str:
    """The channel-layer group of everyone who has this workspace open."""
    return f"workspace.{workspace_id}"


def user_group(user_id: UUID | str) -> str:
    """The channel-layer group of everything that one person has open, in whatever workspace."""
    return f"user.{user_id}"


def has_other_processes() -> bool:
    """Whether the channel layer reaches beyond this process."""
    layer = get_channel_layer()
    return layer is not None and not isinstance(layer, InMemoryChannelLayer)


_loops: set[asyncio.AbstractEventLoop] = set()


def serve_from(loop: asyncio.AbstractEventLoop) -> None:
    """Tell which loop serves sockets in this process.

    The in-memory layer's queues belong to that loop: a message put in from another thread is
    seen only when the loop next wakes by itself.
    """
    _loops.add(loop)


def announce(workspace_id: UUID, announcement: Announcement) -> None:
    """Nudge the workspace's open pages, once the transaction has committed.

    What concerns one person goes to their pages alone: a thousand others would each spend time on dropping it.
    """
    message: dict[str, object] = {
        "type": "workspace.changed",
        "workspace_id": str(workspace_id),
        "kind": announcement.kind,
        "id": announcement.id,
    }
    user_id = announcement.user_id
    group = user_group(user_id) if user_id else workspace_group(workspace_id)
    transaction.on_commit(partial(send_to_group, group, message))


def send_to_group(group: str, message: dict[str, object]) -> None:
    """Put a message on the channel layer, from any thread; a failure of the layer is logged.

    Raises:
        RuntimeError: a transaction is open in a thread of a process that serves nobody.
    """
    loop = next((loop for loop in _loops if loop.is_running()), None)
    if loop is not None:
        asyncio.run_coroutine_threadsafe(_send(group, message), loop)
        return
    if isinstance(get_channel_layer(), InMemoryChannelLayer):
        return  # nobody is served in this process, and the layer reaches no other
    sent = _sender().submit(_send(group, message))
    if not _is_in_loop():
        leave_database()
        with contextlib.suppress(concurrent.futures.TimeoutError):  # a process may end right after
            sent.result(_SEND_TIMEOUT_SECONDS + 1)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_lock = threading.Lock()
_thread: LoopThread | None = None


def _sender() -> LoopThread:
    """The loop of a process that serves nobody; it keeps its connection to Redis from one message to the next."""
    global _thread
    with _lock:
        if _thread is None or _thread.pid != os.getpid():
            _thread = LoopThread("announcements")
        return _thread


async def _send(group: str, message: dict[str, object]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        async with asyncio.timeout(_SEND_TIMEOUT_SECONDS):
            await layer.group_send(group, message)
    except Exception as error:  # noqa: BLE001 - whatever a layer raises
        # Whatever is wrong with Redis, the rows are right and pages heal from them.
        _outage.note(error, group=group)
    else:
        _outage.is_over()
