"""How often one person may have the provider asked."""

from __future__ import annotations

from typing import Final

from mcp_servers.registry.limits import count_up
from workspaces.actors import Actor

MOST_HOSTED: Final = 30
"""Of what one person has the provider of hosted servers do, with the workspace's one key."""
MOST_POLLS: Final = 600
"""A page that waits for a sign-in asks every three seconds, and several may be open."""


def count_hosted(actor: Actor) -> None:
    """Count one more request on which the provider of hosted servers is asked to do something.

    Raises:
        RateLimited: there were too many within the window.
    """
    count_up(f"hosted:{actor.user_id}", MOST_HOSTED)


def count_poll(actor: Actor) -> None:
    """Count one more question about what became of a sign-in at that provider.

    Raises:
        RateLimited: there were too many within the window.
    """
    count_up(f"hosted-poll:{actor.user_id}", MOST_POLLS)
