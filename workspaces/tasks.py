"""Regular clean-up: answers to repeated requests, sessions, and what SQLite knows of its tables."""

from __future__ import annotations

from datetime import timedelta

from allauth.account.models import EmailConfirmation
from celery import shared_task
from celery.schedules import crontab
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from workspaces.models import IdempotentRequest
from workspaces.process.schedules import scheduled

KEEP_ANSWERS = timedelta(hours=24)
"""How long a repeated request gets the first one's answer."""
MOST_ANALYZED = 400
"""Rows of each index that SQLite looks at, which takes it some milliseconds."""
KEEP_ADMIN_HISTORY = timedelta(days=365)
"""Of the "History" of pages in the admin; the audit log keeps the same changes for as long as its owner wants."""


@shared_task
@scheduled(crontab(minute=43), _("Forget answers to repeated API requests"))
def trim_idempotency_keys() -> int:
    """Forget answers that nobody will ask for again; gives how many."""
    old = IdempotentRequest.objects.across_workspaces().filter(
        created_at__lt=timezone.now() - KEEP_ANSWERS
    )
    return old.delete()[0]


@shared_task
@scheduled(crontab(hour=4, minute=7), _("Delete sessions and confirmations that have run out"))
def clear_sessions() -> None:
    """Delete sessions and confirmations of addresses that have run out, and what the admin noted long ago."""
    call_command("clearsessions")
    EmailConfirmation.objects.delete_expired_confirmations()
    old = timezone.now() - KEEP_ADMIN_HISTORY
    LogEntry.objects.filter(action_time__lt=old).delete()


@shared_task
@scheduled(crontab(minute=23), _("Count rows, so that SQLite finds them quickly"))
def analyze_tables() -> None:
    """Let SQLite know how many rows its tables have, or it reads all tools of a workspace to find those of a server.

    PostgreSQL does so by itself.
    """
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA analysis_limit = {MOST_ANALYZED}")
            cursor.execute("ANALYZE")
