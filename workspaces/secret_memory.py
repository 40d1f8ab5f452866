"""The secrets that this process has revealed, so that they can be masked: one memory per workspace, one of the platform. Pure.

What one workspace declares a secret masks nothing of another one, and pushes nothing out of its memory.
"""

from __future__ import annotations

import base64
import html
import json
import re
import threading
import weakref
from array import array
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from typing import Final, TypeAlias
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit
from uuid import UUID

MASK: Final = "••••••"

WorkspaceId: TypeAlias = "UUID | str | None"
"""Whose secrets are meant; None: the platform's."""
EVERY_WORKSPACE: Final = "*"
"""For what the platform's operator alone reads: logs and exported spans, which mix workspaces."""

SHORTEST_SECRET: Final = 6
_SHORTEST_PART: Final = 8
_SHORTEST_WITHOUT_NAME: Final = 16
_SHORTEST_WITHIN: Final = 10
"""A shorter piece of base64 may be there by chance."""
_MOST_REMEMBERED: Final = 5_000
"""Of one workspace, besides those that are held."""
_SURPLUS: Final = 100
"""How many more there may be before the oldest go, so that not every new one has to look for them."""
_GRAM: Final = 4
_STRIDE: Final = SHORTEST_SECRET - _GRAM + 1
"""However a form lies in a text, one of its first grams begins at a multiple of this."""
_WORD: Final = 4
"""Bytes of an `array("I")`'s items."""
_SHORTEST_OF_WORDS: Final = 2 * _WORD - 1
"""Wherever a form of so many bytes lies, it has a whole word at a multiple of a word's length."""
_WINDOW: Final = 64 * 1024
"""How much of a text is looked at in one go; in between other threads run."""
_MOST_SHORT: Final = 8
"""More forms that are shorter than that are not looked for one by one."""

_SECRET_KEY: Final = re.compile(
    r"(?:^|[_\-.\s])(?:authorization|proxy[-_]?authorization|cookie|set[-_]?cookie|password|passwd|pwd"
    r"|secret|client[-_]?secret|token|access[-_]?token|refresh[-_]?token|id[-_]?token|api[-_]?key"
    r"|apikey|x[-_]api[-_]key|private[-_]?key|credential|credentials|passphrase|session[-_]?key"
    r"|encryption[-_]?key|signing[-_]?key)(?:$|[_\-.\s])",
    re.IGNORECASE,
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_SECRET_KEYS: Final = frozenset(
    {
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "max_tokens",
        "token_id",
        "csrf_token_id",
        "progress_token",
        "progresstoken",
        "needs_secret",
    }
)
_SECRET_PARAMETERS: Final = frozenset(
    {"auth", "code", "jwt", "key", "pass", "sas", "sig", "signature"}
)
"""In a URL, besides the names that mark a secret everywhere."""
_PLAIN: Final = re.compile(r"(?:[^\W\d_]+|\d{1,8})(?:[ ._/:;,=+-]+(?:[^\W\d_]+|\d{1,8}))*")
_SCHEMED: Final = re.compile(r"[A-Za-z-]{2,20} +([^\s,]+)")
"""A header's value: a scheme, and what proves who asks. Source: RFC 9110, section 11.4."""
_KEPT_IN_URLS: Final = ("", "/", "!'()*", ";,/?:@&=+$!*'()#")
"""By libraries: all is escaped, all but slashes, and as JavaScript does in a part of an address and in a whole one."""
_PERCENT: Final = re.compile(r"%[0-9A-F]{2}")
_MARKUP: Final = re.compile(r"[<>&]")
_ESCAPED_BY_NET: Final = re.compile(r"\\(?:u[0-9a-f]{4}|.)|[&'+<>`]")
_LONGEST_WORD: Final = 20
_LONGEST_KEPT_NAME: Final = 40
_LETTERS: Final = re.compile(r"[^\W\d_]+")


def is_secret_key(name: str) -> bool:
    """Whether a field of this name holds a secret."""
    if len(name) > _LONGEST_KEPT_NAME:
        return _marks_a_secret(name)
    return _marks_a_secret_kept(name)


def _marks_a_secret(name: str) -> bool:
    if name.lower() in _NOT_SECRET_KEYS:
        return False
    return bool(_SECRET_KEY.search(_CAMEL.sub("_", name)))


_marks_a_secret_kept = lru_cache(maxsize=2048)(_marks_a_secret)
"""The same few names come in every message of a protocol and every line of a log."""


def is_plain(value: str) -> bool:
    """Whether a value is words and numbers that any text may hold, such as "production" or "eu-west-1"."""
    if not _PLAIN.fullmatch(value):
        return False
    words = _LETTERS.findall(value)
    return all(
        len(word) <= _LONGEST_WORD and (word.islower() or word.isupper() or word.istitle())
        for word in words
    )


def secrets_in_url(url: str) -> list[str]:
    """What of a URL is a secret: a password before the host, and parameters whose name or form says so.

    Each as it stands and decoded, because a server or a library may repeat either.
    """
    try:
        parts = urlsplit(url)
        userinfo = parts.netloc.rpartition("@")[0]
    except ValueError:
        return []
    found = [userinfo, userinfo.partition(":")[2]]
    for pair in parts.query.split("&"):
        name, equals, value = pair.partition("=")
        if equals and (is_secret_key(unquote(name)) or name.lower() in _SECRET_PARAMETERS):
            found.append(value)
        elif not equals and len(name) >= _SHORTEST_WITHOUT_NAME:
            found.append(name)
    forms = dict.fromkeys(form for one in found for form in (one, unquote_plus(one)))
    return [form for form in forms if len(form) >= _SHORTEST_PART and not is_plain(form)]


def without_secrets(url: str) -> str:
    """Give an address as it may be written down: what is secret in it is masked."""
    for secret in sorted(filter(None, secrets_in_url(url)), key=len, reverse=True):
        url = url.replace(secret, MASK)
    return url


def secrets_in_parameter(name: str, value: str) -> list[str]:
    """The value of a parameter that is named as a secret, if it is none of the words that any text may hold."""
    is_secret = is_secret_key(name) and len(value) >= _SHORTEST_PART and not is_plain(value)
    return [value] if is_secret else []


class HeldSecrets:
    """Secrets of something that is in use: while this object lives, none of them is forgotten."""

    def __init__(self) -> None:
        self._values: defaultdict[str, set[str]] = defaultdict(set)
        with _lock:
            _held.add(self)

    def add(self, plain: str, *, workspace_id: WorkspaceId) -> None:
        """Hold one more."""
        with _lock:
            self._values[str(workspace_id)].add(plain)

    def replace(self, plain: str, *, workspace_id: WorkspaceId) -> None:
        """Hold this one instead of all others."""
        remember_secret(plain, workspace_id=workspace_id)
        with _lock:
            self._values.clear()
            self._values[str(workspace_id)].add(plain)

    def is_empty(self) -> bool:
        """Nothing was there to be held."""
        with _lock:
            return not any(self._values.values())

    def of(self, whose: str) -> frozenset[str]:
        """What it holds of one memory; the caller has the lock."""
        return frozenset(self._values.get(whose, ()))


class _Index:
    """Texts to be found in other texts, by how they begin, so that thousands of them cost a text no more than ten.

    A text is looked at every few characters only, for any of the first grams of any form; where one is found, the forms
    that could lie there are looked up by their length.
    """

    def __init__(self) -> None:
        self._grams: dict[str, int] = {}
        self._by_head: dict[str, Mapping[int, dict[str, int]]] = {}
        """First characters → length → forms; a form counts once for each secret that has it."""
        self._words: dict[int, Counter[str]] = {}
        """Words that a form has at its beginning → such beginnings."""
        self._short: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._by_head)

    def add(self, form: str) -> None:
        for start in range(_STRIDE):
            gram = form[start : start + _GRAM]
            self._grams[gram] = self._grams.get(gram, 0) + 1
        words = _words_of(form)
        if not words:
            self._short[form] += 1
        for word in words:
            self._words.setdefault(word, Counter())[form[:_SHORTEST_OF_WORDS]] += 1
        lengths = self._by_head.get(form[:SHORTEST_SECRET])
        forms = lengths.get(len(form)) if lengths else None
        if forms is not None:
            forms[form] = forms.get(form, 0) + 1
        else:
            # Replaced as a whole, the longest first, because others may be reading without the lock.
            longer = {**(lengths or {}), len(form): {form: 1}}
            self._by_head[form[:SHORTEST_SECRET]] = {
                at: longer[at] for at in sorted(longer, reverse=True)
            }

    def remove(self, form: str) -> None:
        words = _words_of(form)
        if not words:
            _take_one(self._short, form)
        for word in words:
            _take_one(self._words[word], form[:_SHORTEST_OF_WORDS])
            if not self._words[word]:
                del self._words[word]
        for start in range(_STRIDE):
            gram = form[start : start + _GRAM]
            left = self._grams[gram] - 1
            if left:
                self._grams[gram] = left
            else:
                del self._grams[gram]
        head = form[:SHORTEST_SECRET]
        lengths = self._by_head[head]
        forms = lengths[len(form)]
        forms[form] -= 1
        if forms[form]:
            return
        del forms[form]
        if len(lengths) > 1:
            self._by_head[head] = {at: others for at, others in lengths.items() if others}
        elif not forms:
            del self._by_head[head]

    def may_begin_in(self, window: str, words: array[int]) -> bool:
        """Whether a form may begin in a window of a text; if not, none does. Much faster than looking for each.

        Args:
            words: of the window's bytes.
        """
        if len(self._short) > _MOST_SHORT or any(form in window for form in tuple(self._short)):
            return True
        known = self._words
        if known.keys().isdisjoint(words):
            return False
        # A word may be there by chance, where there are many secrets; a whole beginning hardly is.
        hits = {word for word in words if word in known}
        return any(form in window for word in hits for form in tuple(known.get(word, ())))

    def length_at(self, text: str, start: int) -> int:
        """The length of the longest form that lies there; 0 if none does."""
        for length, forms in self._by_head.get(
            text[start : start + SHORTEST_SECRET], _NOTHING
        ).items():
            if text[start : start + length] in forms:
                return length
        return 0

    @property
    def grams(self) -> Mapping[str, int]:
        """The first grams of all forms."""
        return self._grams


_NOTHING: Final[Mapping[int, dict[str, int]]] = {}


class _Memory:
    """The secrets of one workspace, or of the platform, newest last."""

    def __init__(self, whose: str) -> None:
        self.index = _Index()
        self._whose = whose
        self._values: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    def add(self, plain: str) -> None:
        if plain in self._values:
            self._values.move_to_end(plain)
            return
        self._values[plain] = _codings(plain)
        for form in self._values[plain]:
            self.index.add(form)
            _everything.add(form)
        if len(self._values) > _MOST_REMEMBERED + _SURPLUS:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        held = frozenset[str]().union(*(one.of(self._whose) for one in _held))
        old = [plain for plain in self._values if plain not in held]
        for plain in old[: max(len(self._values) - _MOST_REMEMBERED, 0)]:
            for form in self._values.pop(plain):
                self.index.remove(form)
                _everything.remove(form)


_lock: Final = threading.RLock()
_held: Final[weakref.WeakSet[HeldSecrets]] = weakref.WeakSet()
_memories: Final[dict[str, _Memory]] = {}
_everything: Final = _Index()
"""All memories as one."""
_PLATFORM: Final = str(None)
_collecting: ContextVar[HeldSecrets | None] = ContextVar("collecting", default=None)


def remember_secret(plain: str, *, workspace_id: WorkspaceId) -> None:
    """From now on this value is masked in whatever is written or shown of this workspace.

    Args:
        workspace_id: None for a secret of the platform's own, which is masked everywhere.
    """
    if len(plain) < SHORTEST_SECRET:
        return
    whose = str(workspace_id)
    with _lock:
        memory = _memories.get(whose)
        if memory is None:
            memory = _memories[whose] = _Memory(whose)
        collecting = _collecting.get()
        if collecting is not None:
            collecting.add(plain, workspace_id=workspace_id)
        memory.add(plain)


@contextmanager
def holding_secrets() -> Iterator[HeldSecrets]:
    """Hold what is remembered within the block for as long as the result lives."""
    held = HeldSecrets()
    before = _collecting.set(held)
    try:
        yield held
    finally:
        _collecting.reset(before)


def mask_known(text: str, *, workspace_id: WorkspaceId) -> str:
    """The text without any secret of this workspace or of the platform."""
    if workspace_id == EVERY_WORKSPACE:
        return _masked(text, _everything, None)
    platform, own = _memories.get(_PLATFORM), _memories.get(str(workspace_id))
    first, second = own or platform, platform if own is not platform else None
    if first is None:
        return text
    return _masked(text, first.index, second.index if second else None)


def _masked(text: str, first: _Index, second: _Index | None) -> str:
    places: list[int] = []
    for begin in range(0, len(text), _WINDOW):
        places += _places(text, begin, first, second)
    if not places:
        return text
    kept: list[str] = []
    end = 0
    for place in places:
        for start in range(max(place - _STRIDE + 1, end), place + 1):
            length = first.length_at(text, start)
            if second is not None:
                length = max(length, second.length_at(text, start))
            if length:
                kept += (text[end:start], MASK)
                end = start + length
                break
    kept.append(text[end:])
    return "".join(kept)


def _places(text: str, begin: int, first: _Index, second: _Index | None) -> list[int]:
    """Where in a text's window something stands that a form may begin with."""
    window = text[begin : begin + _WINDOW + _SHORTEST_OF_WORDS]
    words = _as_words(window.encode("utf-8", "surrogatepass"))
    # One look for all memories; what is only another workspace's is not found by what follows.
    if not _everything.may_begin_in(window, words):
        return []
    starts = range(
        -(-begin // _STRIDE) * _STRIDE,
        min(begin + _WINDOW + _STRIDE, len(text) - _GRAM + 1),
        _STRIDE,
    )
    grams = first.grams
    if second is None or not second.grams:
        return [at for at in starts if text[at : at + _GRAM] in grams]
    others = second.grams
    return [at for at in starts if (gram := text[at : at + _GRAM]) in grams or gram in others]


def _as_words(raw: bytes) -> array[int]:
    words = array("I")
    words.frombytes(raw[: len(raw) // _WORD * _WORD])
    return words


def _words_of(form: str) -> list[int]:
    raw = form.encode("utf-8", "surrogatepass")
    if len(raw) < _SHORTEST_OF_WORDS:
        return []
    return [word for at in range(_WORD) for word in _as_words(raw[at : at + _WORD])]


def _take_one(counter: Counter[str], one: str) -> None:
    counter[one] -= 1
    if not counter[one]:
        del counter[one]


def _codings(plain: str) -> tuple[str, ...]:
    """The secret, and what of it opens something alone, in every coding they may appear in."""
    forms = set[str]()
    for secret in (plain, *_parts_of(plain)):
        raw = secret.encode()
        forms |= {
            secret,
            raw.hex(),
            raw.hex().upper(),
            base64.b64encode(raw).decode().rstrip("="),
            base64.urlsafe_b64encode(raw).decode().rstrip("="),
            *_within_base64(raw),
            *_within_urls(secret),
            *_within_json(secret),
            *_within_pages(secret),
        }
    return tuple(form for form in forms if len(form) >= SHORTEST_SECRET)


def _parts_of(plain: str) -> list[str]:
    """What follows the scheme of a header, the password in an address, and such values within JSON."""
    found = secrets_in_url(plain) if "://" in plain else []
    if schemed := _SCHEMED.fullmatch(plain):
        found += (schemed[1], *_password_of(schemed[1]))
    if plain.startswith("{"):
        with suppress(ValueError, RecursionError):
            found += _secrets_in_json("", json.loads(plain))
    return [part for part in found if len(part) >= _SHORTEST_PART and not is_plain(part)]


def _password_of(credentials: str) -> list[str]:
    """The password that stands in a header after "Basic". Source: RFC 7617, section 2."""
    try:
        pair = base64.b64decode(credentials, validate=True).decode()
    except ValueError:
        return []
    return [pair, pair.partition(":")[2]] if ":" in pair else []


def _secrets_in_json(name: str, value: object) -> list[str]:
    if isinstance(value, dict):
        return [one for key, item in value.items() for one in _secrets_in_json(key, item)]
    if isinstance(value, list):
        return [one for item in value for one in _secrets_in_json(name, item)]
    if isinstance(value, str):
        return [*([value] if is_secret_key(name) else []), *_parts_of(value)]
    return []


def _within_urls(plain: str) -> set[str]:
    """As libraries write it in forms and addresses: with other characters kept, and digits of either case."""
    coded = {quote_plus(plain), *(quote(plain, safe=kept) for kept in _KEPT_IN_URLS)}
    return coded | {_PERCENT.sub(lambda found: found[0].lower(), form) for form in coded}


def _within_json(plain: str) -> set[str]:
    """As Python and JavaScript write it; PHP escapes slashes as well, Go what pages read as markup, .NET all that may be."""
    written = {json.dumps(plain, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
    return {
        *written,
        _ESCAPED_BY_NET.sub(_by_net, json.dumps(plain)[1:-1]),
        *(form.replace("/", "\\/") for form in written),
        *(_MARKUP.sub(lambda found: f"\\u{ord(found[0]):04x}", form) for form in written),
    }


def _by_net(found: re.Match[str]) -> str:
    text = found[0]
    if text.startswith("\\u"):
        return f"\\u{text[2:].upper()}"
    return f"\\u{ord(text[-1]):04X}" if text == '\\"' or len(text) == 1 else text


def _within_pages(plain: str) -> set[str]:
    """As it stands in HTML, where libraries write quotes in many ways."""
    escaped = html.escape(plain, quote=False)
    return {
        escaped.replace('"', double).replace("'", single)
        for double in ('"', "&quot;", "&#34;")
        for single in ("'", "&#x27;", "&#39;", "&#039;")
    }


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
