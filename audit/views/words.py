"""What the log keeps as codes, in words for people, and how entries ended in a tone too."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from audit.actions import Outcome, RefusedBy, outcome_in_words
from audit.reports.filter_words import Words

_TONES: Final[dict[str, str]] = {
    Outcome.OK: "ok",
    Outcome.TOOL_ERROR: "bad",
    Outcome.TRANSPORT_ERROR: "bad",
    Outcome.TIMEOUT: "bad",
    Outcome.OUTCOME_UNKNOWN: "warn",
}
_LAYERS: Final[dict[str, Words]] = {
    RefusedBy.NOT_FOUND: _("There is no such tool, or it may not be used here."),
    RefusedBy.DISABLED: _("The tool or its server is switched off."),
    RefusedBy.QUARANTINE: _("The tool is held for review."),
    RefusedBy.POLICY: _("A rule forbids it."),
    RefusedBy.APPROVAL: _("It was not approved."),
    RefusedBy.ARGUMENTS: _("The arguments do not fit the tool."),
    RefusedBy.QUOTA: _("The quota is used up."),
    RefusedBy.BREAKER: _("The server is left alone after failures."),
    RefusedBy.BUSY: _("Too many calls were running."),
    RefusedBy.PERMISSION: _("The person may not do this."),
    RefusedBy.AUDIT: _("The log could not be written, so nothing was sent."),
    RefusedBy.SPENDING_LIMIT: _("A monthly spending limit leaves no room."),
}


def ended(outcome: str, refused_by: str) -> tuple[Words, str]:
    """Give how an entry ended, in words, and the tone of them; nothing where it says nothing of an end."""
    if refused_by:
        return _("Refused"), "warn"
    if not outcome:
        return "", ""
    return gettext(outcome_in_words(outcome)), _TONES.get(outcome, "muted")


def layer_in_words(layer: str) -> Words:
    """Say why a layer refuses; nothing for none."""
    return _LAYERS.get(layer, "")
