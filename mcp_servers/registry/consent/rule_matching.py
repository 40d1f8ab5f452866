"""Does a call rule hold for a call? Pure.

A rule that blocks or asks is read strictly, and one that lets run narrowly: where upper and lower case, several values,
or a missing one leave room for two readings, the reading that is safer counts.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any, Final
from uuid import UUID

from mcp_servers.client.decisions import Effect
from mcp_servers.models.rule_conditions import NEGATIVE, NUMERIC, Condition, Operator
from workspaces.words.texts import gettext_noop as _

_LONGEST_NUMBER: Final = 60


class RuleUndecidable(Exception):
    """Whether a rule holds cannot be said, which is why in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedRule:
    """A rule as it is applied."""

    id: UUID
    name: str
    effect: Effect
    reason: str = ""
    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    asks_second_person: bool = False
    fault: str = ""
    """Why what is stored cannot be read; the rule then blocks all that it may be about."""

    @property
    def is_strict(self) -> bool:
        """It blocks or asks."""
        return self.effect is not Effect.AUTO


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleNames:
    """What something is called."""

    known: tuple[str, ...]
    is_all: bool = True
    """False: what it really is cannot be told, so any name may be meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedCall:
    """A call, as rules see it."""

    server: PossibleNames
    tool: PossibleNames
    is_indirect: bool = False
    """The tool runs an action that its arguments name; `tool` has that action's name."""
    is_personal: bool = False
    """The server is a member's own."""
    role: str = ""
    """Of the person who asks; empty: none is known."""
    arguments: Mapping[str, Any]


def holds(rule: AppliedRule, call: MatchedCall) -> bool:
    """Whether a rule is about this call.

    Raises:
        RuleUndecidable: it may be.
    """
    if not is_about(rule, call):
        return False
    if rule.fault:
        raise RuleUndecidable(rule.fault)
    if not rule.conditions:
        return True
    documents = _documents(call, is_strict=rule.is_strict)
    return all(_holds(one, documents, is_strict=rule.is_strict) for one in rule.conditions)


def is_about(rule: AppliedRule, call: MatchedCall) -> bool:
    """Whether it is about calls of this tool by this person, with some arguments."""
    if rule.fault:
        return True
    if not rule.is_strict and call.is_personal:
        return False  # its owner named it, and could give it any name
    if not _includes_role(rule, call.role):
        return False
    tools = rule.tools
    if call.is_indirect and not rule.is_strict:
        # What lets everything run is no word about an action that nobody thought of.
        tools = tuple(one for one in tools if one.strip("*?"))
    return _matches(rule.servers, call.server, is_strict=rule.is_strict) and _matches(
        tools, call.tool, is_strict=rule.is_strict
    )


def _includes_role(rule: AppliedRule, role: str) -> bool:
    if not rule.roles:
        return True
    return role in rule.roles if role else rule.is_strict


def _matches(patterns: Sequence[str], names: PossibleNames, *, is_strict: bool) -> bool:
    if is_strict and not names.is_all:
        return True
    return any(
        _fits(pattern, name, is_folded=is_strict) for pattern in patterns for name in names.known
    )


def _fits(pattern: str, text: str, *, is_folded: bool) -> bool:
    if is_folded:
        pattern, text = fold(pattern), fold(text)
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def fold(text: str) -> str:
    """Spellings that a lenient reader takes for one."""
    folded = unicodedata.normalize("NFKC", text).casefold().strip()
    return folded.replace("-", "_").replace(" ", "_")


# Values


def _documents(call: MatchedCall, *, is_strict: bool) -> list[Any]:
    """Where values are looked for: the arguments, and what a tool that runs actions hands on to the action."""
    found: list[Any] = [call.arguments]
    if not call.is_indirect:
        return found
    for name, value in call.arguments.items():
        if isinstance(value, Mapping | list):
            found.append(value)
        elif isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            try:
                found.append(json.loads(value))
            except (ValueError, RecursionError):
                if is_strict:
                    raise RuleUndecidable(
                        _("“%(name)s” holds JSON that cannot be read.") % {"name": name[:100]}
                    ) from None
    return found


def _holds(condition: Condition, documents: Sequence[Any], *, is_strict: bool) -> bool:
    segments = _segments(condition.path)
    values = [value for document in documents for value in _find(document, segments)]
    operator = condition.operator
    if operator is Operator.PRESENT:
        return any(value is not None for value in values)
    if operator is Operator.ABSENT:
        return all(value is None for value in values)
    is_negative = operator in NEGATIVE
    leaves = [leaf for value in values for leaf in _leaves(value)]
    if not leaves:
        return is_negative and is_strict
    # Positive and strict, or negative and narrow: the more spellings count as the same, the safer.
    is_folded = is_strict != is_negative
    found = (_compare(leaf, condition, is_folded=is_folded) for leaf in leaves)
    return any(found) if is_strict else all(found)


def _segments(path: str) -> list[str]:
    if path.startswith("/"):
        return [one.replace("~1", "/").replace("~0", "~") for one in path[1:].split("/")]
    return path.split(".")


def _find(value: Any, segments: Sequence[str]) -> list[Any]:
    """All values at a path; `*` stands for each entry, and a name behind a list for that of each entry."""
    found = [value]
    for segment in segments:
        found = [inner for one in found for inner in _step(one, segment)]
    return found


def _step(value: Any, segment: str) -> Iterator[Any]:
    if isinstance(value, Mapping):
        if segment in value:
            yield value[segment]
        elif segment == "*":
            yield from value.values()
    elif isinstance(value, list):
        if segment == "*":
            yield from value
        elif segment.isascii() and segment.isdecimal() and len(segment) < 9:
            yield from value[int(segment) : int(segment) + 1]
        else:
            for one in value:
                if isinstance(one, Mapping) and segment in one:
                    yield one[segment]


def _leaves(value: Any) -> Iterator[Any]:
    """The plain values in a value, which may be a list or an object."""
    open_values = [value]
    while open_values:
        one = open_values.pop()
        if isinstance(one, Mapping):
            open_values.extend(one.values())
        elif isinstance(one, list):
            open_values.extend(one)
        else:
            yield one


def _compare(leaf: Any, condition: Condition, *, is_folded: bool) -> bool:
    operator, wanted = condition.operator, condition.value
    if operator in NUMERIC:
        number = _number(leaf)
        if number is None:
            raise RuleUndecidable(_("“%(path)s” is not a number.") % {"path": condition.path})
        limit = Decimal(wanted)
        return number > limit if operator is Operator.GREATER else number < limit
    text = _text(leaf)
    if is_folded:
        text, wanted = _same_case(text), _same_case(wanted)
    match operator:
        case Operator.EQUALS | Operator.NOT_EQUALS:
            is_same = text == wanted or _are_equal_numbers(leaf, condition.value)
            return is_same == (operator is Operator.EQUALS)
        case Operator.CONTAINS | Operator.NOT_CONTAINS:
            return (wanted in text) == (operator is Operator.CONTAINS)
        case Operator.STARTS_WITH:
            return text.startswith(wanted)
        case Operator.ENDS_WITH:
            return text.endswith(wanted)
        case _:
            fits = _fits(wanted, text, is_folded=False)
            return fits == (operator is Operator.MATCHES)


def _same_case(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _text(leaf: Any) -> str:
    return leaf if isinstance(leaf, str) else json.dumps(leaf)


def _number(leaf: Any) -> Decimal | None:
    if isinstance(leaf, bool) or not isinstance(leaf, int | float | str):
        return None
    text = str(leaf).strip()
    if not text.isascii() or len(text) > _LONGEST_NUMBER:
        return None
    try:
        number = Decimal(text)
    except ArithmeticError:
        return None
    return number if number.is_finite() else None


def _are_equal_numbers(leaf: Any, wanted: str) -> bool:
    number, other = _number(leaf), _number(wanted)
    return number is not None and number == other
