"""Whether somebody who follows a turn still may."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings

from chat.models import Turn
from workspaces.actors import Actor
from workspaces.models import ApiToken, User, Workspace


def may_follow(actor: Actor, turn: Turn, session_key: str | None) -> bool:
    """By today's membership, and by the token or the session that they came with."""
    if actor.user_id is None:
        return False
    user = User.objects.filter(pk=actor.user_id, is_active=True).first()
    if user is None or not Workspace.objects.open_to(user).filter(pk=turn.workspace_id).exists():
        return False
    if actor.token_id is not None:
        tokens = ApiToken.objects.for_workspace(turn.workspace_id)
        return tokens.find(actor.token_id) is not None
    store = import_module(settings.SESSION_ENGINE).SessionStore()
    return session_key is not None and bool(store.exists(session_key))
