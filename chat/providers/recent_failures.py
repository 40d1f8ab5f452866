"""What this process knows of providers that have just failed: nobody has to wait for one of them again at once."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from chat.providers.errors import (
    ProviderBusy,
    ProviderCreditSpent,
    ProviderError,
    ProviderNoAnswer,
    ProviderRateLimited,
    ProviderStalled,
    ProviderUnreachable,
)

REST_SECONDS: Final = 30.0
_SHORTEST_REST: Final = 5.0
"""Even where a provider wants to be asked again at once: or two that name each other would be asked in turns."""
_LONGEST_REST: Final = 300.0
_MOST: Final = 1000
_FAILURES: Final = (
    *(ProviderUnreachable, ProviderStalled, ProviderRateLimited, ProviderBusy, ProviderCreditSpent),
    ProviderNoAnswer,
)
"""Of the provider, not of the request or of the settings, which somebody has to correct."""

ProviderKey = UUID | None
"""None: the platform's own."""


def is_of_provider(error: ProviderError) -> bool:
    """Whether the provider has failed, so that others would fail there too, and another one may not."""
    return isinstance(error, _FAILURES)


@dataclass(slots=True)
class RecentFailures:
    """Failures of one kind of work, each remembered for a while."""

    _known: dict[ProviderKey, tuple[float, str]] = field(default_factory=dict)

    def note(self, provider: ProviderKey, error: ProviderError, reason: str = "") -> None:
        """Remember that a provider has just failed, for as long as it wants to be left alone."""
        wait = error.details.get("wait")
        rest = float(wait) if isinstance(wait, (int, float)) else REST_SECONDS
        self._known.pop(provider, None)
        while len(self._known) >= _MOST:
            self._known.pop(next(iter(self._known)), None)
        until = time.monotonic() + max(_SHORTEST_REST, min(rest, _LONGEST_REST))
        self._known[provider] = (until, reason)

    def reason(self, provider: ProviderKey) -> str | None:
        """Why it is left alone; None: it is not."""
        until, reason = self._known.get(provider, (0.0, ""))
        return reason if until > time.monotonic() else None

    def forget(self, provider: ProviderKey) -> None:
        """It works again."""
        self._known.pop(provider, None)

    def clear(self) -> None:
        """Ask every provider again."""
        self._known.clear()
