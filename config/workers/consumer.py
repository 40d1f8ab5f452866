"""Celery's consumer, which waits while Redis takes no writes. Celery's own ends the worker then, with a traceback."""

from __future__ import annotations

import logging
import math
import time
from typing import Any, Final

from celery.worker.consumer import Consumer
from celery.worker.state import maybe_shutdown
from django.conf import settings

from config.workers.queues import write_to_redis
from config.workers.redis_faults import find_redis_fault
from workspaces.process import outages

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 2.0


class PatientConsumer(Consumer):
    """Begins with each connection only once Redis takes a write. Celery waits by itself while Redis does not answer."""

    def connect(self) -> Any:
        """Wait, and connect as Celery does."""
        if settings.TRELLIS.redis_url is not None:
            _wait_for_writes()
        return super().connect()


def _wait_for_writes() -> None:
    told_at = -math.inf
    while (error := _refusal()) is not None:
        if time.monotonic() >= told_at + outages.TELL_SECONDS:
            told_at = time.monotonic()
            fault = find_redis_fault(error)
            logger.warning(
                "worker_waits_for_redis",
                extra={"reason": type(error).__name__, "fault": fault.text},
            )
        maybe_shutdown()
        time.sleep(LOOK_SECONDS)
    if told_at > -math.inf:
        logger.warning("worker_goes_on")


def _refusal() -> Exception | None:
    """Why Redis takes no writes: it is full, a replica, or cannot store what it has. None: it does, or is away."""
    import redis

    try:
        write_to_redis()
    except redis.exceptions.NoPermissionError:
        pass  # Celery writes to other keys
    except redis.ResponseError as error:
        return error
    except redis.RedisError:
        pass
    return None
