"""What Celery does for the chat."""

from __future__ import annotations

from celery import shared_task

from chat.engine import runner
from chat.services import approvals, inputs


@shared_task
def recover_turns() -> int:
    """Take over turns whose process is gone."""
    return runner.recover()


@shared_task
def expire_approvals() -> int:
    """End requests for approval that nobody answered in time."""
    return approvals.expire_approvals()


@shared_task
def expire_inputs() -> int:
    """End questions of servers that nobody answered in time."""
    return inputs.expire_inputs()
