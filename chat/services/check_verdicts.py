"""Whether an answer does what a check expects, and if not, why, in sentences. Pure.

Everybody who may edit the bud reads the sentences, so they name tools, arguments and what the check itself says, and
nothing that a tool or the model said: that is for whoever ran the checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.utils.translation import gettext_noop as _

from chat.check_shapes import CheckShape, ExpectedCall, differing_arguments, is_tool

_MOST_NAMES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCall:
    """A tool that the bud asked for."""

    call_id: str
    server: str
    tool: str
    arguments: dict[str, Any]
    status: str
    result: str
    is_recorded: bool = False
    """It was answered from a recording."""
    was_kept_back: bool = False
    """It may change data, and the check has no recording for it."""

    @property
    def name(self) -> str:
        return f"{self.server}.{self.tool}" if self.server else self.tool

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def faults_of(expected: CheckShape, *, answer: str, calls: Sequence[MadeCall]) -> list[str]:
    """Give what is not as expected; empty: all is. What a model has to judge is not looked at."""
    faults = [fault for one in expected.calls if (fault := _fault_of_call(one, calls)) is not None]
    spoken = _plain(answer)
    faults += [
        _("The answer does not contain “%(words)s”.") % {"words": words}
        for words in expected.contains
        if _plain(words) not in spoken
    ]
    faults += [
        _("The answer contains “%(words)s”, which it should not.") % {"words": words}
        for words in expected.excludes
        if _plain(words) in spoken
    ]
    return faults


def notes_of(calls: Iterable[MadeCall]) -> list[str]:
    """Give what else is to be known: writing tools that were not called."""
    notes = []
    for call in calls:
        if call.is_recorded:
            note = _("%(tool)s was not called. Its recorded result was used.")
            notes.append(note % {"tool": call.name})
        elif call.was_kept_back:
            note = _(
                "%(tool)s was not called, because it may change data and the check has no recorded result for it."
            )
            notes.append(note % {"tool": call.name})
    return list(dict.fromkeys(notes))


def _fault_of_call(expected: ExpectedCall, calls: Sequence[MadeCall]) -> str | None:
    same = [call for call in calls if is_tool(expected.tool, server=call.server, tool=call.tool)]
    if not same:
        made = list(dict.fromkeys(call.name for call in calls))
        if not made:
            return _("It should have called %(tool)s, but it called no tool.") % {
                "tool": expected.tool
            }
        shown = ", ".join(made[:_MOST_NAMES])
        message = (
            _("It should have called %(tool)s, but it called %(made)s and others.")
            if len(made) > _MOST_NAMES
            else _("It should have called %(tool)s, but it called %(made)s.")
        )
        return message % {"tool": expected.tool, "made": shown}
    wrong = [differing_arguments(expected.arguments, call.arguments) for call in same]
    if not all(wrong):
        return None
    names = ", ".join(f"“{name}”" for name in min(wrong, key=len))
    return _("It called %(tool)s, but not with the expected value for %(names)s.") % {
        "tool": expected.tool,
        "names": names,
    }


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
