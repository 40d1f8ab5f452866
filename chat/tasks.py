"""What Celery does for the chat."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task
from celery.schedules import crontab
from django.utils.translation import gettext_lazy as _

from chat.artifacts import cleaning_up
from chat.engine import runner, summarising, titles
from chat.providers import limits
from chat.reminders import mailing, pushing, recipients
from chat.services import (
    approvals,
    bud_drafts,
    check_plans,
    check_runs,
    conversation_sweeps,
    copy_making,
    data_copies,
    import_reading,
    inputs,
    model_list_updates,
    preparing_knowledge,
    resolutions,
    sharing,
    spending_limits,
    withdrawn_tools,
)
from chat.webhooks import delivery
from workspaces import restore_detection
from workspaces.process.schedules import scheduled


@shared_task
@scheduled(10, _("Take over answers whose process is gone"))
def recover_turns() -> int:
    """Take over turns whose process is gone, and settle calls whose end the log has learned."""
    resolutions.settle_known()
    return runner.recover()


@shared_task
@scheduled(30, _("End approvals that nobody gave in time"))
def expire_approvals() -> int:
    """End requests for approval, also of tools that are gone, and wait no longer for a word on calls of unknown outcome."""
    ended = approvals.expire_approvals() + withdrawn_tools.release_calls()
    return ended + resolutions.expire_resolutions()


@shared_task
@scheduled(crontab(minute=23), _("End shared chats whose date has passed"))
def end_shared_chats() -> int:
    """Drop shared chats whose date has passed. Nobody reads them from that moment on."""
    return sharing.end_expired()


@shared_task(ignore_result=True)
@scheduled(15, _("Send webhooks"))
def deliver_webhooks() -> None:
    """Send what waits for programs; not after a restore, before somebody has looked at it."""
    if not restore_detection.is_unconfirmed():
        delivery.deliver_due()


@shared_task(ignore_result=True)
@scheduled(crontab(minute=37), _("Forget webhooks sent long ago"))
def trim_deliveries() -> None:
    """Forget what was sent a week ago."""
    delivery.trim_deliveries()


@shared_task(ignore_result=True)
@scheduled(60, _("Mail people what waits for them"))
def remind_by_mail() -> None:
    """Mail people what waits for them; not after a restore, before somebody has looked at it."""
    if not restore_detection.is_unconfirmed():
        recipients.find_reminders()
        mailing.deliver_due()


@shared_task(ignore_result=True)
@scheduled(10, _("Notify people on their devices"))
def notify_devices() -> None:
    """Notify people on their devices of what is new for them; not after a restore, before somebody has looked at it."""
    if not restore_detection.is_unconfirmed():
        pushing.find_pushes()
        pushing.deliver_due()


@shared_task(ignore_result=True)
@scheduled(crontab(minute=43), _("Forget old reminders and notifications"))
def trim_reminders() -> None:
    """Forget reminders of a week ago."""
    mailing.trim_reminders()
    pushing.trim_pushes()


@shared_task
@scheduled(30, _("End questions of servers that nobody answered in time"))
def expire_inputs() -> int:
    """End questions of servers that nobody answered in time."""
    return inputs.expire_inputs()


@shared_task
@scheduled(crontab(minute=29), _("Remove files that no chat or bud uses any more"))
def sweep_artifacts() -> int:
    """Remove contents of files that no row names any more; not after a restore, before somebody has looked at it.

    Till then a newer backup may be brought back, whose rows name what this database does not know of.
    """
    return 0 if restore_detection.is_unconfirmed() else cleaning_up.sweep()


@shared_task
@scheduled(crontab(minute=17), _("Erase deleted and temporary chats, and old copies of data"))
def erase_deleted_conversations() -> int:
    """Delete conversations that nobody uses any more, where the platform wants that.

    Erase those deleted long ago, temporary ones whose hours are over, and copies of people's data whose days are over.
    An old backup has many of these at once, so nothing goes before somebody has looked at the restore.
    """
    if restore_detection.is_unconfirmed():
        return 0
    conversation_sweeps.delete_idle()
    import_reading.forget_old()
    data_copies.erase_old()
    return conversation_sweeps.erase_temporary() + conversation_sweeps.erase_deleted()


@shared_task
@scheduled(15, _("Read chats that people import"))
def read_imports() -> int:
    """Read files of chats that people import; gives how many chats were looked at."""
    return import_reading.read_due()


@shared_task
@scheduled(15, _("Make copies of people's data"))
def make_data_copies() -> int:
    """Make copies of people's data that they asked for; gives how many chats were copied."""
    return copy_making.make_due()


@shared_task
@scheduled(crontab(minute=41), _("Erase test chats of the bud editor"))
def forget_old_drafts() -> int:
    """Erase what people tried in the editor of buds a day ago."""
    return bud_drafts.forget_old_drafts()


@shared_task
@scheduled(20, _("Move checks of buds on"))
def advance_all_checks() -> int:
    """Take runs of checks further whose turn's end nobody told of, and end what takes too long."""
    return check_runs.advance_all()


@shared_task
@scheduled(60, _("Start planned checks of buds"))
def run_planned_checks() -> int:
    """Begin checks of buds that run every day or week; not after a restore, before somebody has looked at it."""
    return 0 if restore_detection.is_unconfirmed() else check_plans.run_due()


@shared_task
@scheduled(15, _("Prepare knowledge files for search by meaning"))
def prepare_knowledge() -> int:
    """Have passages of knowledge files found by meaning; not after a restore, before somebody has looked at it."""
    return 0 if restore_detection.is_unconfirmed() else preparing_knowledge.prepare_due()


@shared_task
def advance_checks(workspace_id: str) -> int:
    """Take a workspace's runs of checks further, after a turn of theirs has ended."""
    return check_runs.advance_all(UUID(workspace_id))


@shared_task
@scheduled(crontab(minute=19), _("Ask providers which models they have"))
def look_at_lists() -> int:
    """Ask providers once a day which models they have; not after a restore, before somebody has looked at it."""
    return 0 if restore_detection.is_unconfirmed() else model_list_updates.look_at_lists()


@shared_task
@scheduled(crontab(minute=53), _("Forget requests that no longer count toward limits"))
def forget_model_requests() -> int:
    """Forget requests to providers with limits that no longer count."""
    return limits.forget_requests()


@shared_task
@scheduled(crontab(minute=7, hour=3), _("Forget costs of months long ago"))
def forget_old_months() -> int:
    """Forget what models cost in months that are long over."""
    return spending_limits.forget_old_months()


@shared_task
def title_conversation(workspace_id: str, conversation_id: str) -> bool:
    """Have a conversation named by its bud's model; whether it has a new title."""
    return titles.title_conversation(UUID(workspace_id), UUID(conversation_id))


@shared_task
def summarise_conversation(workspace_id: str, turn_id: str) -> bool:
    """Have older messages summarised by the conversation's model; whether there is a new summary."""
    return summarising.summarise(UUID(workspace_id), UUID(turn_id))
