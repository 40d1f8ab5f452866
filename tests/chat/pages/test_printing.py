"""The page on which a chat is printed, or saved as a PDF."""

from __future__ import annotations

from unittest.mock import patch

from chat.artifacts.services import create_artifact
from chat.engine.attaching import ResourceRef
from chat.models import Message
from chat.services import shared_texts
from chat.services.shared_texts import build_text
from chat.services.turns import send_message
from chat.values import ArtifactOrigin
from tests.chat.conftest import Chat
from tests.documents import png

SECRET = "sk-canary-0123456789abcdefghij"


def where(chat: Chat) -> str:
    return f"/w/{chat.tenant.workspace.slug}/c/{chat.conversation.pk}/print/"


def test_a_chat_is_there_for_paper_as_the_person_sees_it(chat: Chat) -> None:
    """REL-1158: questions, answers, pictures, and calls as names or in full; in light colours whatever the theme."""
    chat.model.call(("counting__echo", {"text": "hello there"}))
    chat.model.say("It said **hello**")
    chat.ask(f"Say hello, my key is {SECRET}")
    picture = create_artifact(
        conversation=chat.conversation,
        name="cat.png",
        content=png(),
        actor=chat.tenant.actor("member"),
        origin=ArtifactOrigin.MODEL,
    )
    answers = Message.objects.for_workspace(chat.tenant.workspace).filter(role="assistant")
    picture.version.message = answers.latest("pk")
    picture.version.save(update_fields=["message"])
    page = chat.tenant.client("member").get(where(chat))
    text = page.content.decode()
    assert page.status_code == 200
    assert 'data-theme="light"' in text
    assert "Say hello" in text
    assert SECRET not in text
    assert "data-markdown>It said **hello**" in text
    assert f"artifacts/{picture.artifact.pk}/1/preview/" in text
    assert "echo" in text
    assert "hello there" not in text
    full = chat.tenant.client("member").get(where(chat), {"calls": "full"}).content.decode()
    assert "hello there" in full
    assert 'class="tool-card" open' in full


def test_paper_names_the_resources_that_a_message_took_along(parked: Chat) -> None:
    """REL-1906: by their names, as the chat and its downloads do. Others who read a shared chat learn their number."""
    parked.model.say("Soup")
    send_message(
        conversation=parked.conversation,
        client_id="c",
        text="What is for lunch?",
        attachments=[ResourceRef(server_id=parked.row.pk, uri="menu://today")],
        actor=parked.actor,
    )
    parked.watching.turn("completed")
    text = parked.tenant.client("member").get(where(parked)).content.decode()
    assert "Today&#x27;s menu" in text
    assert "not shared" not in text
    shared = build_text(parked.conversation, until=None, with_files=True, with_calls=True)
    assert "menu" not in shared.document.model_dump_json()
    assert [one.left_out for one in shared.document.messages] == [1, 0]


def test_a_chat_is_printed_by_its_owner_alone(chat: Chat) -> None:
    """REL-1158: as it is read by nobody else."""
    chat.model.say("Hi")
    chat.ask("Hello")
    for role in ("admin", "owner", "auditor"):
        assert chat.tenant.client(role).get(where(chat)).status_code == 404


def test_a_chat_that_cannot_be_printed_says_why(chat: Chat) -> None:
    """REL-1158: one that is empty or too long."""
    client = chat.tenant.client("member")
    assert "There is nothing to print yet." in client.get(where(chat)).content.decode()
    chat.model.say("Hi")
    chat.ask("Hello")
    with patch.object(shared_texts, "MOST_MESSAGES", 1):
        page = client.get(where(chat)).content.decode()
    assert "too long to print" in page
    assert "data-print" not in page
