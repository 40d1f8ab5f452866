"""Going on with a shared chat in a chat of one's own."""

from __future__ import annotations

import pytest
from django.test import Client, TestCase

from chat.engine.trust import find_source
from chat.models import (
    ArtifactVersion,
    Attachment,
    Bud,
    Conversation,
    Message,
    ShareAudience,
    ToolCall,
    Turn,
)
from chat.services.conversations import (
    erase_conversation,
)
from chat.services.shared_reading import copy_shared, find_shared
from tests.chat.conftest import Chat
from tests.chat.services.shared_chats import (
    SECRET,
    allow_links,
    make_bud,
    make_conversation,
    share,
    token_of,
)
from tests.factories import Tenant, TwoTenants

pytestmark = pytest.mark.django_db


@pytest.fixture
def bud(tenant: Tenant) -> Bud:
    return make_bud(tenant)


@pytest.fixture
def conversation(tenant: Tenant, bud: Bud) -> Conversation:
    return make_conversation(tenant, bud)


def test_a_member_goes_on_in_a_chat_of_their_own(
    tenant: Tenant, conversation: Conversation
) -> None:
    """REL-995: the same texts and files, with a bud that they choose; tool calls are not copied."""
    shared = share(tenant, conversation, with_files=True, with_calls=True)
    other = make_bud(tenant, "Other")
    answer = tenant.client().post(f"/shared/{token_of(shared)}/copy/", {"bud": str(other.pk)})
    rows = Conversation.objects.for_workspace(tenant.workspace).filter(owner=tenant.admin)
    new = rows.get()
    assert answer["Location"] == f"/w/{tenant.workspace.slug}/c/{new.pk}/"
    assert (new.title, new.bud_id, new.has_files, new.shared_at) == (
        "Orders",
        other.pk,
        True,
        None,
    )
    messages = list(Message.objects.for_workspace(tenant.workspace).filter(conversation=new))
    assert [message.role for message in messages] == ["user", "assistant"]
    assert messages[1].text == "**Because** of it."
    assert SECRET not in messages[0].text
    assert new.leaf_id == messages[1].pk
    assert messages[1].parent_id == messages[0].pk
    assert (
        not ToolCall.objects.for_workspace(tenant.workspace).filter(message__in=messages).exists()
    )
    turns = Turn.objects.for_workspace(tenant.workspace).filter(conversation=new)
    assert not turns.exists(), "nobody asked, so the numbers of the bud stay true"
    copied = ArtifactVersion.objects.for_workspace(tenant.workspace).get(artifact__conversation=new)
    attached = Attachment.objects.for_workspace(tenant.workspace).get(message=messages[0])
    assert attached.version_id == copied.pk
    assert attached.model_text == "FILE-CONTENT"
    # The file outlives the chat that it came from.
    with TestCase.captureOnCommitCallbacks(execute=True):
        erase_conversation(conversation=conversation, actor=tenant.actor("member"))
    url = f"/w/{tenant.workspace.slug}/artifacts/{copied.artifact_id}/1/"
    assert tenant.client().get(url).content == b"FILE-CONTENT"


def test_a_copy_is_words_from_outside(chat: Chat) -> None:
    """SEC-478: whoever shared it may have written anything into it; the model goes on with it all the same."""
    tenant = chat.tenant
    for question, answer in (
        ("When do I sow?", "Sow in April."),
        ("And then?", "Then water them."),
    ):
        chat.model.say(answer)
        chat.ask(question)
    shared = share(tenant, chat.reload_conversation(), ShareAudience.WORKSPACE)
    chat.conversation = copy_shared(
        shared=find_shared(token_of(shared), tenant.admin),
        bud=chat.conversation.bud,
        owner=tenant.admin,
        actor=tenant.actor(),
    )
    chat.actor = tenant.actor()
    chat.watching.close()
    chat.__post_init__()
    chat.model.say("Until May.")
    chat.ask("How long?")
    sent = [one["content"] for one in chat.model.requests[-1]["messages"]]
    assert sent[-5:] == [
        *("When do I sow?", "Sow in April."),
        *("And then?", "Then water them.", "How long?"),
    ]
    rows = Message.objects.for_workspace(tenant.workspace).filter(conversation=chat.conversation)
    response = find_source([rows.get(text="Sow in April.")], {}, {}).text
    assert response == "this chat was copied from one that somebody shared"
    assert find_source([rows.get(text="How long?")], {}, {}).text == ""


def test_without_files_none_are_copied_and_the_same_request_makes_one_copy(
    tenant: Tenant, conversation: Conversation, bud: Bud
) -> None:
    """REL-995: by the caller's own id."""
    shared = find_shared(token_of(share(tenant, conversation)), tenant.admin)
    made = {
        copy_shared(
            shared=shared, bud=bud, owner=tenant.admin, actor=tenant.actor(), client_id="one"
        ).pk
        for _ in range(2)
    }
    assert len(made) == 1
    files = ArtifactVersion.objects.for_workspace(tenant.workspace)
    assert not files.filter(artifact__conversation__in=made).exists()


def test_a_copy_needs_a_bud_that_the_person_may_use(
    two_workspaces: TwoTenants,
) -> None:
    """SEC-475: not one of another workspace, and not somebody else's own; and who only has the link copies nothing."""
    tenant, other = two_workspaces.a, two_workspaces.b
    bud = make_bud(tenant)
    allow_links(tenant, True)
    shared = share(tenant, make_conversation(tenant, bud), ShareAudience.LINK)
    url = f"/shared/{token_of(shared)}/copy/"
    foreign = make_bud(other, "Foreign")
    own = make_bud(tenant, "Mine")
    Bud.objects.for_workspace(tenant.workspace).filter(pk=own.pk).update(
        visibility="owner", owner=tenant.owner
    )
    client = tenant.client()
    for wrong in (foreign.pk, own.pk, "x", ""):
        assert client.post(url, {"bud": str(wrong)}).status_code == 404
    assert other.client().post(url, {"bud": str(bud.pk)}).status_code == 404
    assert other.client().post(url, {"bud": str(foreign.pk)}).status_code == 404
    assert Client().post(url, {"bud": str(bud.pk)}).status_code == 302
    rows = Conversation.objects.for_workspace(tenant.workspace)
    assert rows.exclude(owner=tenant.member).count() == 0
