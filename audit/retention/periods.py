"""What the whole product keeps and for how long, told on one page. Each app tells of its own tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils.translation import ngettext

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPeriod:
    """One kind of data, as a person would name it."""

    what: StrOrPromise
    how_long: StrOrPromise
    setting: str = ""
    """The environment variable by which whoever runs the installation changes it; "" if it is fixed."""


_tellers: list[Callable[[], Sequence[RetentionPeriod]]] = []


def register_kept(teller: Callable[[], Sequence[RetentionPeriod]]) -> None:
    """Tell what is kept; asked whenever the page is opened."""
    _tellers.append(teller)


def everything_kept() -> list[RetentionPeriod]:
    """What every app told; first what somebody can change."""
    return sorted((row for tell in _tellers for row in tell()), key=lambda row: not row.setting)


def in_days(count: int) -> str:
    """ "30 days", in the language of the request."""
    return ngettext("%(days)s day", "%(days)s days", count) % {"days": count}


def in_hours(time: timedelta) -> str:
    """ "24 hours", in the language of the request."""
    count = int(time.total_seconds() // 3600)
    return ngettext("%(hours)s hour", "%(hours)s hours", count) % {"hours": count}
