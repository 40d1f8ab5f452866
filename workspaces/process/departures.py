"""Whoever sent a request may leave before it is answered: what only they wanted can end then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from workspaces.errors import DomainError
from workspaces.words.texts import gettext_lazy as _

if TYPE_CHECKING:
    from django.http import HttpRequest

DEPARTURE: Final = "trellis_departure"
"""The attribute of a request that holds it."""


class CallerLeft(DomainError):
    """Nobody reads the answer to this request."""

    code = "caller_left"
    default_message = _("You left before this was done, so it was stopped.")


class Departure:
    """Of one request. It happens once, or never; any thread may tell or ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Callable[[], object]] = []
        self._has_happened = False

    @property
    def has_happened(self) -> bool:
        """Whether they have left."""
        return self._has_happened

    def happen(self) -> None:
        """They have left."""
        with self._lock:
            self._has_happened = True
            waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def then(self, call: Callable[[], object]) -> None:
        """Call this when it happens; at once if it has. It has to return at once and to raise nothing."""
        with self._lock:
            if not self._has_happened:
                self._waiting.append(call)
                return
        call()


def departure_of(request: HttpRequest) -> Departure:
    """The departure of whoever sent this; one that never happens, where nobody watches."""
    found = getattr(request, DEPARTURE, None)
    return found if isinstance(found, Departure) else Departure()
