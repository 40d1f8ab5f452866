"""How often one person may have pages reach out to other hosts."""

from __future__ import annotations

from typing import Final

from django.core.cache import cache
from django.utils.translation import gettext as _

from workspaces.actors import Actor
from workspaces.errors import RateLimited

WINDOW_SECONDS: Final = 600
MOST_SIGN_INS: Final = 30
"""Begun or ended by one person within the window."""


def count_sign_in(actor: Actor, what: str) -> None:
    """Count one more.

    Raises:
        RateLimited: there were too many within the window.
    """
    count_up(f"sign-in:{what}:{actor.user_id}", MOST_SIGN_INS)


def count_up(key: str, most: int) -> None:
    """Count one more under a key.

    Raises:
        RateLimited: there were more than that within the window.
    """
    cache.add(key, 0, WINDOW_SECONDS)
    try:
        count = cache.incr(key)
    except ValueError:  # it ran out between the two
        return
    if count > most:
        raise RateLimited(
            _("Too many requests at once. Wait a few minutes and try again."),
            retry_seconds=WINDOW_SECONDS,
        )
