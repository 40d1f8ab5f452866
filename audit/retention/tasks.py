"""What retention's pages leave to a worker."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from celery import shared_task

from audit.retention.erasing import erase_rest

_ERASURE_SECONDS: Final = 600.0


@shared_task(ignore_result=True)
def continue_erasure(workspace_id: str, person_id: str) -> None:
    """Go on with an erasure that took too long for a page."""
    done = erase_rest(
        workspace_id=UUID(workspace_id), person_id=UUID(person_id), seconds=_ERASURE_SECONDS
    )
    if done.erased and not done.is_done:
        continue_erasure.delay(workspace_id, person_id)
