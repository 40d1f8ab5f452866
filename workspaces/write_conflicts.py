"""What the database refuses because another request was faster, in words that people can act on.

Services look before they store, and say which field is at fault. In between another request may store the same name, or
delete what this one refers to. The database notices that in any case; whoever asked has only to try again.
"""

from __future__ import annotations

import logging
from typing import Final

from django.db import DatabaseError, IntegrityError
from django.utils.translation import gettext as _

from workspaces.errors import Conflict

logger = logging.getLogger(__name__)

_GONE: Final = "did not affect any rows"
"""What Django says of a row that it should change, and that is not there."""
_STATES: Final = frozenset({"23503", "23505"})
"""Of PostgreSQL: a reference to nothing, and a second row where there may be one."""
_NAMES: Final = frozenset(
    {
        "SQLITE_CONSTRAINT_FOREIGNKEY",
        "SQLITE_CONSTRAINT_UNIQUE",
        "SQLITE_CONSTRAINT_PRIMARYKEY",
    }
)


def as_conflict(error: BaseException | None) -> Conflict | None:
    """What to tell whoever was overtaken; None for every other error. It is logged, for it may be a fault of ours."""
    if not isinstance(error, DatabaseError) or not (_is_refused(error) or _is_gone(error)):
        return None
    logger.warning("request_overtaken", exc_info=error)
    return Conflict(
        _(
            "Something that this needs was changed or deleted at the same moment, so nothing was saved. Reload, and try again."
        )
    )


def _is_refused(error: DatabaseError) -> bool:
    cause = error.__cause__
    return isinstance(error, IntegrityError) and (
        getattr(cause, "sqlstate", None) in _STATES
        or getattr(cause, "sqlite_errorname", None) in _NAMES
    )


def _is_gone(error: DatabaseError) -> bool:
    return type(error) is DatabaseError and _GONE in str(error)
