"""Tidying up that the ground needs now and then."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from celery.schedules import crontab
from django.core.management import call_command
from django.utils import timezone

from workspaces.models import IdempotentRequest
from workspaces.schedules import scheduled

KEEP_ANSWERS = timedelta(hours=24)
"""How long a repeated request gets the first one's answer."""


@shared_task
@scheduled(crontab(minute=43))
def trim_idempotency_keys() -> int:
    """Forget answers that nobody will ask for again; gives how many."""
    old = IdempotentRequest.objects.across_workspaces().filter(
        created_at__lt=timezone.now() - KEEP_ANSWERS
    )
    deleted, _ = old.delete()
    return deleted


@shared_task
@scheduled(crontab(hour=4, minute=7))
def clear_sessions() -> None:
    """Delete sessions that have run out."""
    call_command("clearsessions")
