"""What of an entry is sealed: one mapping, which the seal hashes and the verifiable export carries."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from django.db import models

from audit.models import AuditEntry
from audit.proof.trellis_verify import MOST_EXACT_INTEGER

ERASABLE: Final = frozenset({"arguments_preview", "result_preview"})
"""Can be emptied on request; the keyed `body_commitment` covers them."""
UNSEALED: Final = ERASABLE | {"mark"}
"""What the seal does not cover. The mark is made over what it does."""

_MOST_DEPTH = 100


def record_of(entry: AuditEntry) -> dict[str, Any]:
    """Every column as a JSON value, but those that can be erased, the mark, and those that are empty.

    Empty ones are left out so that a new column changes nothing of what was sealed before it came.
    """
    record = {}
    for name, convert in _COLUMNS:
        value = getattr(entry, name)
        # By its type: a UUID would compare itself in Python.
        if value is not None and not (type(value) is str and not value):
            record[name] = value if convert is None else convert(value)
    return record


def moment(value: datetime) -> str:
    """UTC, ISO 8601, always with microseconds."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _json_value(value: Any, depth: int = 0) -> Any:
    """A JSON value that RFC 8785 can write: what it cannot becomes a text. Never raises, or sealing would stop."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MOST_EXACT_INTEGER else str(value)
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if depth >= _MOST_DEPTH:
        return json.dumps(value, sort_keys=True)
    if isinstance(value, dict):
        # Most are plain texts, which need no call of this function.
        return {
            (k if type(k) is str and k.isascii() else _json_value(str(k))): (
                item if type(item) is str and item.isascii() else _json_value(item, depth + 1)
            )
            for k, item in value.items()
        }
    return [_json_value(item, depth + 1) for item in value]


def _converter(field: models.Field[Any, Any]) -> Callable[[Any], Any] | None:
    if isinstance(field, models.UUIDField):
        return str
    if isinstance(field, models.DateTimeField):
        return moment
    if isinstance(field, models.JSONField | models.BigIntegerField):
        return _json_value
    return None


_COLUMNS: Final = tuple(
    (field.attname, _converter(field))
    for field in AuditEntry._meta.concrete_fields
    if field.attname not in UNSEALED
)
