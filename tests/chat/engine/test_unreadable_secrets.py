"""A turn that meets a stored secret whose encryption key is gone."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from audit.models import Notice
from chat.models import ModelProvider, Turn
from chat.services.provider_check import rotate_key
from mcp_servers.models.server_credentials import AuthType
from mcp_servers.registry.services import ServerDraft, update_server
from tests.chat.conftest import Chat
from workspaces.errors import InvalidInput
from workspaces.redaction import MASK

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "sk-scripted-canary-0123456789"


def lose_the_key(settings: Settings) -> None:
    """As after a rotation that ended too early."""
    old = settings.TRELLIS.encryption_keys[0]
    new = type(old)("another", bytes(range(32)))
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"encryption_keys": (new,)})


def told_of(turn: Turn) -> str:
    assert turn.status == "failed"
    return turn.error_message


def test_a_provider_whose_key_cannot_be_read_is_named(chat: Chat, settings: Settings) -> None:
    """REL-1646: with what an admin can do. Admins find a line in their bell, and a new key puts it right."""
    lose_the_key(settings)
    turn = chat.ask()
    error = told_of(turn)
    assert turn.error_code == "provider_key_unreadable"
    assert "“scripted”" in error
    assert "A workspace admin can enter the API key again" in error
    assert CANARY not in error
    assert chat.model.requests == []
    notice = Notice.objects.for_workspace(chat.tenant.workspace).filter(user=chat.tenant.admin)
    assert notice.get().title == "The API key of “scripted” can't be read"
    provider = ModelProvider.objects.for_workspace(chat.tenant.workspace).get()
    rotate_key(
        provider=provider,
        new_key="sk-new-0123456789-0123456789",
        actor=chat.tenant.actor(),
        is_tested=False,
    )
    chat.model.say("I am back")
    assert chat.ask("again").status == "completed"
    assert chat.answer() == "I am back"


def test_a_server_whose_credentials_cannot_be_read_is_named(chat: Chat, settings: Settings) -> None:
    """REL-1646: the model and its person read which one; entered again, they work."""
    provider = ModelProvider.objects.for_workspace(chat.tenant.workspace).get()
    chat.row.auth_type = AuthType.BEARER.value
    chat.row.auth_config = {"token": "secret-token-0123456789"}
    chat.row.save()
    lose_the_key(settings)
    provider.api_key = CANARY
    provider.save()
    chat.model.call(("counting__echo", {"text": "x"}))
    chat.model.say("It cannot be used")
    turn = chat.ask()
    assert turn.status == "completed"
    (call,) = chat.calls()
    assert "the server “counting” can no longer be read" in call.error
    assert "A workspace admin can enter them again" in call.error
    assert "secret-token" not in call.error + call.model_text
    assert chat.server.calls == []
    actor = chat.tenant.actor()
    with pytest.raises(InvalidInput) as refused:
        update_server(server=chat.row, draft=ServerDraft(auth={"token": MASK}), actor=actor)
    assert "Enter every value again" in str(refused.value.fields)
    update_server(server=chat.row, draft=ServerDraft(auth={"token": "a-new-token"}), actor=actor)
    chat.model.call(("counting__echo", {"text": "x"}))
    chat.model.say("It works")
    chat.ask("again")
    assert chat.server.calls == [("echo", {"text": "x"})]
