"""What must never reach a log, a trace, an audit entry, a page or an error message. Pure.

Three nets: by value (every secret that this process has revealed, in its usual codings), by
key name (`authorization`, `api_key`, …), and by shape (well-known token formats).
"""

from __future__ import annotations

import base64
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import quote

MASK = "••••••"

_SHORTEST = 6
_SHORTEST_WITHIN = 10
"""A shorter piece of base64 may be there by chance."""
_MOST_REMEMBERED = 5_000

_SECRET_KEY = re.compile(
    r"(?:^|[_\-.\s])(?:authorization|proxy[-_]?authorization|cookie|set[-_]?cookie|password|passwd|pwd"
    r"|secret|client[-_]?secret|token|access[-_]?token|refresh[-_]?token|id[-_]?token|api[-_]?key"
    r"|apikey|x[-_]api[-_]key|private[-_]?key|credential|credentials|passphrase|session[-_]?key"
    r"|encryption[-_]?key|signing[-_]?key)(?:$|[_\-.\s])",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_SECRET_KEYS = frozenset(
    {
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "max_tokens",
        "token_id",
        "csrf_token_id",
    }
)
_SHAPES = (
    re.compile(r"\bsk-[A-Za-z0-9_\-]{16,}"),
    re.compile(r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}"),
    re.compile(r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
    re.compile(r"\bxox[abposr]-[A-Za-z0-9-]{10,}"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL),
)
_AUTH_HEADER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_URL_USER = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/\s:@]+:[^/\s@]+@", re.IGNORECASE)


class _Remembered:
    """The secrets revealed in this process, newest last, in every coding they may appear in.

    Found by how they begin, so that thousands of them (tokens are renewed all the time) cost a text no more than ten:
    each place of it is looked up once. One long regular expression would try them all at each place.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._by_head: dict[str, tuple[str, ...]] = {}
        """First characters → forms that begin with them, the longest first; a form stands once for each value."""

    def add(self, plain: str) -> None:
        if len(plain) < _SHORTEST:
            return
        with self._lock:
            if plain in self._values:
                self._values.move_to_end(plain)
                return
            self._values[plain] = _codings(plain)
            for form in self._values[plain]:
                head = form[:_SHORTEST]
                forms = (*self._by_head.get(head, ()), form)
                self._by_head[head] = tuple(sorted(forms, key=len, reverse=True))
            while len(self._values) > _MOST_REMEMBERED:
                _, forms = self._values.popitem(last=False)
                self._forget(forms)

    def _forget(self, forms: tuple[str, ...]) -> None:
        for form in forms:
            head = form[:_SHORTEST]
            left = list(self._by_head[head])
            left.remove(form)
            if left:
                self._by_head[head] = tuple(left)
            else:
                del self._by_head[head]

    def mask(self, text: str) -> str:
        """The text without any of them."""
        by_head = self._by_head
        places = [
            place
            for place in range(len(text) - _SHORTEST + 1)
            if text[place : place + _SHORTEST] in by_head
        ]
        if not places:
            return text
        kept: list[str] = []
        end = 0
        for place in places:
            if place < end:
                continue
            # Another thread may have taken the last one away since.
            for form in by_head.get(text[place : place + _SHORTEST], ()):
                if text.startswith(form, place):
                    kept += (text[end:place], MASK)
                    end = place + len(form)
                    break
        kept.append(text[end:])
        return "".join(kept)


def _codings(plain: str) -> tuple[str, ...]:
    raw = plain.encode()
    forms = {
        plain,
        quote(plain, safe=""),
        quote(plain),
        raw.hex(),
        raw.hex().upper(),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        plain.replace("\\", "\\\\").replace('"', '\\"'),
        *_within_base64(raw),
    }
    return tuple(form for form in forms if len(form) >= _SHORTEST)


def _within_base64(raw: bytes) -> set[str]:
    """What of a longer text's base64 depends on this value alone, wherever in the text it stands.

    Source: RFC 4648, section 4: three bytes are four characters.
    """
    forms = set()
    for shift in range(3):
        first, after = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            form = encode(bytes(shift) + raw).decode()[first:after]
            if len(form) >= _SHORTEST_WITHIN:
                forms.add(form)
    return forms


_remembered = _Remembered()


def remember_secret(plain: str) -> None:
    """From now on this value is masked wherever it would be written."""
    _remembered.add(plain)


def is_secret_key(name: str) -> bool:
    """Whether a field of this name holds a secret."""
    if name.lower() in _NOT_SECRET_KEYS:
        return False
    return bool(_SECRET_KEY.search(_CAMEL.sub("_", name)))


Note = Callable[[tuple[str | int, ...], str], None]
"""Is told the place of each masked value and the rule that masked it."""


def redact_text(text: str) -> str:
    """The text with every known or recognisable secret masked."""
    return _redact_text(text)[0]


def redact_known(value: Any) -> Any:
    """A text or JSON-like value without the secrets that this process has revealed; whatever else it holds stays.

    For what people and models read: a name or a shape alone is no reason to change it.
    """
    if isinstance(value, str):
        return _remembered.mask(value)
    if isinstance(value, Mapping):
        return {redact_known(key): redact_known(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [redact_known(item) for item in value]
    return value


def _redact_text(text: str) -> tuple[str, str]:
    """The text, and the first rule that masked something in it; "" if none did."""
    plain, text = text, _remembered.mask(text)
    rule = "known" if text != plain else ""
    for shape in _SHAPES:
        text = shape.sub(MASK, text)
    text = _AUTH_HEADER.sub(rf"\1 {MASK}", text)
    text = _URL_USER.sub(rf"\1{MASK}@", text)
    if not rule and text != plain:
        rule = "shape"
    return text, rule


def redact(value: Any, note: Note | None = None) -> Any:
    """A JSON-like value with secrets masked: by key name ("key"), by value ("known"), by shape ("shape").

    Args:
        note: is told what was masked, and by which of these rules.
    """
    return _redact(value, (), note)


def _redact(value: Any, path: tuple[str | int, ...], note: Note | None) -> Any:
    if isinstance(value, str):
        text, rule = _redact_text(value)
        if rule and note is not None:
            note(path, rule)
        return text
    if isinstance(value, Mapping):
        return {
            redact_text(str(key)): _redact_named(str(key), item, path, note)
            for key, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_redact(item, (*path, place), note) for place, item in enumerate(value)]
    return value


def _redact_named(name: str, value: Any, path: tuple[str | int, ...], note: Note | None) -> Any:
    place = (*path, name)
    if is_secret_key(name) and value not in (None, "", [], {}):
        if note is not None:
            note(place, "key")
        return MASK
    return _redact(value, place, note)


def redact_event(
    logger: object, method_name: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor: the last one before rendering."""
    for key, value in list(event.items()):
        if isinstance(value, str | Mapping | list | tuple):
            event[key] = MASK if is_secret_key(key) else redact(value)
    return event
