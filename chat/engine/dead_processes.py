"""Turns of processes that died on this machine, freed at once instead of after their lease.

On SQLite all processes share one machine and one data folder. Each holds a lock on a file of its own, which the
operating system takes away however the process ends. Who finds the lock free knows that its holder is dead.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import connection

from chat.live.hub import PROCESS_ID
from chat.models import Turn
from workspaces.database import database_now

logger = logging.getLogger(__name__)

_lock = threading.Lock()
_held: tuple[int, IO[bytes]] | None = None
"""Of which process, because a forked child must not take itself for its parent."""


def show_alive() -> None:
    """Hold this process's lock from now on. Before it takes its first lease."""
    global _held
    if connection.vendor != "sqlite" or (_held is not None and _held[0] == os.getpid()):
        return
    with _lock:
        if _held is not None and _held[0] == os.getpid():
            return
        try:
            folder = _folder()
            folder.mkdir(parents=True, exist_ok=True)
            file = (folder / PROCESS_ID).open("wb")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            # Without it others wait for the leases to run out, as they do between machines.
            logger.warning("process_lock_not_held", exc_info=True)
            return
        _held = (os.getpid(), file)


def free_turns_of_the_dead() -> int:
    """End the leases of processes that are dead for certain; how many."""
    if connection.vendor != "sqlite" or not _folder().is_dir():
        return 0
    freed = 0
    for path in _folder().iterdir():
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                freed += _free_turns_of(path.name)
                path.unlink(missing_ok=True)
        except OSError:
            continue  # it lives, or another process looks at the same moment
    return freed


def _free_turns_of(owner: str) -> int:
    now = database_now()
    turns = Turn.objects.across_workspaces().filter(lease_owner=owner, lease_until__gte=now)
    freed = turns.update(lease_until=now - timedelta(seconds=1))
    if freed:
        logger.info("turns_of_dead_process_freed", extra={"turns": freed, "owner": owner})
    return freed


def _folder() -> Path:
    folder: Path = settings.TRELLIS.data_dir / "processes"
    return folder
