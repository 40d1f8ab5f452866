"""What the log needs done in the background."""

from __future__ import annotations

from celery import shared_task

from audit import rollups


@shared_task
def count_entries() -> int:
    """Bring the counters behind the reports up to date; gives how many entries were counted."""
    return rollups.roll_up_all()
