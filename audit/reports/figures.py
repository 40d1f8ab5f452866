"""The numbers at the head of a report, in words. Pure."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from audit.reports.report import Figure
from workspaces.words.formats import percent, whole

FIGURES: Final = (
    (
        "calls",
        gettext_noop("Tool calls"),
        gettext_noop("Calls that ended in this time: answered, failed, cancelled or refused."),
        "calls",
    ),
    (
        "failed",
        gettext_noop("Failed"),
        gettext_noop(
            "Calls that were sent and failed: errors, timeouts and unknown outcomes. Cancelled calls do not count."
        ),
        "failed",
    ),
    (
        "refused",
        gettext_noop("Refused"),
        gettext_noop("Calls that a layer refused; nothing was sent."),
        "refused",
    ),
    (
        "p95",
        gettext_noop("95% answered within"),
        gettext_noop(
            "Time from sending to the answer; 95 of 100 calls were faster. At most %(error)s off."
        ),
        "slow",
    ),
    (
        "asked",
        gettext_noop("Approvals asked"),
        gettext_noop("Calls that waited for a person."),
        "asked",
    ),
    (
        "wait_p50",
        gettext_noop("Usual wait for approval"),
        gettext_noop(
            "Half of all approvals were answered within this time. At most %(error)s off."
        ),
        "granted",
    ),
    (
        "people",
        gettext_noop("Active people"),
        gettext_noop("People who appear in the log. Parts of the system are not counted."),
        "",
    ),
    (
        "changes",
        gettext_noop("Settings changed"),
        gettext_noop("Changes of configuration, through any door."),
        "changes",
    ),
)
"""Name, label, what it counts (with the bound of its error), and which entries are behind it."""
MORE_IS_BAD: Final = frozenset({"failed", "refused", "p95", "wait_p50"})
_TIMES: Final = frozenset({"p95", "wait_p50"})


def value_of(name: str, figure: Figure) -> str:
    """Give a figure's number, with its unit."""
    return as_time(figure.now) if name in _TIMES else whole(figure.now or 0)


def change_of(figure: Figure, *, is_bad: bool) -> dict[str, str]:
    """Give the difference to the period before, as a sign and in words."""
    if figure.before is None or figure.now is None:
        return {"words": _("no earlier data"), "sign": "", "tone": ""}
    if figure.now == figure.before:
        return {"words": _("same as before"), "sign": "=", "tone": ""}
    is_more = figure.now > figure.before
    tone = "bad" if is_more == is_bad and is_bad else "ok" if is_bad else ""
    if not figure.before:
        # One refusal after none is no alarm.
        return {"words": _("up from 0"), "sign": "▲", "tone": ""}
    share = abs(figure.now - figure.before) / figure.before
    amount = percent(share) if share < 10 else f"{whole(share + 1)} times"
    words = _("%(amount)s %(value)s than in the period before") % {
        "amount": amount,
        "value": "more" if is_more else "less",
    }
    return {"words": words, "sign": "▲" if is_more else "▼", "tone": tone}


def as_time(milliseconds: int | None) -> str:
    """Give a duration, or a dash where there is none."""
    return "–" if milliseconds is None else spoken_time(milliseconds)


def spoken_time(milliseconds: int) -> str:
    """Give a duration with as many digits as people read."""
    if milliseconds < 10_000:
        return f"{whole(milliseconds)} ms"
    seconds = milliseconds / 1000
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 36_000 else f"{seconds / 3600:.0f} h"
