"""Refusing to ask a model whose payer has reached a spending limit."""

from __future__ import annotations

import logging
from typing import Final

from django.utils.translation import gettext_noop as _

from audit.actions import Action, RefusedBy
from audit.errors import AuditUnavailable
from audit.services import EntryDraft, record
from chat.providers.base import ProviderSpec
from chat.providers.errors import SpendingLimitReached
from chat.providers.months import current_month
from chat.providers.spending import Allowance, LimitOwner, LimitUse, Payer
from chat.providers.spending_words import refusal_in_words

logger = logging.getLogger(__name__)

_TRIED_AGAIN_SECONDS: Final = 3_600
"""By work in the background: somebody may raise the limit before the month ends."""
_TRIED_SOON_SECONDS: Final = 60
"""Where only requests under way stand in the way."""
RULES: Final = {
    f"spending.{LimitOwner.MEMBER}": _("The person's monthly spending limit is reached."),
    f"spending.{LimitOwner.WORKSPACE}": _("The workspace's monthly spending limit is reached."),
    f"spending.{LimitOwner.PROVIDER}": _(
        "The workspace's monthly spending limit for a shared provider is reached."
    ),
    f"spending.{LimitOwner.MEMBER}.held": _(
        "Requests under way may use what is left of the person's monthly spending limit."
    ),
    f"spending.{LimitOwner.WORKSPACE}.held": _(
        "Requests under way may use what is left of the workspace's monthly spending limit."
    ),
    f"spending.{LimitOwner.PROVIDER}.held": _(
        "Requests under way may use what is left of the workspace's monthly spending limit for a shared provider."
    ),
}
"""Ids of rules in the log, and what they say."""


def refuse(allowance: Allowance, spec: ProviderSpec) -> None:
    """Record that a model is not asked, and raise; nothing where no limit is reached.

    Work in the background that is for nobody in particular tries again and again, and says so in its own place.

    Raises:
        SpendingLimitReached: which one, when it begins anew, and whom to ask.
    """
    line = allowance.reached
    if line is None:
        return
    reason = refusal_in_words(line, current_month(allowance.zone), spec.name)
    if allowance.payer.person_id is not None:
        _record(allowance.payer, line, spec, reason)
    raise SpendingLimitReached(
        reason,
        details={
            "limit": line.whose.value,
            "wait": _TRIED_AGAIN_SECONDS if line.is_reached else _TRIED_SOON_SECONDS,
        },
    )


def _record(payer: Payer, line: LimitUse, spec: ProviderSpec, reason: str) -> None:
    try:
        record(
            EntryDraft(
                action=Action.MODEL_REQUEST_REFUSED,
                actor=payer.actor,
                workspace_id=payer.workspace_id,
                bud=payer.bud,
                conversation_id=payer.conversation_id,
                turn_id=payer.turn_id,
                model=spec.model,
                refused_by=RefusedBy.SPENDING_LIMIT,
                rule=f"spending.{line.whose}" if line.is_reached else f"spending.{line.whose}.held",
                details={"reason": reason, "wanted": payer.purpose},
            )
        )
    except AuditUnavailable:  # nothing is sent in either case
        logger.warning("spending_refusal_not_recorded", exc_info=True)
