"""Values that people and programs send as text, each read in one way."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
_LATEST: Final = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)


def read_moment(text: str) -> datetime | None:
    """Read an ISO 8601 moment as UTC, which a moment without an offset is taken for; None if it is none.

    Databases refuse offsets that Python takes, so the offset never reaches them; and a day before and after is left, for
    what is computed from it.
    """
    try:
        moment = datetime.fromisoformat(text)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if _EARLIEST <= moment <= _LATEST else None


def read_whole_number(text: str, *, most: int, least: int = 0) -> int | None:
    """Read a whole number within bounds; None if it is none.

    What is checked is what is used: `int()` alone takes signs, spaces, underscores and the digits of other scripts, and
    raises for thousands of digits.
    """
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(most)):
        return None
    number = int(text)
    return number if least <= number <= most else None


def is_id(text: str) -> bool:
    """Whether a text is a UUID."""
    try:
        UUID(text)
    except ValueError:
        return False
    return True


class DoubledKey(ValueError):
    """A JSON object has a key twice, so two readers may take two things for its value."""


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs; for ``json.loads(object_pairs_hook=…)``.

    Raises:
        DoubledKey: a key comes twice (RFC 8259, section 4: what that means is not defined).
    """
    value = dict(pairs)
    if len(value) != len(pairs):
        raise DoubledKey("an object has the same key twice.")
    return value


def unknown_filters(given: Iterable[str], known: Iterable[str]) -> list[str]:
    """What a page says about the names in its address that it does not have, a sentence for each."""
    unknown = sorted(set(given) - set(known))
    return [_("There is no filter “%(name)s”.") % {"name": name[:50]} for name in unknown]
