"""What a command says while it works."""

from __future__ import annotations

from functools import partial

from django.core.management.base import OutputWrapper

from config.backups.archive import Progress, no_progress


def progress_on(output: OutputWrapper) -> Progress:
    """Give what tells steps to a person at a terminal; a timer that runs the command would mail them."""
    return partial(output.write, style_func=str) if output.isatty() else no_progress
