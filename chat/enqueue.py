"""Queueing tasks from the middle of a change: never waits for a broker, and gives up where it does not answer."""

from __future__ import annotations

import logging
import sys
import threading
from contextvars import copy_context
from functools import partial
from typing import Final

from django.conf import settings

logger = logging.getLogger(__name__)

_MOST_WAITING: Final = 8
"""How many tasks of one kind may wait for the broker at a time; more of them are given up."""
_lock = threading.Lock()
_waiting: dict[str, int] = {}


def enqueue(task: str, *args: str, expires: int) -> None:
    """Have a worker run a task soon, if the broker takes it; returns at once.

    For tasks that something else makes up for when they are lost.

    Args:
        task: its name.
        expires: after how many seconds nobody needs it any more.
    """
    if "celery" not in sys.modules:
        return  # a command in a terminal, which queues no tasks
    from celery import current_app

    if current_app.conf.broker_url != settings.CELERY_BROKER_URL:
        return
    with _lock:
        if _waiting.get(task, 0) >= _MOST_WAITING:
            return
        _waiting[task] = _waiting.get(task, 0) + 1
    # With the caller's ids, which the task carries on.
    send = partial(copy_context().run, _send, task, args, expires)
    threading.Thread(target=send, daemon=True).start()


def _send(task: str, args: tuple[str, ...], expires: int) -> None:
    from celery import current_app

    try:
        current_app.send_task(task, args, retry=False, expires=expires)
    except Exception:
        logger.warning("task_not_queued", extra={"task": task}, exc_info=True)
    finally:
        with _lock:
            _waiting[task] -= 1
