"""When tasks run by themselves: said beside each task, read by the scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from celery.schedules import crontab

SCHEDULE: Final[dict[str, dict[str, Any]]] = {}
"""Celery's `beat_schedule`, by the task's name."""
_HOUR: Final = 3600
_Function = TypeVar("_Function", bound=Callable[..., Any])


def scheduled(when: float | crontab) -> Callable[[_Function], _Function]:
    """Have a task run by itself; below `shared_task`.

    Args:
        when: so many seconds apart, or at these times, each at least an hour apart.
    """
    # A run that waited longer than that would only be followed by the next one.
    expires = _HOUR if isinstance(when, crontab) else when

    def add(function: _Function) -> _Function:
        name = f"{function.__module__}.{function.__name__}"
        SCHEDULE[name] = {"task": name, "schedule": when, "options": {"expires": expires}}
        return function

    return add
