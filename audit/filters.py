"""Which entries are wanted. The tables are the page's and the REST interface's; an address is read here, every fault in words. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from audit.actions import Action, Outcome, RefusedBy
from workspaces.actors import ActorKind, Source
from workspaces.words import typed_filters as language
from workspaces.words.text_values import read_moment, read_whole_number, unknown_filters

RANGES: dict[str, tuple[str, timedelta | None]] = {
    "1h": (gettext_noop("Last hour"), timedelta(hours=1)),
    "24h": (gettext_noop("Last 24 hours"), timedelta(hours=24)),
    "7d": (gettext_noop("Last 7 days"), timedelta(days=7)),
    "30d": (gettext_noop("Last 30 days"), timedelta(days=30)),
    "all": (gettext_noop("All time"), None),
    "custom": (gettext_noop("From … to …"), None),
}
DEFAULT_RANGE = "24h"
REFUSED, FAILED, ENDED = "refused", "failed", "ended"
"""Outcomes of the filter only: nothing was sent; a call was sent and failed; a call ended or was refused."""
SUCCEEDED: Final = "succeeded"
"""How people type the outcome that the log keeps as `ok`."""
ENTRIES: Final = "entries"
MAX_LENGTH = language.LONGEST_VALUE
_ACTIONS = frozenset(action.value for action in Action)
_OUTCOMES = frozenset({*(outcome.value for outcome in Outcome), REFUSED, FAILED, ENDED})

TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "bud": (gettext_noop("Bud"), "bud_name"),
    "model": (gettext_noop("Model"), "model"),
    "rule": (gettext_noop("Rule"), "rule"),
    "role": (gettext_noop("Role"), "actor_role"),
    "label": (gettext_noop("Name of the actor"), "actor_label"),
    "behalf": (gettext_noop("On behalf of"), "on_behalf_of"),
    "sign_in": (gettext_noop("Signed in by"), "sign_in"),
    "request": (gettext_noop("Request id"), "request_id"),
    "trace": (gettext_noop("Trace id"), "trace_id"),
    "transport": (gettext_noop("Transport"), "transport"),
    "revision": (gettext_noop("Protocol revision"), "protocol_revision"),
    "credential": (gettext_noop("Credential"), "credential_id"),
    "definition": (gettext_noop("Definition hash"), "definition_hash"),
}
"""Name in the address → label, column. A star at the end means: begins with. A star alone: has one."""
IDS: Final[Mapping[str, tuple[str, str]]] = {
    "entry": (gettext_noop("Entry"), "id"),
    "call": (gettext_noop("Call"), "call_id"),
    "conversation": (gettext_noop("Conversation"), "conversation_id"),
    "turn": (gettext_noop("Turn"), "turn_id"),
    "token": (gettext_noop("API token"), "token_id"),
    "server_id": (gettext_noop("Server id"), "server_id"),
    "tool_id": (gettext_noop("Tool id"), "tool_id"),
    "bud_id": (gettext_noop("Bud id"), "bud_id"),
}
NUMBERS: Final[Mapping[str, tuple[str, str]]] = {
    "duration": (gettext_noop("Duration in ms"), "duration_ms"),
    "queue": (gettext_noop("Wait in line in ms"), "queue_ms"),
    "arguments_size": (gettext_noop("Arguments in bytes"), "arguments_size"),
    "result_size": (gettext_noop("Result in bytes"), "result_size"),
}
"""Name → label, column; in the address with ``_min`` and ``_max``, both inclusive."""
CHOICES: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "source": (gettext_noop("Source"), "source", tuple(source.value for source in Source)),
    "refused_by": (
        gettext_noop("Refused by"),
        "refused_by",
        tuple(layer.value for layer in RefusedBy),
    ),
    "kind": (gettext_noop("Kind of actor"), "actor_kind", tuple(kind.value for kind in ActorKind)),
}
_AS_TYPED: Final = {
    "label": "",
    "refused_by": "refused",
    "arguments_size": "arguments",
    "result_size": "result",
}
"""Filters that have another name where they are typed; none where another one stands for them."""
SORTS: Final[Mapping[str, tuple[str, str]]] = {
    "time": (gettext_noop("Time"), "created_at"),
    "action": (gettext_noop("What"), "action"),
    "server": (gettext_noop("Server"), "server_name"),
    "tool": (gettext_noop("Tool"), "tool_name"),
    "outcome": (gettext_noop("Outcome"), "outcome"),
    "duration": (gettext_noop("Duration"), "duration_ms"),
    "arguments_size": (gettext_noop("Size of arguments"), "arguments_size"),
    "result_size": (gettext_noop("Size of result"), "result_size"),
}
"""Name → label, column. Sorted by anything but time and kind, entries that have none of it are left out."""
GROUPS: Final[Sequence[tuple[str, tuple[str, ...]]]] = (
    (gettext_noop("What"), ("action", "outcome", "server", "tool", "refused_by", "rule")),
    (gettext_noop("Who"), ("user", "label", "kind", "role", "behalf", "sign_in")),
    (gettext_noop("Where"), ("source", "ip", "bud", "model", "transport", "revision")),
    (gettext_noop("How long and how large"), tuple(NUMBERS)),
    (gettext_noop("Ids"), (*IDS, "request", "trace", "credential", "definition")),
    (gettext_noop("Order"), ("sort", "order")),
)
"""The filters as the page groups them. Time and words stand outside."""
LABELS: Final[Mapping[str, str]] = {
    "action": gettext_noop("Kind of entry"),
    "outcome": gettext_noop("Outcome"),
    "server": gettext_noop("Server"),
    "tool": gettext_noop("Tool"),
    "user": gettext_noop("Person"),
    "ip": gettext_noop("IP address"),
    "words": gettext_noop("Words"),
    "sort": gettext_noop("Sort by"),
    "order": gettext_noop("Order"),
    "range": gettext_noop("Time"),
    "since": gettext_noop("From"),
    "until": gettext_noop("To"),
    **{name: label for table in (TEXTS, IDS, NUMBERS) for name, (label, _) in table.items()},
    **{name: label for name, (label, _, _) in CHOICES.items()},
    **{
        f"{name}_{end}": f"{label}, at {word}"
        for name, (label, _) in NUMBERS.items()
        for end, word in (("min", "least"), ("max", "most"))
    },
}


def _read_outcome(value: str) -> Mapping[str, str] | str:
    if value in (SUCCEEDED, Outcome.OK.value):
        return {"outcome": Outcome.OK.value}
    return language.one_of("outcome", {*_OUTCOMES, SUCCEEDED} - {Outcome.OK.value})(value)


KEYS: Final[Mapping[str, language.FilterKey]] = {
    "tool": language.FilterKey(help=gettext_noop("Name of the tool"), read=language.plain("tool")),
    "server": language.FilterKey(
        help=gettext_noop("Name of the server"), read=language.plain("server")
    ),
    "outcome": language.FilterKey(
        help=gettext_noop("How it ended: succeeded, refused, failed, timeout …"),
        read=_read_outcome,
    ),
    "person": language.FilterKey(
        help=gettext_noop("Address, or how it begins"), read=language.person
    ),
    "since": language.FilterKey(
        help=gettext_noop("7d, 12h, yesterday, or a date such as 2026-11-01"),
        read=language.moment("since"),
    ),
    "until": language.FilterKey(
        help=gettext_noop("1d, today, or a date such as 2026-11-02"), read=language.moment("until")
    ),
    "action": language.FilterKey(
        help=gettext_noop("Kind of entry, such as tool_call.finished"),
        read=language.one_of("action", _ACTIONS),
    ),
    **{
        _AS_TYPED.get(name, name): language.FilterKey(help=label, read=language.one_of(name, known))
        for name, (label, _, known) in CHOICES.items()
    },
    **{
        name: language.FilterKey(help=label, read=language.plain(name))
        for name, (label, _) in TEXTS.items()
        if name not in _AS_TYPED
    },
    **{
        _AS_TYPED.get(name, name): language.FilterKey(
            help=f"{label}: >500, <500, 100..500",
            read=language.number(name, is_time=column.endswith("_ms")),
        )
        for name, (label, column) in NUMBERS.items()
    },
    "ip": language.FilterKey(help=gettext_noop("IP address"), read=language.plain("ip")),
    **{
        name: language.FilterKey(help=label, read=language.plain(name))
        for name, (label, _) in IDS.items()
    },
    "sort": language.FilterKey(help=gettext_noop("Order by"), read=language.one_of("sort", SORTS)),
}
"""What can be typed, by name. Names that stand in addresses are kept in NAMES."""
_ALSO_TYPED: Final = {"who": KEYS["person"], "user": KEYS["person"]}
"""As the log's column and its addresses call it; whoever types that need not look for the name."""
_TYPED_AS: Final = {**_AS_TYPED, "user": "person", "label": "person"}
"""How filters of an address are named where they are typed."""
_TOGETHER: Final = (
    ("user", "label"),
    *((f"{name}_min", f"{name}_max") for name in NUMBERS),
)
"""Parameters that one typed filter sets, this one or that."""
_WHOLE = frozenset({"created_at", "action"})
MOST_NUMBER: Final = 2**63 - 1


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
    equal: Mapping[str, str | UUID] = field(default_factory=dict)
    """Column → value."""
    begins: Mapping[str, str] = field(default_factory=dict)
    """Column → how it begins."""
    least: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    words: str = ""
    """Searched in arguments and results; only for those who may read them."""
    show: str = ""
    """A row for each call, or ENTRIES: a row for each entry."""
    sort: str = "time"
    is_ascending: bool = False
    text: str = ""
    """What was typed and could not be read; what could is in `typed`."""
    text_errors: tuple[str, ...] = ()
    """What was wrong with that."""
    typed: Mapping[str, str] = field(default_factory=dict)
    """What was given, to be shown in the form again and carried along in links."""
    errors: tuple[str, ...] = ()
    """What was wrong with it, in plain words; a wrong condition is left out. Those of the text are among them."""

    @property
    def is_narrowed(self) -> bool:
        """Whether more than a time range is set."""
        common = (self.action, self.outcome, self.server, self.tool, self.user, self.words)
        return any(common) or self.has_more

    @property
    def has_more(self) -> bool:
        """Whether a condition is set that stands behind "More filters"."""
        return bool(self.equal or self.begins or self.least or self.most)

    @property
    def shows_calls(self) -> bool:
        """Whether the entries of a call are one row."""
        return self.show != ENTRIES

    @property
    def sort_column(self) -> str:
        return SORTS[self.sort][1]

    @property
    def leaves_out_empty(self) -> bool:
        """Whether the order leaves out entries that have nothing to sort by."""
        return self.sort_column not in _WHOLE

    @property
    def user_id(self) -> UUID | None:
        """The person, if it is one."""
        try:
            return UUID(self.user)
        except ValueError:
            return None

    def as_query(self, **changed: str) -> str:
        """The filters as a query string without ``?``, for links that keep them; an empty change takes one away."""
        values = {**self.typed, **changed}
        return urlencode({name: value for name, value in values.items() if value})


NAMES: Final = (
    *("range", "since", "until", "action", "outcome", "server", "tool", "user", "words"),
    *TEXTS,
    *IDS,
    *CHOICES,
    "ip",
    *(f"{name}_{end}" for name in NUMBERS for end in ("min", "max")),
    *("sort", "order", "show"),
)


_NAMED_APART: Final = {"server": "server_name", "tool": "tool_name"}
"""Filters with a field of their own, for which the star of TEXTS holds, too; with their columns."""
_NOT_TYPED: Final = frozenset(
    {"range", "since", "until", "sort", "order", "show"}
    | {f"{name}_{end}" for name in NUMBERS for end in ("min", "max")}
)
"""What does not stay with a filter that is kept, and what two parameters say together."""
_BESIDE: Final = frozenset({"q", "before", "after", "by", "format", "sent"})
"""What else stands in the addresses of the log: typed filters, the page's place, the report's colours, the file's kind, and the
sent file that is looked through."""


def read_filter(given: Mapping[str, str], *, now: datetime) -> EntryFilter:
    """Read the filters of an address. Never raises: what does not fit is told in `errors`."""
    errors = unknown_filters(given, {*NAMES, *_BESIDE})
    text = given.get("q", "").replace("\x00", "").strip()
    read = language.read_typed(text, {**KEYS, **_ALSO_TYPED}, words="words")
    # Typed is what was meant last: it takes the place of what stands in the address.
    given = {**given, **dict.fromkeys(_beside(read.values), ""), **read.values}
    typed = {name: given.get(name, "").strip()[:MAX_LENGTH].replace("\x00", "") for name in NAMES}
    chosen = typed["range"] or DEFAULT_RANGE
    if chosen not in RANGES:
        errors.append(_("There is no such time range."))
        chosen = DEFAULT_RANGE
    length = RANGES[chosen][1]
    since = now - length if length else None
    until = None
    if chosen == "custom":
        since = _moment(typed["since"], _("From"), errors, now)
        until = _moment(typed["until"], _("To"), errors, now)
        if since and until and since >= until:
            errors.append(_("“From” must be before “To”."))
            since = until = None
    action, outcome = typed["action"], typed["outcome"]
    if action and action not in _ACTIONS:
        errors.append(_("There is no such kind of entry."))
        action = ""
    if outcome and outcome not in _OUTCOMES:
        errors.append(_("There is no such outcome."))
        outcome = ""
    columns = {name: column for name, (_label, column) in TEXTS.items()} | _NAMED_APART
    begins = {
        column: typed[name].rstrip("*")
        for name, column in columns.items()
        if typed[name].endswith("*")
    }
    equal: dict[str, str | UUID] = {
        column: typed[name]
        for name, column in columns.items()
        if name not in _NAMED_APART and typed[name] and column not in begins
    }
    apart = {name: "" if column in begins else typed[name] for name, column in _NAMED_APART.items()}
    _read_exact(typed, equal, errors)
    least, most = _read_numbers(typed, errors)
    sort = typed["sort"] or "time"
    if sort not in SORTS:
        errors.append(_("The entries cannot be sorted by that."))
        sort = "time"
    if typed["show"] not in {"", ENTRIES}:
        errors.append(_("The list shows calls or entries, nothing else."))
    faults = _faults_of(read, errors)
    errors += [fault for fault in read.errors if fault not in errors]
    return EntryFilter(
        range=chosen,
        since=since,
        until=until,
        action=action,
        outcome=outcome,
        server=apart["server"],
        tool=apart["tool"],
        user=typed["user"],
        equal=equal,
        begins=begins,
        least=least,
        most=most,
        words=typed["words"],
        show=typed["show"],
        sort=sort,
        is_ascending=typed["order"] == "asc",
        text=text if faults else "",
        text_errors=faults,
        typed=typed,
        errors=tuple(errors),
    )


def as_text(values: Mapping[str, str]) -> str:
    """Give parameters of an address as they can be typed, as far as they can; the time and the order are left out."""
    terms = []
    for name in (name for name in NAMES if name not in _NOT_TYPED):
        value = values.get(name, "").strip()
        if value and name == "words":
            terms.append(language.in_quotes(value))
        elif value:
            terms.append(f"{_TYPED_AS.get(name, name)}:{language.quoted(value)}")
    for name in NUMBERS:
        least, most = (values.get(f"{name}_{end}", "").strip() for end in ("min", "max"))
        if least or most:
            value = least if least == most else f"{least}..{most}"
            terms.append(f"{_TYPED_AS.get(name, name)}:{value}")
    return " ".join(terms)


def _beside(typed: Mapping[str, str]) -> set[str]:
    """Give what else the filters that were typed could have set: a person by their name, the other end of a range."""
    return {name for names in _TOGETHER if any(one in typed for one in names) for name in names}


def _faults_of(read: language.ParsedFilter, errors: list[str]) -> tuple[str, ...]:
    """Give what was wrong with what was typed: as text, or as the values that it gave."""
    return (*read.errors, *errors) if read.values or read.errors else ()


def _read_exact(typed: Mapping[str, str], equal: dict[str, str | UUID], errors: list[str]) -> None:
    for name, (label, column) in IDS.items():
        if typed[name]:
            try:
                equal[column] = UUID(typed[name])
            except ValueError:
                errors.append(_("“%(label)s” is not an id.") % {"label": label})
    for name, (label, column, known) in CHOICES.items():
        if typed[name] in known:
            equal[column] = typed[name]
        elif typed[name]:
            errors.append(_("“%(label)s” has no such value.") % {"label": label})
    if typed["ip"]:
        try:
            equal["ip_address"] = str(ipaddress.ip_address(typed["ip"]))
        except ValueError:
            errors.append(_("“IP address” is not an address."))


def _read_numbers(
    typed: Mapping[str, str], errors: list[str]
) -> tuple[dict[str, int], dict[str, int]]:
    found: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for name, (label, column) in NUMBERS.items():
        for end, numbers in zip(("min", "max"), found, strict=True):
            text = typed[f"{name}_{end}"]
            number = read_whole_number(text, most=MOST_NUMBER)
            if number is not None:
                numbers[column] = number
            elif text:
                errors.append(_("“%(label)s” must be a whole number.") % {"label": label})
    return found


def _moment(text: str, name: str, errors: list[str], now: datetime) -> datetime | None:
    if not text:
        return None
    age = language.read_age(text)
    moment = now - age if age is not None else language.read_day(text, now) or read_moment(text)
    if moment is None:
        errors.append(
            _(
                "“%(name)s” is not a date and time, such as 2026-11-26, 2026-11-26T14:05, yesterday or 7d."
            )
            % {"name": name}
        )
    return moment
