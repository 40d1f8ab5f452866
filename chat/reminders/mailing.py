"""Sending the reminders from the outbox."""

from __future__ import annotations

import logging
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from chat.models import ReminderChoice, ReminderMail
from chat.reminders.choices import QUIET_PAUSE, choice_of, is_quiet
from chat.reminders.digest import NewsItem, NewsKind, unseen_answers, waiting_things
from chat.reminders.recipients import may_hear
from workspaces.database import database_now
from workspaces.delivery import outbox
from workspaces.delivery.mails import compose, public_url

logger = logging.getLogger(__name__)

About = ReminderChoice.About
KEEP_DAYS: Final = 7
MOST_LISTED: Final = 10
_MOST_LOOKED_AT: Final = 8


def deliver_due() -> int:
    """Send what is due; returns how many were tried."""
    tried = 0
    for claimed in outbox.claim_rounds(_claim):
        for mail in claimed:
            _deliver(mail)
            tried += 1
    return tried


def trim_reminders() -> int:
    """Forget what was sent or given up a week ago."""
    return outbox.trim(ReminderMail, days=KEEP_DAYS)


def _claim() -> list[ReminderMail]:
    due = outbox.due(ReminderMail).select_related("owner", "workspace")
    return outbox.claim(due.order_by("attempts", "next_attempt_at", "pk")[:_MOST_LOOKED_AT], most=1)


def _deliver(mail: ReminderMail) -> None:
    """Send it, later if it is a quiet hour by now: it may have waited for a mail server."""
    now = database_now()
    try:
        choice = choice_of(workspace=mail.workspace, person=mail.owner)
        is_wanted = choice.after(About(mail.about)) != ReminderChoice.After.NEVER
        if is_wanted and is_quiet(choice, now):
            outbox.put_off(mail, now + QUIET_PAUSE)
            return
        if is_wanted:
            _send(mail)
        fault = ""
    except OSError:  # SMTP's errors are some of these
        logger.warning("reminder_failed", extra={"reminder": str(mail.pk)}, exc_info=True)
        fault = "The mail could not be handed over."
    except Exception:
        logger.exception("reminder_crashed", extra={"reminder": str(mail.pk)})
        fault = "It could not be sent."
    outbox.note(mail, fault)


def _send(mail: ReminderMail) -> None:
    """Send it, unless nothing of it waits any more, or its person may not have it."""
    person = mail.owner
    if (
        may_hear(mail.workspace_id, person.pk)
        and person.is_address_confirmed
        and (things := _things(mail))
    ):
        subject, text = write_reminder(mail, things)
        compose(subject=subject, text=text, to=[person.email], message_id=str(mail.pk)).send()


def _things(mail: ReminderMail) -> list[NewsItem]:
    """What the mail tells of, as it is now."""
    read = unseen_answers if mail.about == ReminderChoice.About.ANSWERS else waiting_things
    return read(workspace=mail.workspace, person=mail.owner, since=mail.since, until=mail.until)


def write_reminder(mail: ReminderMail, things: list[NewsItem]) -> tuple[str, str]:
    """Write the subject and the text: what it is and where. No answers, no arguments of calls, no words of questions."""
    workspace = mail.workspace
    lines = []
    for one in things[:MOST_LISTED]:
        lines += [_words(one), public_url(one.path(workspace.slug)), ""]
    if len(things) > MOST_LISTED:
        lines += [_("And %(count)s more.") % {"count": len(things) - MOST_LISTED}, ""]
    choose = public_url(reverse("chat:reminders", args=[workspace.slug]))
    lines += [_("Choose when we mail you:"), choose]
    return _subject(mail, len(things)), "\n".join(lines)


def _subject(mail: ReminderMail, count: int) -> str:
    if mail.about == ReminderChoice.About.ANSWERS:
        words = ngettext(
            "An answer in %(workspace)s has ended",
            "%(count)s answers in %(workspace)s have ended",
            count,
        )
    else:
        words = ngettext(
            "Something waits for you in %(workspace)s",
            "%(count)s things wait for you in %(workspace)s",
            count,
        )
    return words % {"count": count, "workspace": mail.workspace.name}


def _words(one: NewsItem) -> str:
    return _SENTENCES[one.kind] % {"title": one.title}


_SENTENCES: Final = {
    NewsKind.ANSWER: gettext_lazy("The answer in “%(title)s” is finished."),
    NewsKind.FAILURE: gettext_lazy("The answer in “%(title)s” could not be finished."),
    NewsKind.APPROVAL: gettext_lazy("A call waits for your approval in “%(title)s”."),
    NewsKind.UNKNOWN: gettext_lazy(
        "The outcome of a call is unknown in “%(title)s”. Say what became of it."
    ),
    NewsKind.QUESTION: gettext_lazy("A question waits for your answer in “%(title)s”."),
    NewsKind.REQUEST: gettext_lazy("A request of a member waits for your decision."),
}
