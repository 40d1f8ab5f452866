"""What is masked before anything is written: secrets always; by path and by kind of data as a workspace wishes.

A mask does not say how long the value was. Where it stands and by which rule is kept with the entry.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

from audit.bodies.detectors import DETECTORS
from workspaces.errors import InvalidInput
from workspaces.redaction import MASK, MaskedNames, redact

if TYPE_CHECKING:
    import jsonpath

__all__ = ["DETECTORS", "MaskedPath", "MaskedValue", "Masking", "read_masked_path"]

MOST_MARKS: Final = 50
MOST_PATHS: Final = 100
_LINE: Final = re.compile(
    r"(?:(?P<server>[^\s/$]{1,200})(?:/(?P<tool>[^\s$]{1,256}))?\s+)?(?P<path>\$.{0,500})"
)


@dataclass(frozen=True, slots=True)
class MaskedValue:
    """One masked value."""

    path: str
    """JSONPath, normalized (RFC 9535, section 2.7)."""
    rule: str
    """"key", "known", "shape", "path", or a detector's name."""

    def as_json(self) -> dict[str, str]:
        """As it is kept with the entry."""
        return {"path": self.path, "rule": self.rule}


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedPath:
    """A place in arguments or results whose value is never written, of all tools or of some."""

    query: jsonpath.JSONPath
    server: str = ""
    tool: str = ""

    def fits(self, server: str, tool: str) -> bool:
        """Whether it speaks of this tool."""
        return self.server in {"", "*", server} and self.tool in {"", "*", tool}


@lru_cache(1_000)
def read_masked_path(line: str) -> MaskedPath:
    """Read ``$.arguments.customer.ssn`` or ``server/tool $.result..email``.

    Raises:
        InvalidInput: no JSONPath (RFC 9535), one with a filter, or one that looks everywhere more than once.
    """
    found = _LINE.fullmatch(line.strip())
    if found is None:
        raise InvalidInput(
            _("“%(line)s” is not a path such as $.arguments.customer.ssn.") % {"line": line[:80]}
        )
    if "?" in found["path"]:
        raise InvalidInput(
            _("“%(line)s” has a filter. Name the place itself.") % {"line": line[:80]}
        )
    if found["path"].count("..") > 1 or "..*" in found["path"] or "..[*" in found["path"]:
        # Several would be tried in every combination, for each value of a foreign text.
        raise InvalidInput(
            _("“%(line)s” searches everywhere more than once. Name the place.")
            % {"line": line[:80]}
        )
    import jsonpath  # heavy, and needed only where a workspace masks paths

    try:
        query = jsonpath.JSONPathEnvironment(strict=True).compile(found["path"])
    except jsonpath.JSONPathError as error:
        raise InvalidInput(
            _("“%(line)s” is not a JSONPath: %(args)s.")
            % {"line": line[:80], "args": error.args[0]}
        ) from error
    assert isinstance(query, jsonpath.JSONPath)  # the strict grammar joins no paths
    return MaskedPath(query=query, server=found["server"] or "", tool=found["tool"] or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """One workspace's rules, for one tool."""

    workspace_id: UUID | None = None
    """Whose secrets are masked, besides the platform's."""
    paths: Sequence[MaskedPath] = ()
    detectors: Sequence[str] = ()

    def apply(self, value: Any, *, root: str) -> tuple[Any, list[MaskedValue]]:
        """Mask a JSON value; gives a copy, and what was masked.

        Args:
            root: "arguments" or "result": where the paths begin.
        """
        marks = _Marks(root)
        masked = redact(value, marks.note, workspace_id=self.workspace_id)
        for path in self.paths:
            masked = _mask_path(value, masked, path, root, marks)
        if self.detectors:
            masked = _Detection(self.detectors, marks).value(masked, ())
        return masked, marks.found


class _Detection:
    """One value, in which personal data is masked, also where it is a key."""

    def __init__(self, detectors: Sequence[str], marks: _Marks) -> None:
        self._detectors = detectors
        self._marks = marks
        # A number is as ordinary as a word, and may be a card's.
        self._names = MaskedNames(lambda name: self._find(name)[0], stays=lambda _name: False)

    def value(self, value: Any, place: tuple[str | int, ...]) -> Any:
        if isinstance(value, dict):
            return {
                shown: self._named(key, item, (*place, shown))
                for (key, item), shown in zip(value.items(), self._names.of(value), strict=True)
            }
        if isinstance(value, list):
            return [self.value(item, (*place, at)) for at, item in enumerate(value)]
        if isinstance(value, str):
            return self._text(value, place)
        if isinstance(value, int | float) and not isinstance(value, bool):
            text = self._text(str(value), place)
            return value if text == str(value) else text
        return value

    def _named(self, name: str, value: Any, place: tuple[str | int, ...]) -> Any:
        if place[-1] != name:
            self._text(name, place)
        return self.value(value, place)

    def _text(self, text: str, place: tuple[str | int, ...]) -> str:
        masked, rules = self._find(text)
        for rule in rules:
            self._marks.note(place, rule)
        return masked

    def _find(self, text: str) -> tuple[str, list[str]]:
        rules = []
        for name in self._detectors:
            spans = DETECTORS[name][1](text)
            if spans:
                rules.append(name)
            for start, end in reversed(spans):
                text = f"{text[:start]}{MASK}{text[end:]}"
        return text, rules


@dataclass(slots=True)
class _Marks:
    """Collects a bounded number of marks."""

    root: str
    found: list[MaskedValue] = field(default_factory=list)

    def note(self, place: tuple[str | int, ...], rule: str) -> None:
        if len(self.found) < MOST_MARKS:
            self.found.append(MaskedValue(_normalized((self.root, *place)), rule))


def _normalized(place: tuple[str | int, ...]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f"['{_escaped(step)}']" for step in place)
    return f"${''.join(steps)}"[:300]


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")


def _mask_path(value: Any, masked: Any, path: MaskedPath, root: str, marks: _Marks) -> Any:
    """Mask what a path names in a value. Keys may be masked already, so the path is looked for in the value as it was."""
    document = {root: masked}
    names: dict[int, dict[str, str]] = {}
    for match in path.query.finditer({root: value}):
        place = _place_in(document, {root: value}, match.parts, names)
        if not place:
            continue  # "$" alone: the document itself stays one; or masked whole
        holder: Any = document
        for part in place[:-1]:
            holder = holder[part]
        if holder[place[-1]] != MASK:
            holder[place[-1]] = MASK
            marks.note(place[1:], "path")
    return document[root]


def _place_in(
    masked: Any, value: Any, parts: Sequence[str | int], names: dict[int, dict[str, str]]
) -> tuple[str | int, ...]:
    """The same place in the masked value; none if what is around it is masked as a whole.

    Args:
        names: by object, its keys as they are masked; filled here, where a key is.
    """
    place: list[str | int] = []
    for part in parts:
        if masked == MASK:
            return ()
        own = part
        if isinstance(part, str) and part not in masked:
            if id(value) not in names:
                names[id(value)] = dict(zip(value, masked, strict=True))
            own = names[id(value)][part]
        masked, value = masked[own], value[part]
        place.append(own)
    return tuple(place)
