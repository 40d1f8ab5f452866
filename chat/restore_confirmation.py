"""After the database was restored from a backup: nothing that it remembers as under way is done by itself.

What let people in then may have been taken back since, so it ends too.
"""

from __future__ import annotations

import asyncio
import logging

from django.db import transaction

from audit.actions import Action
from audit.sealing.checkpoint_mismatches import confirm_restores
from audit.services import EntryDraft, record
from chat.engine import runner
from chat.engine.endings import end_turn
from chat.live.recording import changing
from chat.models import QueuedMessage, Turn
from chat.models.turns import ACTIVE
from chat.services.share_ends import end_public_shares
from chat.values import TurnStatus
from mcp_servers.client.connections import runtime
from mcp_servers.endpoint.sign_in.ending import EndReason, end_all
from mcp_servers.models import Approval
from workspaces import restore_detection
from workspaces.actors import Actor, Source
from workspaces.database import database_now, in_database, is_unavailable
from workspaces.database.row_security import everywhere
from workspaces.errors import DomainError
from workspaces.people.after_restore import end_ways_in
from workspaces.process.outages import LastingOutage

logger = logging.getLogger(__name__)
_outage = LastingOutage(
    logger, begins="installation_not_looked_at", ends="installation_looked_at_again"
)

_PAUSE_SECONDS = 2.0
_MESSAGE = "The installation was restored from a backup while this was under way."


def watch() -> None:
    """From now on let the installation's number grow; and once it is known that all is as it was, take turns over."""
    with everywhere():
        runtime.current().submit(_watch())


def look() -> bool:
    """Let the number grow; if the database was restored, settle what it holds. Whether it was."""
    found = restore_detection.beat()
    if found is None:
        return False
    turns = settle()
    ended = end_ways_in()
    shares = end_public_shares()
    clients = end_all(EndReason.RESTORED)
    with transaction.atomic():
        # Only now is it over: what failed before here is done again at the next look.
        if not restore_detection.mark_settled(found):
            return True
        logger.error(
            "restored_from_backup",
            extra={"database": found.database_epoch, "known": found.known_epoch, "turns": turns},
        )
        record(
            EntryDraft(
                action=Action.RESTORE_FOUND,
                actor=_actor(),
                workspace_id=None,
                details={
                    "database_epoch": found.database_epoch,
                    "known_epoch": found.known_epoch,
                    "interrupted_turns": turns,
                    "ended_sessions": ended.sessions,
                    "revoked_invitations": ended.invitations,
                    "revoked_join_links": ended.join_links,
                    "ended_public_shares": shares,
                    "ended_mcp_clients": clients,
                },
            )
        )
    return True


def settle() -> int:
    """Interrupt every turn, and make every approval that is not used yet void; how many turns that were."""
    # Those would be sent as soon as their turn ends.
    QueuedMessage.objects.across_workspaces().filter(is_next=True).update(is_next=False)
    approvals = Approval.objects.across_workspaces().filter(consumed_at__isnull=True)
    approvals.update(expires_at=database_now())
    rows = Turn.objects.across_workspaces().filter(status__in=ACTIVE)
    under_way = list(rows.values_list("pk", "workspace_id", "conversation_id"))
    for turn_id, workspace_id, conversation_id in under_way:
        try:
            with changing(conversation_id, workspace_id) as changes:
                turn = Turn.objects.for_workspace(workspace_id).fetch(turn_id)
                if turn.status in ACTIVE:
                    end_turn(
                        turn,
                        TurnStatus.INTERRUPTED,
                        changes,
                        error_code="restored",
                        error_message=_MESSAGE,
                        can_retry=True,
                    )
        except DomainError:
            # One that cannot be ended does not keep the others under way.
            logger.exception("restored_turn_not_settled", extra={"turn": str(turn_id)})
    return len(under_way)


def confirm(by: str = "", *, actor: Actor | None = None) -> bool:
    """A person has looked: everything goes on by itself again. Whether there was something to confirm.

    Args:
        actor: who said so in the product; None: somebody at the machine.

    Raises:
        OSError: a checkpoint file that was kept aside could not be marked; nothing goes on yet.
    """
    kept = confirm_restores(by)
    if not restore_detection.confirm() and not kept:
        return False
    record(EntryDraft(action=Action.RESTORE_CONFIRMED, actor=actor or _actor(), workspace_id=None))
    return True


def _actor() -> Actor:
    return Actor.system(label="installation", source=Source.COMMAND, workspace_id=None)


async def _watch() -> None:
    has_looked = False
    while True:
        try:
            await in_database(look)
            _outage.is_over()
        except Exception as error:
            if not is_unavailable(error):
                logger.warning("installation_not_looked_at", exc_info=True)
            else:
                _outage.note(error)
            await asyncio.sleep(_PAUSE_SECONDS)
            if not has_looked:
                continue
        if not has_looked:
            has_looked = True
            runner.watch_for_orphans()
        await asyncio.sleep(restore_detection.BEAT_SECONDS)
