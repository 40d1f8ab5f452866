"""Values as both databases and the seal can carry them: what is written is what is read again. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_LARGEST: Final = 2**53
"""Beyond it a number is not the same in every reader. Source: RFC 8259, section 6."""
_MOST_DEPTH: Final = 100


def storable(value: Any, depth: int = 0) -> Any:
    """A JSON value whose texts have no NUL or half character, and whose numbers every reader reads alike."""
    if depth > _MOST_DEPTH:
        return "(nested too deeply)"
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_LARGEST <= value <= _LARGEST else str(value)
    if isinstance(value, float):
        # Large ones are written without a point by one database, and read as whole numbers.
        return value if abs(value) <= _LARGEST else str(value)
    if isinstance(value, Mapping):
        # Most are texts, which need no call of this function.
        return {
            _UNSTORABLE.sub("\ufffd", str(key)): _UNSTORABLE.sub("\ufffd", item)
            if type(item) is str
            else storable(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [storable(item, depth + 1) for item in value]
    return storable(str(value))


def mapping_of(value: object) -> dict[str, Any]:
    """Give a column's JSON object as it was written; an empty one where somebody put another value there past Trellis."""
    return value if isinstance(value, dict) else {}
