"""Which provider answers in place of one that is down or has too many requests.

Nobody waits twice for a provider that has just failed: for a while, requests go to the one behind it at once.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.utils.translation import gettext_noop as _

from chat.models import ModelProvider
from chat.providers.base import ProviderSpec
from chat.providers.errors import ProviderBusy, ProviderError
from chat.providers.recent_failures import RecentFailures
from chat.providers.specs import spec_of

logger = logging.getLogger(__name__)

MOST_IN_A_ROW: Final = 3
"""Providers that stand in for each other, the first one not counted."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """Who answers in place of whom."""

    spec: ProviderSpec
    notice: str
    """For the person, in plain words."""


_failures: Final = RecentFailures()


def note_failure(spec: ProviderSpec, error: ProviderError) -> None:
    """Remember that a provider has just failed."""
    if spec.provider_id is not None:
        _failures.note(spec.provider_id, error, reason_of(spec, error))


def reason_of(spec: ProviderSpec, error: ProviderError) -> str:
    """Why somebody else answers, in plain words: a busy provider has not failed."""
    return (
        error.message
        if isinstance(error, ProviderBusy)
        else _("“%(name)s” failed. %(error)s") % {"name": spec.name, "error": error.message}
    )


def resting_stand_in(workspace_id: UUID, spec: ProviderSpec) -> StandIn | None:
    """Who answers at once because the provider has just failed; None: it is asked itself."""
    reason = _failures.reason(spec.provider_id)
    return find_stand_in(workspace_id, spec, reason) if reason is not None else None


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
        if (
            behind.answers
            and behind.offers(behind.default_model)
            and _failures.reason(behind.pk) is None
        ):
            logger.info(
                "provider_stands_in",
                extra={"provider": str(behind.pk), "for": str(spec.provider_id)},
            )
            found = spec_of(behind)
            message = _("%(reason)s %(model)s of “%(name)s” answers instead.") % {
                "reason": reason,
                "model": found.model,
                "name": found.name,
            }
            return StandIn(found, message)
        now = behind.pk
    return None
