"""How often one person may have pages reach out to other hosts."""

from __future__ import annotations

from typing import Final

from django.core.cache import cache

from workspaces.actors import Actor
from workspaces.errors import RateLimited

WINDOW_SECONDS: Final = 600
MOST_SIGN_INS: Final = 30
"""Begun or ended by one person within the window."""
MOST_HOSTED: Final = 30
"""Of what one person has the provider of hosted servers do, with the workspace's one key."""
MOST_POLLS: Final = 600
"""A page that waits for a sign-in asks every three seconds, and several may be open."""


def count_sign_in(actor: Actor, what: str) -> None:
    """Count one more.

    Raises:
        RateLimited: there were too many within the window.
    """
    _count(f"sign-in:{what}:{actor.user_id}", MOST_SIGN_INS)


def count_hosted(actor: Actor) -> None:
    """Count one more request on which the provider of hosted servers is asked to do something.

    Raises:
        RateLimited: there were too many within the window.
    """
    _count(f"hosted:{actor.user_id}", MOST_HOSTED)


def count_poll(actor: Actor) -> None:
    """Count one more question about what became of a sign-in at that provider.

    Raises:
        RateLimited: there were too many within the window.
    """
    _count(f"hosted-poll:{actor.user_id}", MOST_POLLS)


def _count(key: str, most: int) -> None:
    cache.add(key, 0, WINDOW_SECONDS)
    try:
        count = cache.incr(key)
    except ValueError:  # it ran out between the two
        return
    if count > most:
        raise RateLimited("That was too much at once. Wait some minutes and try again.")
