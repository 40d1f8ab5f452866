"""Whether this process is about to end: then it takes on nothing new, and others are asked instead."""

from __future__ import annotations

from workspaces.errors import DomainError
from workspaces.words.texts import gettext_lazy as _

_is_begun = False


class ShuttingDown(DomainError):
    """The process ended while this was done."""

    code = "shutting_down"
    status = 503
    default_message = _(
        "Trellis was restarted before this ended. Look at what was done before you try it again."
    )


def is_shutting_down() -> bool:
    """From any thread."""
    return _is_begun


def begin() -> None:
    """The process has been told to end."""
    global _is_begun
    _is_begun = True


def cancel() -> None:
    """Take part again, after all."""
    global _is_begun
    _is_begun = False
