"""When a membership ends or is suspended, the person's turns end, and copies of their data are erased. What waits to be sent is not sent.

Whoever leaves shares nothing any more. While a membership rests, nobody reads what the person shared (see `SharedChat`).
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext_noop as _

from chat.engine import runner
from chat.engine.endings import end_turn
from chat.engine.states import ACTIVE_TURNS
from chat.live.recording import changing
from chat.models import (
    OPEN_IMPORTS,
    ChatImport,
    PushDevice,
    QueuedMessage,
    ReminderChoice,
    ReminderMail,
    Turn,
)
from chat.models.turns import ACTIVE
from chat.services.check_plans import stop_plans_of
from chat.services.check_runs import cancel_runs_of
from chat.services.data_copies import end_copies_of
from chat.services.share_ends import drop_shared_by
from chat.services.spending_limits import forget_limit_of
from chat.values import ImportStatus, TurnStatus
from workspaces.changes import ConfigurationChange
from workspaces.database import after_commit, database_now
from workspaces.errors import NotFound

LEFT = _("Stopped because you left the workspace.")
IMPORT_ENDED = _("Stopped because you left the workspace. Chats that came before that stay.")
SUSPENDED = _("Stopped because your access to the workspace was suspended.")


def suspend_work_of(workspace_id: UUID, user_id: UUID, change: ConfigurationChange) -> None:
    """End what runs; what is kept waits for the person."""
    cancel_runs_of(workspace_id, user_id)
    end_copies_of(workspace_id, user_id, change.actor)
    _end_turns(workspace_id, user_id, SUSPENDED)


def end_rows_of(workspace_id: UUID, user_id: UUID, change: ConfigurationChange) -> None:
    """End what runs, and delete what only served the person."""
    QueuedMessage.objects.for_workspace(workspace_id).filter(asked_by_id=user_id).delete()
    for model in (ReminderChoice, ReminderMail, PushDevice):
        model.objects.for_workspace(workspace_id).filter(owner_id=user_id).delete()
    drop_shared_by(workspace_id, user_id, change.actor)
    ChatImport.objects.for_workspace(workspace_id).filter(
        owner_id=user_id, status__in=OPEN_IMPORTS
    ).update(status=ImportStatus.FAILED.value, error=IMPORT_ENDED, path="", alive_until=None)
    end_copies_of(workspace_id, user_id, change.actor)
    cancel_runs_of(workspace_id, user_id)
    stop_plans_of(workspace_id, user_id)
    forget_limit_of(workspace_id, user_id)
    _end_turns(workspace_id, user_id, LEFT)


def _end_turns(workspace_id: UUID, user_id: UUID, notice: str) -> None:
    turns = Turn.objects.for_workspace(workspace_id).filter(asked_by_id=user_id, status__in=ACTIVE)
    found = list(turns.values_list("pk", "conversation_id"))
    # From here on whoever takes one of them ends it, even if this process dies before it has.
    turns.update(stop_requested_at=Now())
    # Conversations are locked before a transaction begins, see chat.live.recording.
    for turn_id, conversation_id in found:
        after_commit(_end, workspace_id, turn_id, conversation_id, notice)


def _end(workspace_id: UUID, turn_id: UUID, conversation_id: UUID, notice: str) -> None:
    try:
        with changing(conversation_id, workspace_id) as changes:
            turn = Turn.objects.for_workspace(workspace_id).fetch(turn_id)
            changes.queue()
            if TurnStatus(turn.status) not in ACTIVE_TURNS:
                return
            if turn.lease_until is not None and turn.lease_until > database_now():
                transaction.on_commit(partial(runner.stop, turn_id))
            else:
                end_turn(turn, TurnStatus.CANCELLED, changes, notice=notice)
    except NotFound:
        return  # deleted meanwhile
