"""What must never reach a log, a trace, an audit entry, a page or an error message. Pure.

Three nets: by value (the secrets that this process has revealed, in their usual codings: those of the workspace
that the text is of, and the platform's), by key name (`authorization`, `api_key`, …), and by shape (well-known token
formats). Keys of objects are masked as texts are, unless they are ordinary words; two of them never become one.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any, Final

from workspaces.secret_memory import (
    EVERY_WORKSPACE,
    MASK,
    SHORTEST_SECRET,
    WorkspaceId,
    is_plain,
    is_secret_key,
    mask_known,
    remember_secret,
)

__all__ = [
    "EVERY_WORKSPACE",
    "MASK",
    "WorkspaceId",
    "cut_known",
    "is_secret_key",
    "redact",
    "redact_event",
    "redact_known",
    "redact_text",
    "remember_secret",
]

# Each begins with letters, and looks back to the word's beginning only then: so the search for it takes no longer than
# reading the text, while a pattern that begins with a boundary is tried at every character.
_SHAPES = (
    ("sk-", re.compile(r"sk-(?<!\wsk-)[A-Za-z0-9_\-]{16,}")),
    ("gh", re.compile(r"gh(?<!\wgh)[pousr]_[A-Za-z0-9]{20,}")),
    ("github_pat_", re.compile(r"github_pat_(?<!\wgithub_pat_)[A-Za-z0-9_]{20,}")),
    ("xox", re.compile(r"xox(?<!\wxox)[abposr]-[A-Za-z0-9-]{10,}")),
    ("AKIA", re.compile(r"AKIA(?<!\wAKIA)[0-9A-Z]{16}\b")),
)
# Of a part that is none, all is passed over at once: it would else be read anew from each place in it.
_TOKEN = re.compile(
    r"eyJ(?<!\weyJ)(?:([A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,})|[A-Za-z0-9_-]*+)"
)
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_KEY_ENDS = re.compile(r"-----END [A-Z ]*PRIVATE KEY-----")
_AUTH_HEADER = re.compile(r"(b(?<!\wb)(?:earer|asic))\s+[a-z0-9._~+/=-]{8,}")
"""In small letters: ignoring case would be tried at every character, too."""
_URL_USER = re.compile(r"(://)[^/\s:@]+:[^/\s@]+@")

_LINK = re.compile(
    r"(?<![\w.-])(/(?:setup|invitations|join|shared|api/shared-chats(?!/people/)|accounts/confirm-email"
    r"|accounts/password/reset/key)/)[^/\s'\"<>]+"
)
"""Of a path: what lets somebody in, and what is before it."""

LONGEST_SECRET: Final = 16 * 1024
"""Of those that may stand across the end of a text that is cut: no token is longer."""
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
"""What hides nothing under whatever name."""

Note = Callable[[tuple[str | int, ...], str], None]
"""Is told the place of each masked value and the rule that masked it."""


def redact_text(text: str, *, workspace_id: WorkspaceId) -> str:
    """The text with every known or recognisable secret masked.

    Args:
        workspace_id: whose text it is; None: the platform's, so that no workspace's secrets are known.
    """
    return _redact_text(text, workspace_id)[0]


def redact_known(value: Any, *, workspace_id: WorkspaceId) -> Any:
    """A text or JSON-like value without the secrets that this process has revealed; whatever else it holds stays.

    For what people and models read: a name or a shape alone is no reason to change it.
    """
    mask = partial(mask_known, workspace_id=str(workspace_id))
    return _redact_known(value, mask, MaskedNames(mask))


def _redact_known(value: Any, mask: Callable[[str], str], names: MaskedNames) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, (dict, Mapping)):  # a dict is told faster than a Mapping
        return {
            name: _redact_known(item, mask, names)
            for name, item in zip(names.of(value), value.values(), strict=True)
        }
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_redact_known(item, mask, names) for item in value]
    return value


class MaskedNames:
    """The keys of the objects within one value, as they may be shown. Ordinary words stay, unless the caller says otherwise."""

    def __init__(
        self, mask: Callable[[str], str], *, stays: Callable[[str], bool] = is_plain
    ) -> None:
        self._mask, self._stays = mask, stays
        self._clean: set[str] = set()
        """Those without secrets: objects in a list have the same few."""

    def of(self, value: Mapping[Any, Any]) -> Iterable[str]:
        """The keys of an object, in their order, each another one."""
        if self._clean.issuperset(value):
            return value
        names = [str(key) for key in value]
        new = [name for name in names if name not in self._clean]
        together = "\n".join(new)  # one look at all takes less than one at each
        if self._mask(together) == together:
            self._clean.update(new)
            return names
        return _made_distinct(names, [self._shown(name) for name in names])

    def _shown(self, name: str) -> str:
        masked = self._mask(name)
        return name if masked == name or self._stays(name) else masked


def _made_distinct(names: Sequence[str], shown: Sequence[str]) -> list[str]:
    taken = set(names)
    times: Counter[str] = Counter()
    distinct = []
    for name, masked in zip(names, shown, strict=True):
        candidate = masked
        while masked != name and candidate in taken:
            times[masked] += 1
            candidate = f"{masked} ({times[masked] + 1})"
        taken.add(candidate)
        distinct.append(candidate)
    return distinct


def cut_known(text: str, most: int, *, workspace_id: WorkspaceId) -> str:
    """The beginning of a text without the secrets that this process has revealed.

    They are masked first: half of one would not be known. What is masked is shorter, so half of one may come near the end.
    """
    masked = mask_known(text[: most + LONGEST_SECRET], workspace_id=workspace_id)
    if len(text) > most + LONGEST_SECRET:
        masked = masked[:-LONGEST_SECRET]
    return masked[:most]


def _redact_text(text: str, workspace_id: WorkspaceId) -> tuple[str, str]:
    """The text, and the first rule that masked something in it; "" if none did."""
    if len(text) < SHORTEST_SECRET:
        return text, ""
    plain, text = text, mask_known(text, workspace_id=workspace_id)
    rule = "known" if text != plain else ""
    text = _mask_shapes(text)
    if not rule and text != plain:
        rule = "shape"
    return text, rule


def _mask_shapes(text: str) -> str:
    for beginning, shape in _SHAPES:
        if beginning in text:
            text = shape.sub(MASK, text)
    if "eyJ" in text:
        text = _TOKEN.sub(lambda found: MASK if found[1] else found[0], text)
    if "-----BEGIN " in text:
        text = _mask_keys(text)
    text = _mask_auth(text)
    return _URL_USER.sub(rf"\1{MASK}@", text) if "://" in text else text


def _mask_keys(text: str) -> str:
    kept: list[str] = []
    end = 0
    while begins := _KEY_BEGINS.search(text, end):
        ends = _KEY_ENDS.search(text, begins.end())
        if ends is None:  # so no other one ends either
            break
        kept += (text[end : begins.start()], MASK)
        end = ends.end()
    return "".join((*kept, text[end:]))


def _mask_auth(text: str) -> str:
    lower = text.lower() if text.isascii() else text.translate(_LOWER)
    kept: list[str] = []
    end = 0
    for found in _AUTH_HEADER.finditer(lower):
        kept += (text[end : found.end(1)], f" {MASK}")
        end = found.end()
    return "".join((*kept, text[end:])) if kept else text


_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""For other texts: their own small letters may be longer, and places would no longer fit."""


def redact(value: Any, note: Note | None = None, *, workspace_id: WorkspaceId) -> Any:
    """A JSON-like value with secrets masked: by key name ("key"), by value ("known"), by shape ("shape").

    Args:
        note: is told what was masked, and by which of these rules.
        workspace_id: whose value it is; None: the platform's.
    """
    whose = str(workspace_id)  # as text, which every string in it is looked up by
    if isinstance(value, str):
        return _Redaction(note, whose).value(value, ())
    texts: list[str] = []
    names: dict[str, None] = {}
    try:
        copied = _copy(value, texts, names)
    except _SecretNamed:
        return _Redaction(note, whose).value(value, ())
    # Nearly always there is nothing to mask, and one look at all texts takes less than one at each.
    _, rule = _redact_text("\n".join((*texts, *names)), whose)
    return _Redaction(note, whose).value(value, ()) if rule else copied


class _SecretNamed(Exception):
    """A name says that its value is a secret."""


def _copy(value: Any, texts: list[str], names: dict[str, None]) -> Any:
    """A copy of a JSON-like value that has no secrets by name; its texts and its names are put aside.

    Raises:
        _SecretNamed: it has one.
    """
    if isinstance(value, str):
        texts.append(value)
        return value
    if isinstance(value, (dict, Mapping)):  # a dict is told faster than a Mapping
        copied = {}
        for key, item in value.items():
            name = str(key)
            if is_secret_key(name) and item not in _EMPTY:
                raise _SecretNamed
            names[name] = None
            if type(item) is str:
                texts.append(item)
                copied[name] = item
            else:
                copied[name] = _copy(item, texts, names)
        return copied
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_copy(item, texts, names) for item in value]
    return value


class _Redaction:
    """One value that has something to be masked."""

    def __init__(self, note: Note | None, workspace_id: str) -> None:
        self._note = note or (lambda _place, _rule: None)
        self._mask = partial(_redact_text, workspace_id=workspace_id)
        self._names = MaskedNames(lambda name: self._mask(name)[0])

    def value(self, value: Any, path: tuple[str | int, ...]) -> Any:
        if isinstance(value, str):
            text, rule = self._mask(value)
            if rule:
                self._note(path, rule)
            return text
        if isinstance(value, (dict, Mapping)):  # a dict is told faster than a Mapping
            return {
                name: self._named(str(key), item, path, name)
                for (key, item), name in zip(value.items(), self._names.of(value), strict=True)
            }
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            return [self.value(item, (*path, place)) for place, item in enumerate(value)]
        return value

    def _named(self, name: str, value: Any, path: tuple[str | int, ...], shown: str) -> Any:
        place = (*path, shown)
        if shown != name:
            self._note(place, self._mask(name)[1])
        if is_secret_key(name) and value not in _EMPTY:
            self._note(place, "key")
            return MASK
        return self.value(value, place)


def redact_event(
    logger: object, method_name: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor: the last one before rendering.

    Whoever reads the log can open nothing with it either: of an address that lets somebody in, the secret is masked.
    """
    for key, value in list(event.items()):
        if isinstance(value, str | Mapping | list | tuple):
            masked = MASK if is_secret_key(key) else redact(value, workspace_id=EVERY_WORKSPACE)
            has_address = isinstance(masked, str) and "/" in masked
            event[key] = _LINK.sub(rf"\1{MASK}", masked) if has_address else masked
    return event
