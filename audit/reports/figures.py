"""The numbers at the head of a report, in words. Pure."""

from __future__ import annotations

from typing import Final

from audit.reports.report import Figure
from audit.rollups import ERROR

FIGURES: Final = (
    ("calls", "Tool calls", "Calls that ended in this time: answered, failed or refused.", "calls"),
    (
        "failed",
        "Failed",
        "Calls that were sent and failed: errors, timeouts, cancelled or unknown.",
        "failed",
    ),
    ("refused", "Refused", "Calls that a layer refused; nothing was sent.", "refused"),
    (
        "p95",
        "95 % answered within",
        f"Time from sending to the answer; 95 of 100 calls were faster. At most {ERROR:.1%} off.",
        "slow",
    ),
    ("asked", "Approvals asked", "Calls that waited for a person.", "asked"),
    (
        "wait_p50",
        "Usual wait for approval",
        f"Half of all approvals were answered within this time. At most {ERROR:.1%} off.",
        "granted",
    ),
    (
        "people",
        "Active people",
        "People who appear in the log. Parts of the system are not counted.",
        "",
    ),
    ("changes", "Settings changed", "Changes of configuration, through any door.", "changes"),
)
"""Name, label, what it counts, and which entries are behind it."""
MORE_IS_BAD: Final = frozenset({"failed", "refused", "p95", "wait_p50"})
_TIMES: Final = frozenset({"p95", "wait_p50"})


def value_of(name: str, figure: Figure) -> str:
    """Give a figure's number, with its unit."""
    return as_time(figure.now) if name in _TIMES else f"{figure.now or 0:,}"


def change_of(figure: Figure, *, is_bad: bool) -> dict[str, str]:
    """Give the difference to the period before, as a sign and in words."""
    if figure.before is None or figure.now is None:
        return {"words": "no earlier data", "sign": "", "tone": ""}
    if figure.now == figure.before:
        return {"words": "as in the period before", "sign": "=", "tone": ""}
    is_more = figure.now > figure.before
    tone = "bad" if is_more == is_bad and is_bad else "ok" if is_bad else ""
    if not figure.before:
        # One refusal after none is no alarm.
        return {"words": "up from 0", "sign": "▲", "tone": ""}
    share = abs(figure.now - figure.before) / figure.before
    amount = f"{share:.0%}" if share < 10 else f"{share + 1:.0f} times"
    words = f"{amount} {'more' if is_more else 'less'} than in the period before"
    return {"words": words, "sign": "▲" if is_more else "▼", "tone": tone}


def as_time(milliseconds: int | None) -> str:
    """Give a duration, or a dash where there is none."""
    return "–" if milliseconds is None else spoken_time(milliseconds)


def spoken_time(milliseconds: int) -> str:
    """Give a duration with as many digits as people read."""
    if milliseconds < 10_000:
        return f"{milliseconds:,} ms"
    seconds = milliseconds / 1000
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 36_000 else f"{seconds / 3600:.0f} h"
