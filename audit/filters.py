"""Which entries are wanted: read from an address, where every fault has its own words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode
from uuid import UUID

from audit.actions import Action, Outcome

RANGES: dict[str, tuple[str, timedelta | None]] = {
    "1h": ("Last hour", timedelta(hours=1)),
    "24h": ("Last 24 hours", timedelta(hours=24)),
    "7d": ("Last 7 days", timedelta(days=7)),
    "30d": ("Last 30 days", timedelta(days=30)),
    "all": ("All time", None),
    "custom": ("From … to …", None),
}
DEFAULT_RANGE = "24h"
REFUSED = "refused"
"""An outcome of the filter only: nothing was sent."""
_MAX_LENGTH = 256
_ACTIONS = frozenset(action.value for action in Action)
_OUTCOMES = frozenset({*(outcome.value for outcome in Outcome), REFUSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """Conditions that all hold; an empty one holds always. Times are aware; `until` is exclusive."""

    range: str = DEFAULT_RANGE
    since: datetime | None = None
    until: datetime | None = None
    action: str = ""
    outcome: str = ""
    server: str = ""
    tool: str = ""
    user: str = ""
    """A person's id, or the label of a part of the system."""
    typed: Mapping[str, str] = field(default_factory=dict)
    """What was given, to be shown in the form again and carried along in links."""
    errors: tuple[str, ...] = ()
    """What was wrong with it, in plain words; a wrong condition is left out."""

    @property
    def is_narrowed(self) -> bool:
        """Whether more than a time range is set."""
        return bool(self.action or self.outcome or self.server or self.tool or self.user)

    @property
    def user_id(self) -> UUID | None:
        """The person, if it is one."""
        try:
            return UUID(self.user)
        except ValueError:
            return None

    def as_query(self) -> str:
        """The filters as a query string without ``?``, for links that keep them."""
        return urlencode({name: value for name, value in self.typed.items() if value})


def read_filter(given: Mapping[str, str], *, now: datetime) -> EntryFilter:
    """Read the filters of an address. Never raises: what does not fit is told in `errors`."""
    names = ("range", "since", "until", "action", "outcome", "server", "tool", "user")
    typed = {name: given.get(name, "").strip()[:_MAX_LENGTH].replace("\x00", "") for name in names}
    errors: list[str] = []
    chosen = typed["range"] or DEFAULT_RANGE
    if chosen not in RANGES:
        errors.append("There is no such time range.")
        chosen = DEFAULT_RANGE
    length = RANGES[chosen][1]
    since = now - length if length else None
    until = None
    if chosen == "custom":
        since = _moment(typed["since"], "From", errors)
        until = _moment(typed["until"], "To", errors)
        if since and until and since >= until:
            errors.append("“From” must be before “To”.")
            since = until = None
    action, outcome = typed["action"], typed["outcome"]
    if action and action not in _ACTIONS:
        errors.append("There is no such kind of entry.")
        action = ""
    if outcome and outcome not in _OUTCOMES:
        errors.append("There is no such outcome.")
        outcome = ""
    return EntryFilter(
        range=chosen,
        since=since,
        until=until,
        action=action,
        outcome=outcome,
        server=typed["server"],
        tool=typed["tool"],
        user=typed["user"],
        typed=typed,
        errors=tuple(errors),
    )


def _moment(text: str, name: str, errors: list[str]) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        errors.append(f"“{name}” is not a date and time.")
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
