"""What the log keeps as codes, in words for people, and how entries ended in a tone too."""

from __future__ import annotations

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from audit.actions import Outcome, RefusedBy, layer_name, outcome_in_words
from workspaces.actors import ActorKind, Source

Words = Promise | str

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
    RefusedBy.SPENDING_LIMIT: _("A monthly spending limit is reached."),
}
_SOURCES: Final[dict[str, Words]] = {
    Source.CHAT: _("Chat"),
    Source.WEB: _("Web pages"),
    Source.API: _("API"),
    Source.ADMIN: _("Admin"),
    Source.GATEWAY: _("Gateway"),
    Source.TASK: _("Background job"),
    Source.COMMAND: _("Command line"),
}
_KINDS: Final[dict[str, Words]] = {
    ActorKind.USER: _("Person"),
    ActorKind.SYSTEM: _("Trellis itself"),
    ActorKind.ANONYMOUS: _("Not signed in"),
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


def source_in_words(source: str) -> Words:
    """Say through which door somebody came; an unknown one stands as it is."""
    return _SOURCES.get(source, source)


def choice_in_words(name: str, value: str) -> str:
    """Say what a value of a filter with fixed values means."""
    match name:
        case "refused_by":
            return gettext(layer_name(value))
        case "source":
            return str(source_in_words(value))
        case "kind":
            return str(_KINDS.get(value, value))
    return value
