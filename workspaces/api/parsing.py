"""Request bodies: JSON that is bounded in size and depth and means the same to everybody who reads it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from workspaces.words.text_values import object_of

MAX_DEPTH = 64
MOST_DIGITS = 400
"""Of a whole number. The largest float has 309."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class BodyTooLarge(APIException):
    """413."""

    status_code = 413
    default_detail = "The request body is too large."
    default_code = "too_large"


class NoRoomForBody(APIException):
    """507."""

    status_code = 507
    default_detail = "The server's disk has no room for what you sent. Tell whoever runs it."
    default_code = "no_room"


class StrictJSONParser(BaseParser):
    """``application/json`` without what two parsers read in two ways, or a database cannot store.

    Refused, always with 400: nesting deeper than MAX_DEPTH, doubled keys, NaN and infinities (also by overflow),
    NUL characters, lone surrogates, numbers of absurd length, and encodings other than UTF-8.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Read the body.

        Raises:
            ParseError: it is not such JSON.
            BodyTooLarge: it is longer than the settings allow.
        """
        limit = settings.TRELLIS.request_max_bytes
        raw = stream.read(limit + 1)
        if len(raw) > limit:
            raise BodyTooLarge
        return loads(raw)


def loads(raw: bytes) -> Any:
    """Decode strict JSON, or raise ParseError with words that do not repeat the input."""
    try:
        value = json.loads(
            raw.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=object_of,
        )
    except RecursionError:
        raise ParseError("The JSON is nested too deeply.") from None
    except UnicodeDecodeError:
        raise ParseError("The body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise ParseError(
            f"The body is not JSON (line {error.lineno}, column {error.colno})."
        ) from None
    except ValueError as error:
        raise ParseError(f"The JSON cannot be used: {error}") from None
    _check(value)
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is out of range.")
    return number


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError("a number is too long.")
    return int(text)


def _check(value: Any) -> None:
    """Walk without recursion, so that no depth of input can exhaust the stack."""
    waiting: list[tuple[Any, int]] = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ParseError("The JSON is nested too deeply.")
        if isinstance(item, str):
            _check_text(item)
        elif isinstance(item, dict):
            for key, inner in item.items():
                _check_text(key)
                waiting.append((inner, depth + 1))
        elif isinstance(item, list):
            waiting.extend((inner, depth + 1) for inner in item)


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise ParseError("Text must not contain the NUL character.")
    if _SURROGATE.search(text):
        raise ParseError("Text contains half of a surrogate pair.")
