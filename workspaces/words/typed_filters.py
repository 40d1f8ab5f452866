"""Filters as people type them: ``tool:mail.send outcome:refused since:7d "two words"``. Pure.

What is read comes out as the parameters of an address, so that everything that takes those takes this too.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from workspaces.words.formats import whole

LONGEST: Final = 2_000
LONGEST_VALUE: Final = 256
MOST_TERMS: Final = 50
_TERM: Final = re.compile(r'(?:([^\s:"]+):)?(?:"((?:[^"\\]|\\.)*)"|([^\s"]+)|(?<=:))(?=\s|$)')
_ESCAPED: Final = re.compile(r"\\(.)")
_AGE: Final = re.compile(r"(\d{1,5})([mhdw])", re.ASCII)
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DAYS_AGO: Final = {"today": 0, "yesterday": 1}
_NUMBER: Final = re.compile(r"(\d{1,19})(ms|s)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFilter:
    """What a text says."""

    values: Mapping[str, str]
    """Name of a parameter → value."""
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterKey:
    """A filter that can be typed."""

    help: str
    read: Callable[[str], Mapping[str, str] | str]
    """Value → parameters, or in words what is wrong with it."""


def read_age(text: str) -> timedelta | None:
    """Read how long ago: ``30m``, ``12h``, ``7d``, ``2w``; None if it is none."""
    found = _AGE.fullmatch(text)
    return timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else None


def read_day(text: str, now: datetime) -> datetime | None:
    """Read where ``today`` or ``yesterday`` begins, in UTC as dates do; None if it is neither."""
    days_ago = _DAYS_AGO.get(text.lower())
    if days_ago is None:
        return None
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days_ago)


def plain(name: str) -> Callable[[str], Mapping[str, str]]:
    """Take the value as it stands."""
    return lambda value: {name: value}


def one_of(name: str, known: Iterable[str]) -> Callable[[str], Mapping[str, str] | str]:
    """Take one of some values."""
    values = sorted(known)

    def read(value: str) -> Mapping[str, str] | str:
        if value in values:
            return {name: value}
        return _("has no value “%(value)s”.%(value_2)s") % {
            "value": value,
            "value_2": _meant(value, values) or _choice(values),
        }

    return read


def _choice(values: Iterable[str]) -> str:
    listed = ", ".join(values)
    return f" It is one of: {listed}." if listed else _(" There is none yet.")


def number(name: str, *, is_time: bool = False) -> Callable[[str], Mapping[str, str] | str]:
    """Take ``500``, ``>500``, ``<=500``, ``100..500``, ``500..`` and, for times, units: ``>2s``."""

    def whole(text: str) -> int | None:
        found = _NUMBER.fullmatch(text)
        if not found or (found[2] and not is_time):
            return None
        return int(found[1]) * (1000 if found[2] == "s" else 1)

    def read(value: str) -> Mapping[str, str] | str:
        sign = next((one for one in (">=", "<=", ">", "<") if value.startswith(one)), "")
        first, dots, second = value.removeprefix(sign).partition("..")
        least, most = whole(first), whole(second) if dots else None
        if sign and not dots and least is not None:
            if sign == "<" and least == 0:
                return _("cannot be less than 0.")
            changed = least + {">": 1, "<": -1}.get(sign, 0)
            return {f"{name}_{'min' if '>' in sign else 'max'}": str(changed)}
        if not sign and not dots and least is not None:
            return {f"{name}_min": str(least), f"{name}_max": str(least)}
        is_open = dots and not sign and (first or second)
        if is_open and (least is not None or not first) and (most is not None or not second):
            ends = (("min", least), ("max", most))
            return {f"{name}_{end}": str(found) for end, found in ends if found is not None}
        return "takes a number, such as 500, >500, <500 or 100..500."

    return read


def person(value: str) -> Mapping[str, str]:
    """Take a person's id, their whole address, or how it begins."""
    try:
        return {"user": str(UUID(value))}
    except ValueError:
        return {"label": value if "@" in value or value.endswith("*") else f"{value}*"}


def moment(name: str) -> Callable[[str], Mapping[str, str] | str]:
    """Take a date, a date and time, or how long ago."""
    return lambda value: {"range": "custom", name: value}


def read_typed(text: str, keys: Mapping[str, FilterKey], *, words: str) -> ParsedFilter:
    """Read a text. Never raises: what does not fit is told, each in a sentence of its own.

    Args:
        words: the parameter of what is no filter.
    """
    if len(text) > LONGEST:
        return ParsedFilter(
            values={},
            errors=(
                _("This is too long. It can have %(longest)s characters.")
                % {"longest": whole(LONGEST)},
            ),
        )
    terms, fault = _split(text)
    values: dict[str, str] = {}
    errors = [fault] if fault else []
    names: set[str] = set()
    plain_words: list[str] = []
    for name, value in terms:
        if name is None:
            plain_words.append(value)
            continue
        read: Mapping[str, str] | str
        read = _("is given twice.") if name in names else _read_term(name, value, keys)
        names.add(name)
        if not isinstance(read, str) and any(
            values.get(one, new) != new for one, new in read.items()
        ):
            read = _("contradicts another filter.")
        if isinstance(read, str):
            errors.append(f"“{name[:50]}” {read}")
        else:
            values |= read
    if plain_words:
        joined = " ".join(plain_words)
        if len(joined) > LONGEST_VALUE:
            errors.append(
                _("Words can have at most %(most)s characters.") % {"most": LONGEST_VALUE}
            )
        else:
            values[words] = joined
    return ParsedFilter(values=values, errors=tuple(errors))


def quoted(value: str) -> str:
    """Give a value as it can be typed."""
    return in_quotes(value) if any(one.isspace() or one == '"' for one in value) else value


def in_quotes(value: str) -> str:
    """Give a value so that nothing in it is taken for more than a text."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def with_value(text: str, name: str, before: str, after: str) -> str:
    """Give the text with another value wherever a filter of this name has the one before; the rest stays as it was typed."""

    def changed(term: re.Match[str]) -> str:
        key, _quotes, _bare = term.groups()
        if key is None or key.lower() != name or _value_of(term) != before:
            return term[0]
        return f"{key}:{quoted(after)}"

    return _TERM.sub(changed, text)


def _value_of(term: re.Match[str]) -> str:
    _name, in_quotes, bare = term.groups()
    return _ESCAPED.sub(r"\1", in_quotes) if in_quotes is not None else bare or ""


def _split(text: str) -> tuple[list[tuple[str | None, str]], str]:
    """Give names with values, and what is wrong with the text if it cannot be split."""
    terms: list[tuple[str | None, str]] = []
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        found = _TERM.match(text, place)
        if found is None:
            return terms, _("A quotation mark is missing near “%(text)s”.") % {
                "text": text[place : place + 30]
            }
        if len(terms) == MOST_TERMS:
            return terms, _("There are more than %(most)s filters.") % {"most": MOST_TERMS}
        place = found.end()
        terms.append((found[1].lower() if found[1] else None, _value_of(found)))
    return terms, ""


def _read_term(name: str, value: str, keys: Mapping[str, FilterKey]) -> Mapping[str, str] | str:
    key = keys.get(name)
    if key is None:
        return _(
            "is no filter.%(name)s To search for the text itself, put it in quotation marks."
        ) % {"name": _meant(name, keys)}
    if not value:
        return _("needs a value.")
    if len(value) > LONGEST_VALUE:
        return _("can have at most %(most)s characters.") % {"most": LONGEST_VALUE}
    return key.read(value)


def _meant(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1)
    return _(" Did you mean “%(found)s”?") % {"found": found[0]} if found else ""
