"""People for whom something waits, and their mails."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from pytest_django import Settings

from chat.models import Conversation, ReminderChoice, ToolCall, Turn
from chat.reminders.choices import ReminderDraft, choose
from tests.chat.conftest import Chat
from tests.chat.services.waiting_calls import waiting_call
from tests.factories import Tenant
from workspaces.database import database_now
from workspaces.models import User

After = ReminderChoice.After


@pytest.fixture(autouse=True)
def mails_are_sent(settings: Settings) -> None:
    settings.TRELLIS = django_settings.TRELLIS.model_copy(update={"email_host": "mail.example"})


def person_of(chat: Chat) -> User:
    """Whose conversation it is; their address is known to be theirs."""
    owner = User.objects.get(pk=chat.conversation.owner_id)
    User.objects.filter(pk=owner.pk).update(is_address_confirmed=True)
    return owner


def waits_since(chat: Chat, minutes: int) -> ToolCall:
    """A call that has waited for the person's approval for so long."""
    call = waiting_call(chat)
    since = database_now() - timedelta(minutes=minutes)
    ToolCall.objects.for_workspace(chat.tenant.workspace).filter(pk=call.pk).update(
        created_at=since
    )
    return call


def chosen(tenant: Tenant, person: User, **values: Any) -> ReminderChoice:
    actor = tenant.actor(next(role for role, one in tenant.people.items() if one.pk == person.pk))
    draft = ReminderDraft(**{"mail_after": After.HOUR, **values})
    return choose(workspace=tenant.workspace, person=person, draft=draft, actor=actor)


def answered(
    chat: Chat, *, minutes_ago: float, seconds: float = 60, title: str = "Tomatoes"
) -> Turn:
    """An answer that took so long and ended so long ago, unseen."""
    chat.model.say("Water them in the morning.")
    turn = chat.ask()
    ended = database_now() - timedelta(minutes=minutes_ago)
    rows = Turn.objects.for_workspace(turn.workspace_id).filter(pk=turn.pk)
    rows.update(created_at=ended - timedelta(seconds=seconds), finished_at=ended)
    conversations = Conversation.objects.for_workspace(turn.workspace_id)
    conversations.filter(pk=turn.conversation_id).update(unseen_answer_at=ended, title=title)
    return chat.reload(turn)
