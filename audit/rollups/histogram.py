"""Durations on a fixed logarithmic scale: what is stated of them is at most ERROR off. Pure.

Eight buckets to each doubling. A percentile is stated as the geometric middle of the bucket that holds it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from typing import Final

_PER_DOUBLING: Final = 8
_DOUBLINGS: Final = 32
BOUNDS: Final = tuple(
    sorted({0, *(math.ceil(2 ** (k / _PER_DOUBLING)) for k in range(_PER_DOUBLING * _DOUBLINGS))})
)
"""Where each bucket begins, in ms."""
ERROR: Final = 0.045
"""A stated percentile differs from the true one by at most this share (and half a millisecond of rounding)."""


def bucket_of(milliseconds: int) -> int:
    """Give the bucket of a duration; what is longer than the scale is in the last one."""
    return bisect_right(BOUNDS, max(milliseconds, 0)) - 1


def middle_of(bucket: int) -> int:
    """Give the duration that stands for a bucket."""
    low = BOUNDS[bucket]
    if bucket + 1 >= len(BOUNDS):
        return low
    return round(math.sqrt(low * (BOUNDS[bucket + 1] - 1)))


def percentile(counts: Mapping[int, int], share: float) -> int | None:
    """Give the duration within which that share of what is counted ended; None if nothing is counted."""
    total = sum(counts.values())
    if total <= 0:
        return None
    rank = max(1, math.ceil(share * total))
    seen = 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen >= rank:
            return middle_of(bucket)
    raise AssertionError("the ranks are within the total")  # pragma: no cover
