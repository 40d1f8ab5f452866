"""Whether this process is about to end: then it takes on nothing new, and others are asked instead."""

from __future__ import annotations

_is_begun = False


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
