"""Regular work for other MCP clients."""

from __future__ import annotations

from celery import shared_task
from celery.schedules import crontab
from django.utils.translation import gettext_lazy as _

from mcp_servers.endpoint import unanswered_questions
from mcp_servers.endpoint.sign_in import clients, ending
from workspaces.process.schedules import scheduled


@shared_task(ignore_result=True)
@scheduled(crontab(minute=23), _("Delete ended sign-ins of MCP clients"))
def forget_ended_sign_ins() -> None:
    """Delete sign-ins and tokens of clients that ran out, and clients that nobody uses."""
    ending.forget_ended()
    clients.forget_unused()


@shared_task(ignore_result=True)
@scheduled(crontab(minute=53), _("Record the end of calls that no client answered"))
def end_unanswered_calls() -> None:
    """Record the end of calls whose client never came back with an answer."""
    unanswered_questions.end_unanswered()
