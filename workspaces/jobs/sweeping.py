"""Regular work on rows of all workspaces: no row that cannot be dealt with keeps those behind it waiting.

A sweep goes past what fails, and begins at another row each time where it may not come to the end.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from django.db import models

from workspaces.database import is_unavailable
from workspaces.errors import NotFound

logger = logging.getLogger(__name__)

SWEEP_SECONDS: Final = 60.0
"""How long one run goes on; the next one does the rest."""
_MOST_FOUND: Final = 20_000
_AT_ONCE: Final = 100
_MOST_REFUSED: Final = 3

_Row = TypeVar("_Row", bound=models.Model)


def sweep(
    rows: models.QuerySet[_Row],
    take: Callable[[_Row], int | bool],
    *,
    label: str,
    most: int,
    seconds: float = SWEEP_SECONDS,
) -> int:
    """Let `take` have one row after the other; gives the sum of what it gave.

    Args:
        rows: what is due; `take` looks again, in its own transaction, whether it still is.
        take: gives how much it did. What it raises is logged, and the row is left for the next run.
        label: names the sweep in the log.
        most: after so much done the run ends. What failed does not count.

    Raises:
        DatabaseError: the database is away.
    """
    until = time.monotonic() + seconds
    ids: list[Any] = list(rows.values_list("pk", flat=True)[:_MOST_FOUND])
    if len(ids) > most:
        # What fails must not use up the time of the same rows behind it each time.
        begin = random.randrange(len(ids))  # noqa: S311  spreads work, keeps no secret
        ids = ids[begin:] + ids[:begin]
    done, trouble = 0, _Trouble()
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        found = {row.pk: row for row in rows.filter(pk__in=some)}
        for row in (found[pk] for pk in some if pk in found):
            if done >= most or time.monotonic() > until:
                return done
            with trouble.logged(label, row):
                done += take(row)
    return done


class _Trouble:
    """What became of the rows so far: one after the other that the database refuses means that it is away."""

    def __init__(self) -> None:
        self._refused = 0

    @contextmanager
    def logged(self, label: str, row: models.Model) -> Iterator[None]:
        """Log what a row raises."""
        try:
            yield
        except NotFound:
            pass  # somebody else was faster
        except Exception as error:
            self._refused = self._refused + 1 if is_unavailable(error) else 0
            if self._refused == _MOST_REFUSED:
                raise
            logger.exception("row_not_swept", extra={"sweep": label, "row": str(row.pk)})
            return
        self._refused = 0
