"""How much of what can be repeated without end a run repeats."""

import os
from collections.abc import Sequence
from typing import Final
from zlib import crc32

IS_FULL: Final = "TRELLIS_FULL" in os.environ
"""Whether this is ``manage.py test --full``, for releases."""


def first_and_another(everything: Sequence[str], place: str) -> Sequence[str]:
    """Give all, if this run is for a release; else the first and one of the others, which differs from place to place.

    So every one of them is tried at many places, and the first one at all.
    """
    first, *others = everything
    return everything if IS_FULL else (first, others[crc32(place.encode()) % len(others)])


def one_of(everything: Sequence[str], place: str) -> Sequence[str]:
    """Give all, if this run is for a release; else one, which differs from place to place."""
    return everything if IS_FULL else (everything[crc32(place.encode()) % len(everything)],)
