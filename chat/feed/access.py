"""Whether somebody who follows a turn still may."""

from __future__ import annotations

from chat.models import Turn
from workspaces.actors import Actor
from workspaces.models import ApiToken, User
from workspaces.people.entering import open_workspaces
from workspaces.people.session_store import is_session_of


def may_follow(actor: Actor, turn: Turn, session_key: str | None) -> bool:
    """By today's membership, and by the token or the session that they came with."""
    if actor.user_id is None:
        return False
    user = User.objects.filter(pk=actor.user_id, is_active=True).first()
    if user is None or not open_workspaces(user).filter(pk=turn.workspace_id).exists():
        return False
    if actor.token_id is not None:
        tokens = ApiToken.objects.for_workspace(turn.workspace_id)
        return tokens.living().find(actor.token_id) is not None
    return session_key is not None and is_session_of(session_key, user)
