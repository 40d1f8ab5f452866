"""Sending the reminders from the outbox."""

from __future__ import annotations

import logging
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.models import ReminderMail
from chat.services.waiting import Waiting, waiting_for
from workspaces import outbox
from workspaces.mails import compose, public_url
from workspaces.models import Membership

logger = logging.getLogger(__name__)

KEEP_DAYS: Final = 7
MOST_LISTED: Final = 10
_MOST_LOOKED_AT: Final = 8


def deliver_due() -> int:
    """Send what is due; returns how many were tried."""
    tried = 0
    for claimed in outbox.rounds(_claim):
        for mail in claimed:
            outbox.note(mail, _send(mail))
            tried += 1
    return tried


def trim_reminders() -> int:
    """Forget what was sent or given up a week ago."""
    return outbox.trim(ReminderMail, days=KEEP_DAYS)


def _claim() -> list[ReminderMail]:
    due = outbox.due(ReminderMail).select_related("owner", "workspace")
    return outbox.claim(due.order_by("attempts", "next_attempt_at", "pk")[:_MOST_LOOKED_AT], most=1)


def _send(mail: ReminderMail) -> str:
    """Send it, unless nothing of it waits any more; what went wrong, or ""."""
    try:
        members = Membership.objects.for_workspace(mail.workspace_id)
        if not members.filter(user_id=mail.owner_id, user__is_active=True).exists():
            return ""
        things = [
            one
            for one in waiting_for(workspace=mail.workspace, person=mail.owner)
            if mail.since <= one.since <= mail.until
        ]
        if things:
            subject, text = write_reminder(mail, things)
            compose(
                subject=subject, text=text, to=[mail.owner.email], message_id=str(mail.pk)
            ).send()
    except OSError:  # SMTP's errors are some of these
        logger.warning("reminder_failed", extra={"reminder": str(mail.pk)}, exc_info=True)
        return "The mail could not be handed over."
    except Exception:
        logger.exception("reminder_crashed", extra={"reminder": str(mail.pk)})
        return "It could not be sent."
    return ""


def write_reminder(mail: ReminderMail, things: list[Waiting]) -> tuple[str, str]:
    """Write the subject and the text: what waits and where. No arguments of calls, no words of questions."""
    workspace = mail.workspace
    subject = ngettext(
        "Something waits for you in %(workspace)s",
        "%(count)s things wait for you in %(workspace)s",
        len(things),
    ) % {"count": len(things), "workspace": workspace.name}
    lines = []
    for one in things[:MOST_LISTED]:
        url = reverse("chat:conversation", args=[workspace.slug, one.conversation.pk])
        lines += [_words(one), public_url(url), ""]
    if len(things) > MOST_LISTED:
        lines += [_("And %(count)s more.") % {"count": len(things) - MOST_LISTED}, ""]
    choose = public_url(reverse("chat:reminders", args=[workspace.slug]))
    lines += [_("Choose when we mail you:"), choose]
    return subject, "\n".join(lines)


def _words(one: Waiting) -> str:
    title = one.conversation.title or _("New chat")
    if one.tool_call is not None:
        return _("A call waits for your approval in “%(title)s”.") % {"title": title}
    return _("A question waits for your answer in “%(title)s”.") % {"title": title}
