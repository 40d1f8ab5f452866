"""Which provider answers in place of one that is down or has too many requests.

Nobody waits twice for a provider that has just failed: for a while, requests go to the one behind it at once.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from chat.models import ModelProvider
from chat.providers.base import ProviderSpec
from chat.providers.errors import (
    ProviderBusy,
    ProviderCreditSpent,
    ProviderError,
    ProviderRateLimited,
    ProviderStalled,
    ProviderUnreachable,
)
from chat.providers.specs import spec_of

logger = logging.getLogger(__name__)

MOST_IN_A_ROW: Final = 3
"""Providers that stand in for each other, the first one not counted."""
REST_SECONDS: Final = 30.0
_SHORTEST_REST: Final = 5.0
"""Even where a provider wants to be asked again at once: or two that name each other would be asked in turns."""
_LONGEST_REST: Final = 300.0
_MOST_RESTING: Final = 1000
_FAILURES: Final = (
    *(ProviderUnreachable, ProviderStalled, ProviderRateLimited, ProviderBusy, ProviderCreditSpent),
)
"""Of the provider, not of the request or of the settings, which somebody has to correct."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """Who answers in place of whom."""

    spec: ProviderSpec
    notice: str
    """For the person, in plain words."""


@dataclass(frozen=True, slots=True)
class _Resting:
    until: float
    reason: str


_resting: dict[UUID, _Resting] = {}
"""What this process knows of providers that have just failed."""


def may_be_stood_in_for(error: ProviderError) -> bool:
    """Whether another provider could answer where this one failed."""
    return isinstance(error, _FAILURES)


def note_failure(spec: ProviderSpec, error: ProviderError) -> None:
    """Remember that a provider has just failed."""
    if spec.provider_id is None:
        return
    wait = error.details.get("wait")
    rest = float(wait) if isinstance(wait, (int, float)) else REST_SECONDS
    _resting.pop(spec.provider_id, None)
    while len(_resting) >= _MOST_RESTING:
        _resting.pop(next(iter(_resting)), None)
    until = time.monotonic() + max(_SHORTEST_REST, min(rest, _LONGEST_REST))
    _resting[spec.provider_id] = _Resting(until, reason_of(spec, error))


def reason_of(spec: ProviderSpec, error: ProviderError) -> str:
    """Why somebody else answers, in plain words: a busy provider has not failed."""
    return (
        error.message
        if isinstance(error, ProviderBusy)
        else f"“{spec.name}” failed. {error.message}"
    )


def resting_stand_in(workspace_id: UUID, spec: ProviderSpec) -> StandIn | None:
    """Who answers at once because the provider has just failed; None: it is asked itself."""
    failure = _failure_of(spec.provider_id)
    return find_stand_in(workspace_id, spec, failure.reason) if failure is not None else None


def find_stand_in(workspace_id: UUID, spec: ProviderSpec, reason: str) -> StandIn | None:
    """The first one behind a provider that is on and has not just failed itself.

    Args:
        reason: why the provider does not answer, in plain words.
    """
    asked: set[UUID] = set()
    now = spec.provider_id
    while now is not None and now not in asked and len(asked) <= MOST_IN_A_ROW:
        asked.add(now)
        row = ModelProvider.objects.for_workspace(workspace_id).select_related("fallback").find(now)
        behind = row.fallback if row is not None else None
        if behind is None or behind.pk in asked:
            return None
        if behind.is_active and _failure_of(behind.pk) is None:
            logger.info(
                "provider_stands_in",
                extra={"provider": str(behind.pk), "for": str(spec.provider_id)},
            )
            found = spec_of(behind)
            return StandIn(found, f"{reason} {found.model} of “{found.name}” answers instead.")
        now = behind.pk
    return None


def _failure_of(provider_id: UUID | None) -> _Resting | None:
    failure = _resting.get(provider_id) if provider_id is not None else None
    if failure is None or failure.until <= time.monotonic():
        return None
    return failure
