"""What texts mean, as vectors: packed small, and compared fast. Pure.

Each number of a vector is packed into one byte. Beside them stand their signs, in one bit each: counting in how many
signs two vectors differ is hundreds of times faster than multiplying them, and finds those that are worth it.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Final, TypeVar

LEAST_NUMBERS: Final = 2
MOST_NUMBERS: Final = 8_192
"""In one vector; models of today give 256 to 4,096."""
_LARGEST: Final = 127
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class PackedVector:
    """A vector as it is stored."""

    signs: bytes
    numbers: bytes


def pack(vector: Sequence[float]) -> PackedVector:
    """Pack a vector; its length does not matter, only where it points.

    Raises:
        ValueError: it points nowhere, or is no vector.
    """
    largest = max(map(abs, vector), default=0.0)
    if not math.isfinite(largest) or largest <= 0.0 or any(map(math.isnan, vector)):
        raise ValueError("not a vector")
    factor = _LARGEST / largest
    return PackedVector(
        signs=_signs(vector),
        numbers=array("b", [round(number * factor) for number in vector]).tobytes(),
    )


def most_alike(
    wanted: Sequence[float], rows: Iterable[tuple[_Key, bytes]], most: int
) -> list[_Key]:
    """The keys of those whose signs are most like the wanted vector's.

    Args:
        rows: a key and the signs, of vectors with as many numbers.
    """
    signs = int.from_bytes(_signs(wanted))
    read = int.from_bytes
    distances = [((read(one) ^ signs).bit_count(), key) for key, one in rows]
    distances.sort(key=_distance)
    return [key for _, key in distances[:most]]


def similarity(wanted: Sequence[float], numbers: bytes) -> float:
    """How alike two vectors point, as cosine times the length of the wanted one: to compare, not to tell."""
    stored = array("b", numbers)
    length = math.hypot(*stored)
    return sum(map(mul, wanted, stored)) / length if length else 0.0


def fuse(rankings: Sequence[Sequence[_Key]]) -> list[_Key]:
    """One ranking of several: reciprocal rank fusion, which needs no scores that could be compared."""
    scores: dict[_Key, float] = {}
    for ranking in rankings:
        for place, key in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (_SMOOTHING + place)
    return sorted(scores, key=lambda key: -scores[key])


_SMOOTHING: Final = 60
"""Of the paper that proposed it (Cormack, Clarke and Büttcher, 2009)."""


def _signs(vector: Sequence[float]) -> bytes:
    bits = "".join(["1" if number > 0 else "0" for number in vector])
    return int(bits, 2).to_bytes((len(vector) + 7) // 8)


def _distance(row: tuple[int, object]) -> int:
    return row[0]
