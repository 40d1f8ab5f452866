"""What a turn needs to know beside its rows, read anew each time: today's rights, today's bud."""

from __future__ import annotations

from django.utils.translation import gettext_noop

from chat.engine.leases import Lease
from chat.engine.reading import fetch_turn_with_people
from chat.engine.requests import actor_of
from chat.engine.turn_cache import TurnContext
from workspaces.errors import DomainError, PermissionDenied

OWNERS_ALONE = gettext_noop(
    "This bud is only for its owner now. Choose another bud for this chat, then ask again."
)


class LimitReached(DomainError):
    """The turn has used up one of its limits."""

    code = "limit_reached"
    status = 409


def read_context(lease: Lease) -> TurnContext:
    """The turn with its people and its bud, as they are now.

    Raises:
        PermissionDenied: the API token that started it has been revoked, or has run out; or the bud is somebody
            else's alone by now.
    """
    turn, role, zone = fetch_turn_with_people(lease.workspace_id, lease.turn_id)
    if not turn.answering_bud.is_usable_by(turn.asked_by_id):
        raise PermissionDenied(OWNERS_ALONE)
    return TurnContext(turn, turn.answering_bud, actor_of(turn, role), zone)
