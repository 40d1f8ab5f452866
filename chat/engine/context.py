"""What a turn needs to know beside its rows, read anew each time: today's rights, today's bud."""

from __future__ import annotations

from chat.engine.leases import Lease
from chat.engine.reading import fetch_turn_with_people
from chat.engine.requests import actor_of
from chat.engine.turn_cache import TurnContext
from workspaces.errors import DomainError


class LimitReached(DomainError):
    """The turn has used up one of its limits."""

    code = "limit_reached"
    status = 409


def read_context(lease: Lease) -> TurnContext:
    """The turn with its people and its bud, as they are now.

    Raises:
        PermissionDenied: the API token that started it has been revoked, or has run out.
    """
    turn, role, zone = fetch_turn_with_people(lease.workspace_id, lease.turn_id)
    return TurnContext(turn, turn.answering_bud, actor_of(turn, role), zone)
