"""What a command says while it works."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.core.management.base import OutputWrapper

from config.backups.archive import untold


def told_to(output: OutputWrapper) -> Callable[[str], object]:
    """Give what tells steps to a person at a terminal; a timer that runs the command would mail them."""
    return partial(output.write, style_func=str) if output.isatty() else untold
