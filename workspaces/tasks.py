"""Housekeeping of the ground floor."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.core.management import call_command
from django.utils import timezone

from workspaces.models import IdempotentRequest

KEYS_KEPT = timedelta(hours=24)


@shared_task
def trim_idempotency_keys() -> int:
    """Forget stored answers after a day."""
    old = IdempotentRequest.objects.across_workspaces().filter(
        created_at__lt=timezone.now() - KEYS_KEPT
    )
    return old.delete()[0]


@shared_task
def clear_sessions() -> None:
    """Delete sessions that have run out."""
    call_command("clearsessions")
