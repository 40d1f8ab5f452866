"""When tasks run by themselves: said beside each task, read by the scheduler and by the owner's page of jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from celery.schedules import crontab

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

SCHEDULE: Final[dict[str, dict[str, Any]]] = {}
"""Celery's `beat_schedule`, by the task's name."""
JOBS: Final[dict[str, ScheduledJob]] = {}
"""The same for people."""
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
WEEK: Final = timedelta(days=7)
_HOURS: Final = 24
_WEEKDAYS: Final = 7
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJob:
    """A task that runs by itself."""

    name: str
    """The task's, as Celery has it."""
    what: StrOrPromise
    """What it does, for people."""
    when: float | crontab

    @property
    def is_rare(self) -> bool:
        """Whether it runs at set times, each at least an hour apart."""
        return isinstance(self.when, crontab)

    @property
    def period(self) -> timedelta:
        """About how far apart its runs are."""
        if not isinstance(self.when, crontab):
            return timedelta(seconds=self.when)
        if len(self.when.hour) == _HOURS:
            return HOUR
        return DAY if len(self.when.day_of_week) == _WEEKDAYS else WEEK

    def next_after(self, at: datetime) -> datetime:
        """When it is due for the first time after a moment."""
        if not isinstance(self.when, crontab):
            return at + self.period
        # Celery compares wall clocks; ours is UTC's, as that of the scheduler.
        start, wait, _ = self.when.remaining_delta(at.astimezone(UTC))
        due: datetime = start + wait
        return due


def scheduled(when: float | crontab, what: StrOrPromise) -> Callable[[_Function], _Function]:
    """Have a task run by itself; below `shared_task`.

    Args:
        when: so many seconds apart, or at these times, each at least an hour apart.
        what: what it does, in words for the owner's page of jobs.
    """
    # A run that waited longer than that would only be followed by the next one.
    expires = HOUR.total_seconds() if isinstance(when, crontab) else when

    def add(function: _Function) -> _Function:
        name = f"{function.__module__}.{function.__name__}"
        SCHEDULE[name] = {"task": name, "schedule": when, "options": {"expires": expires}}
        JOBS[name] = ScheduledJob(name=name, what=what, when=when)
        return function

    return add
