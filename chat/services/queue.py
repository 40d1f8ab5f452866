"""Messages that wait for a turn to end: changed, taken back, or sent at once."""

from __future__ import annotations

from django.utils.translation import gettext as _

from chat.engine.beginning import send_queued
from chat.live.recording import changing
from chat.models import QueuedMessage, Turn
from chat.services.turns import active_turn, check_text, interrupt
from workspaces.actors import Actor
from workspaces.errors import PermissionDenied
from workspaces.roles import Permission, require


def edit_queued(*, queued: QueuedMessage, text: str, actor: Actor) -> QueuedMessage:
    """Change what will be said.

    Raises:
        NotFound: it has been sent or taken back meanwhile.
        InvalidInput: no text, or too much of it.
    """
    _require_own(queued, actor)
    check_text(text)
    with changing(queued.conversation_id, queued.workspace_id) as changes:
        queued = _fetch(queued)
        queued.text = text
        queued.save(update_fields=["text", "updated_at"])
        changes.queue()
    return queued


def remove_queued(*, queued: QueuedMessage, actor: Actor) -> None:
    """Take a message back before it is sent. One that has been sent is not there any more.

    Raises:
        NotFound: it has been sent or taken back meanwhile.
    """
    _require_own(queued, actor)
    with changing(queued.conversation_id, queued.workspace_id) as changes:
        _fetch(queued).delete()
        changes.queue()


def send_queued_now(*, queued: QueuedMessage, actor: Actor) -> Turn | None:
    """Send a waiting message at once; a running turn is stopped for it.

    Returns:
        The turn that answers it, or None while the running one still has to end.

    Raises:
        NotFound: it has been sent or taken back meanwhile.
    """
    _require_own(queued, actor)
    with changing(queued.conversation_id, queued.workspace_id) as changes:
        queued = _fetch(queued)
        if active_turn(changes.conversation) is None:
            return send_queued(queued, changes)
        interrupt(queued, changes)
        return active_turn(changes.conversation)


def _fetch(queued: QueuedMessage) -> QueuedMessage:
    return QueuedMessage.objects.for_workspace(queued.workspace_id).fetch(queued.pk)


def _require_own(queued: QueuedMessage, actor: Actor) -> None:
    require(actor, Permission.USE_CHAT, workspace_id=queued.workspace_id)
    if actor.user_id != queued.asked_by_id:
        raise PermissionDenied(_("Only the person who wrote it can do that."))
