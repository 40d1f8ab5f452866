"""Whether this process is about to end: then it takes on nothing new, and others are asked instead."""

from __future__ import annotations

_is_leaving = False


def is_leaving() -> bool:
    """From any thread."""
    return _is_leaving


def leave() -> None:
    """The process has been told to end."""
    global _is_leaving
    _is_leaving = True


def stay() -> None:
    """Take part again, after all."""
    global _is_leaving
    _is_leaving = False
