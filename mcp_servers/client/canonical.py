"""JSON in one exact form: what is hashed, approved, audited and sent is the same byte string.

The form is compact, with sorted keys and unescaped Unicode, close to RFC 8785. It differs in two points that do not
matter here: keys sort by code point (not by UTF-16 unit), and numbers are written as Python writes them, which is
also how the HTTP library writes them to the wire.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias, cast

from mcp_servers.client.errors import InvalidArguments, InvalidJson
from workspaces.words.texts import gettext_noop as _

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
JsonObject: TypeAlias = "dict[str, JsonValue]"

MAX_DEPTH: Final = 64
"""Nesting of arrays and objects; a scalar has depth 0."""

MAX_ARGUMENTS_BYTES: Final = 1024 * 1024
"""Size of the canonical form of one call's arguments."""

_INTEGER_RANGE: Final = (-(2**63), 2**64 - 1)
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_write: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def check_json(value: object) -> None:
    """Make sure that a value is JSON which every store and every peer can carry.

    Raises:
        InvalidJson: nested deeper than MAX_DEPTH, a non-finite number, an integer beyond 64 bits, a key that is no
            string, a NUL or a lone surrogate in a text, or something that JSON does not know.
    """
    # A list of work instead of recursion: a hostile depth must not reach the interpreter's own limit.
    # Texts are looked at together: a call of a function for each takes longer than the look.
    texts: list[str] = []
    pending: list[tuple[object, int]] = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, (dict, list, tuple)):
            if depth >= MAX_DEPTH:
                raise InvalidJson(
                    _("the value is nested deeper than %(most)s levels") % {"most": MAX_DEPTH}
                )
            if isinstance(item, dict):
                for key, part in item.items():
                    if not isinstance(key, str):
                        raise InvalidJson(_("a key is not a text"))
                    texts.append(key)
                    pending.append((part, depth + 1))
            else:
                pending.extend([(part, depth + 1) for part in item])
        else:
            _check_scalar(item)
    if _UNSTORABLE.search("\n".join(texts)):
        raise InvalidJson(_("a text has a NUL or an unpaired surrogate"))


def canonical_json(value: object) -> bytes:
    """The one byte string that stands for a JSON value; equal values give equal bytes.

    Raises:
        InvalidJson: see check_json().
    """
    check_json(value)
    return _write(value).encode()


def as_sent(value: object) -> bytes:
    """A value for the log, as it came: canonical where it can be, else as Python writes it. Never raises for JSON."""
    try:
        return canonical_json(value)
    except InvalidJson:
        return json.dumps(value, sort_keys=True, default=str, skipkeys=True).encode()


def arguments_hash(value: object) -> str:
    """SHA-256 over the canonical form, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def parse_json(text: str | bytes, *, max_bytes: int) -> JsonValue:
    """Read foreign JSON strictly.

    Raises:
        InvalidJson: not JSON, larger than max_bytes, a key given twice, or anything that check_json() refuses.
    """
    try:
        data = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise InvalidJson(_("a text has an unpaired surrogate")) from error
    if len(data) > max_bytes:
        raise InvalidJson(_("the value is larger than %(most)s bytes") % {"most": max_bytes})
    try:
        value = json.loads(
            data,
            object_pairs_hook=_object_without_duplicates,
            parse_constant=_refuse_constant,
        )
    except RecursionError as error:
        raise InvalidJson(
            _("the value is nested deeper than %(most)s levels") % {"most": MAX_DEPTH}
        ) from error
    except (
        ValueError
    ) as error:  # also JSONDecodeError, UnicodeDecodeError, and integers of more than 4300 digits
        raise InvalidJson(_("the text is not valid JSON")) from error
    check_json(value)
    return cast("JsonValue", value)


def parse_arguments(text: str | bytes) -> JsonObject:
    """Read a tool call's arguments from JSON text, as a model or a client gives them; empty text means none.

    Raises:
        InvalidArguments: not a JSON object, or refused by parse_json().
    """
    if not text.strip():
        return {}
    try:
        value = parse_json(text, max_bytes=MAX_ARGUMENTS_BYTES)
    except InvalidJson as error:
        raise InvalidArguments(
            _("The arguments cannot be read: %(message)s.") % {"message": error.message}
        ) from error
    if not isinstance(value, dict):
        raise InvalidArguments(_("The arguments must be a JSON object."))
    return value


def clean_text(text: str) -> str:
    """Replace what databases and UTF-8 cannot carry (NUL, lone surrogates) by the replacement character."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _check_scalar(item: object) -> None:
    if item is None or isinstance(item, bool):
        return
    if isinstance(item, int):
        if not _INTEGER_RANGE[0] <= item <= _INTEGER_RANGE[1]:
            raise InvalidJson(_("a whole number is larger than 64 bits"))
    elif isinstance(item, float):
        if not math.isfinite(item):
            raise InvalidJson(_("a number is infinite or not a number"))
    else:
        raise InvalidJson(_("%(name)s is not a JSON type") % {"name": type(item).__name__})


def _object_without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise InvalidJson(_("a key appears twice"))
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(_("%(name)s is not JSON") % {"name": name})
