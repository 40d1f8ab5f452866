"""Shared chats: who reads them, what stands in them, and when they end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client, TestCase
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.models import Notice
from chat.artifacts.services import create_artifact, delete_artifact
from chat.models import (
    ArtifactVersion,
    Bud,
    Conversation,
    Message,
    ShareAudience,
    SharedChat,
    SharedChatReader,
    SharedChatText,
    ToolCall,
    Turn,
)
from chat.services.conversations import (
    create_conversation,
    delete_conversation,
    erase_conversation,
    restore_conversation,
)
from chat.services.share_ends import drop_shared_by, end_public_shares
from chat.services.shared_reading import copy_shared, find_shared
from chat.services.sharing import (
    end_expired,
    link_of,
    stop_sharing,
)
from chat.tasks import end_shared_chats
from chat.values import ArtifactOrigin
from tests.chat.engine.statements import add_messages
from tests.chat.services.shared_chats import (
    SECRET,
    add_message,
    allow_links,
    entries_of,
    faults,
    make_bud,
    make_conversation,
    may_read,
    page,
    share,
    token_of,
)
from tests.documents import png
from tests.factories import Tenant, TwoTenants, UserFactory, signed_in
from tests.other_keys import having
from workspaces.errors import PermissionDenied
from workspaces.models import Membership, User
from workspaces.people.services import remove_member
from workspaces.people.suspending import resume_member, suspend_member

pytestmark = pytest.mark.django_db


@pytest.fixture
def bud(tenant: Tenant) -> Bud:
    return make_bud(tenant)


@pytest.fixture
def conversation(tenant: Tenant, bud: Bud) -> Conversation:
    return make_conversation(tenant, bud)


@pytest.fixture
def public(tenant: Tenant) -> None:
    """A workspace that allows links for everybody."""
    allow_links(tenant, True)


def test_each_audience_reads_and_nobody_else(
    tenant: Tenant, conversation: Conversation, public: None
) -> None:
    """SEC-470: chosen people, members, anyone; the owner always."""
    stranger = UserFactory.create()
    readers: list[User | None] = [tenant.member, tenant.admin, tenant.auditor, stranger, None]

    def who(audience: ShareAudience, **choice: Any) -> list[bool]:
        shared = share(tenant, conversation, audience, **choice)
        return [may_read(shared, person) for person in readers]

    chosen = [tenant.admin.pk]
    assert who(ShareAudience.PEOPLE, people=chosen) == [True, True, False, False, False]
    assert who(ShareAudience.WORKSPACE) == [True, True, True, False, False]
    assert who(ShareAudience.LINK) == [True] * 5
    assert who(ShareAudience.PEOPLE, people=[tenant.auditor.pk]) == [
        True,
        False,
        True,
        False,
        False,
    ]
    assert SharedChat.objects.for_workspace(tenant.workspace).count() == 1


def test_the_platforms_owner_reads_no_chat_of_a_workspace_that_they_are_not_in(
    tenant: Tenant, conversation: Conversation, superuser: User
) -> None:
    """SEC-470: a conversation is not theirs, though they open every admin."""
    assert not may_read(share(tenant, conversation), superuser)


def test_a_link_whose_key_is_gone_takes_no_page_away(
    tenant: Tenant, conversation: Conversation
) -> None:
    """REL-2095: the lists of shared chats say so, and who has the link still reads by it."""
    shared = share(tenant, conversation, ShareAudience.WORKSPACE)
    link = page(shared, tenant.client("admin")).request["PATH_INFO"]
    client = tenant.client("member")
    lists = f"/w/{tenant.workspace.slug}/shared-chats/"
    with having():
        text = client.get(lists).content.decode()
        assert "because the encryption key that protected it is gone" in text
        answer = client.get(f"/api/conversations/{conversation.pk}/share/")
        assert (answer.status_code, answer.json()["link"]) == (200, "")
        assert tenant.client("admin").get(link).status_code == 200
    assert link in client.get(lists).content.decode()


def test_a_shared_chat_ends_with_everything_that_it_stands_on(
    tenant: Tenant, conversation: Conversation
) -> None:
    """SEC-471: its date, its conversation, its sharer's membership and account, its workspace."""
    shared = share(tenant, conversation)
    assert may_read(shared, tenant.admin)
    rows = SharedChat.objects.for_workspace(tenant.workspace)
    rows.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert not may_read(shared, tenant.admin)
    rows.update(expires_at=timezone.now() + timedelta(days=1))
    assert may_read(shared, tenant.admin)

    delete_conversation(conversation=conversation, actor=tenant.actor("member"))
    assert not may_read(shared, tenant.admin)
    restore_conversation(conversation=conversation, actor=tenant.actor("member"))
    assert may_read(shared, tenant.admin)

    membership = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    suspend_member(membership=membership, reason="", actor=tenant.actor("owner"))
    assert not may_read(shared, tenant.admin)
    resume_member(membership=membership, actor=tenant.actor("owner"))
    assert may_read(shared, tenant.admin)

    User.objects.filter(pk=tenant.member.pk).update(is_active=False)
    assert not may_read(shared, tenant.admin)
    User.objects.filter(pk=tenant.member.pk).update(is_active=True)
    tenant.workspace.is_active = False
    tenant.workspace.save()
    assert not may_read(shared, tenant.admin)
    tenant.workspace.is_active = True
    tenant.workspace.save()
    assert may_read(shared, tenant.admin)

    stop_sharing(shared=shared, actor=tenant.actor("member"))
    assert not may_read(shared, tenant.admin)


def test_a_reader_who_is_suspended_or_leaves_reads_no_more(
    tenant: Tenant, conversation: Conversation
) -> None:
    """SEC-471: nor when they come back as somebody who was not chosen again."""
    shared = share(tenant, conversation, ShareAudience.PEOPLE, people=[tenant.auditor.pk])
    membership = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.auditor)
    suspend_member(membership=membership, reason="", actor=tenant.actor("owner"))
    assert not may_read(shared, tenant.auditor)
    resume_member(membership=membership, actor=tenant.actor("owner"))
    assert may_read(shared, tenant.auditor)
    remove_member(membership=membership, actor=tenant.actor("owner"))
    Membership.objects.create(workspace=tenant.workspace, user=tenant.auditor, role="member")
    assert not may_read(shared, tenant.auditor)
    assert not SharedChatReader.objects.for_workspace(tenant.workspace).exists()


def test_switching_public_links_off_stops_them_at_once(
    tenant: Tenant, conversation: Conversation, public: None
) -> None:
    """SEC-472: and on again, they work again. A workspace that never allowed them makes none."""
    shared = share(tenant, conversation, ShareAudience.LINK)
    client = Client()
    assert page(shared, client).status_code == 200
    allow_links(tenant, False)
    assert page(shared, client).status_code == 404
    assert not may_read(shared, tenant.admin)
    refused = faults(tenant, conversation, audience=ShareAudience.LINK)
    assert "does not allow links" in refused["audience"][0]
    allow_links(tenant, True)
    assert page(shared, client).status_code == 200


def test_nothing_is_shared_that_was_not_chosen(tenant: Tenant, conversation: Conversation) -> None:
    """SEC-90, SEC-473: no secret, thought, error, prompt, argument, result, resource, file or name of a member."""
    shared = share(tenant, conversation)
    kept = str(SharedChatText.objects.for_workspace(tenant.workspace).get().document)
    shown = page(shared, tenant.client()).content.decode()
    for text in (kept, shown):
        assert "find_orders" in text
        assert "**Because** of it." in text
        for private in (
            *(SECRET, "PRIVATE-", "ACME-ARGUMENT", "SECRET-ARGUMENT", "ORDER-RESULT"),
            *("plan.md", "FILE-CONTENT"),
        ):
            assert private not in text
    assert tenant.admin.email not in kept
    assert tenant.admin.name not in kept
    assert "2 attachments are not shared" in shown


def test_chosen_calls_are_masked_and_chosen_files_are_given(
    tenant: Tenant, conversation: Conversation
) -> None:
    """SEC-473: arguments and results without what looks like a secret; files as they are, to readers only."""
    shared = share(tenant, conversation, with_files=True, with_calls=True)
    client = tenant.client()
    shown = page(shared, client).content.decode()
    assert "ACME-ARGUMENT" in shown
    assert "ORDER-RESULT" in shown
    assert SECRET not in shown
    assert "SECRET-ARGUMENT" not in shown
    assert "PRIVATE-" not in shown
    assert "1 attachment is not shared" in shown
    version = ArtifactVersion.objects.for_workspace(tenant.workspace).get()
    url = f"/shared/{token_of(shared)}/files/{version.artifact_id}/{version.number}/"
    assert url in shown
    answer = client.get(url)
    assert answer.content == b"FILE-CONTENT"
    assert answer["Content-Disposition"].startswith("attachment")
    assert "sandbox" in answer["Content-Security-Policy"]
    assert Client().get(url).status_code == 404
    delete_artifact(artifact=version.artifact, actor=tenant.actor("member"))
    assert client.get(url).status_code == 404


def test_of_built_in_tools_the_names_alone_are_shared(
    tenant: Tenant, conversation: Conversation
) -> None:
    """SEC-473: they read files and what a bud knows, which is not chosen with the calls."""
    call = ToolCall.objects.for_workspace(tenant.workspace).get()
    call.builtin = call.tool_name = "search_knowledge"
    call.save()
    [_question, answer] = share(tenant, conversation, with_calls=True).text.value.messages
    [shown] = answer.calls
    assert (shown.tool, shown.arguments, shown.result) == ("search_knowledge", None, None)


def test_a_file_that_is_not_shared_is_not_given(tenant: Tenant, conversation: Conversation) -> None:
    """SEC-473: neither without files, nor a version or file beside those of the text."""
    version = ArtifactVersion.objects.for_workspace(tenant.workspace).get()
    client = tenant.client()
    without = share(tenant, conversation)
    url = f"/shared/{token_of(without)}/files/{version.artifact_id}/1/"
    assert client.get(url).status_code == 404
    share(tenant, conversation, with_files=True)
    other = create_artifact(
        conversation=conversation,
        name="later.md",
        content=b"x",
        actor=tenant.actor("member"),
        origin=ArtifactOrigin.UPLOAD,
    )
    assert client.get(url).status_code == 200
    assert client.get(url.replace("/1/", "/2/")).status_code == 404
    later = url.replace(str(version.artifact_id), str(other.artifact.pk))
    assert client.get(later).status_code == 404
    assert client.get(url.replace("/files/", "/pictures/")).status_code == 404


def test_a_picture_is_shown_drawn_anew(tenant: Tenant, conversation: Conversation) -> None:
    """REL-990: within the page, under a policy in which nothing runs."""
    made = create_artifact(
        conversation=conversation,
        name="chart.png",
        content=png(),
        actor=tenant.actor("member"),
        origin=ArtifactOrigin.TOOL,
    )
    answer = Message.objects.for_workspace(tenant.workspace).get(role="assistant")
    ArtifactVersion.objects.for_workspace(tenant.workspace).filter(pk=made.version.pk).update(
        message=answer
    )
    shared = share(tenant, conversation, with_files=True)
    url = f"/shared/{token_of(shared)}/pictures/{made.artifact.pk}/1/"
    client = tenant.client()
    assert url in page(shared, client).content.decode()
    picture = client.get(url)
    assert picture["Content-Type"].startswith("image/")
    assert "default-src 'none'" in picture["Content-Security-Policy"]


def test_a_shared_chat_stays_as_it_was_until_it_is_updated(
    tenant: Tenant, conversation: Conversation
) -> None:
    """REL-991: one link for each chat; later messages come with an update, or are left out by where it ends."""
    shared = share(tenant, conversation)
    first_end = shared.text.end
    leaf = Message.objects.for_workspace(tenant.workspace).get(pk=conversation.leaf_id or "")
    more = add_message(conversation, "user", "LATER-QUESTION", leaf)
    Conversation.objects.for_workspace(tenant.workspace).update(leaf=more)
    client = tenant.client()
    assert "LATER-QUESTION" not in page(shared, client).content.decode()
    kept = share(
        tenant, conversation, ShareAudience.PEOPLE, people=[tenant.admin.pk], until=first_end
    )
    assert "LATER-QUESTION" not in page(kept, client).content.decode()
    updated = share(tenant, conversation)
    assert "LATER-QUESTION" in page(updated, client).content.decode()
    assert updated.pk == shared.pk
    assert token_of(updated) == token_of(shared)


def test_an_answer_that_is_being_written_is_left_out(
    tenant: Tenant, conversation: Conversation
) -> None:
    """REL-991: others read no half sentence."""
    leaf = Message.objects.for_workspace(tenant.workspace).get(pk=conversation.leaf_id or "")
    question = add_message(conversation, "user", "And then?", leaf)
    turn = Turn.objects.create(
        workspace=tenant.workspace,
        conversation=conversation,
        user_message=question,
        asked_by=tenant.member,
        source="web",
        status="running",
    )
    half = add_message(conversation, "assistant", "HALF", question, turn, status="streaming")
    Conversation.objects.for_workspace(tenant.workspace).update(leaf=half)
    shared = share(tenant, conversation)
    assert [message.text[:9] for message in shared.text.value.messages][-1] == "And then?"
    assert shared.text.end == question.pk


def test_what_does_not_fit_is_told_at_its_field(two_workspaces: TwoTenants) -> None:
    """REL-992: unknown people and those of another workspace, a date in the past, nothing to share."""
    tenant, other = two_workspaces.a, two_workspaces.b
    chat = make_conversation(tenant, make_bud(tenant))
    past = timezone.now() - timedelta(minutes=1)
    assert "future" in faults(tenant, chat, expires_at=past)["expires_at"][0]
    no_member = ["One of these people is not a member of this workspace."]
    for stranger in (other.member.pk, uuid7()):
        chosen: dict[str, Any] = {"audience": ShareAudience.PEOPLE, "people": [stranger]}
        assert faults(tenant, chat, **chosen)["people"] == no_member
    assert "at least one" in faults(tenant, chat, audience=ShareAudience.PEOPLE)["people"][0]
    own: dict[str, Any] = {"audience": ShareAudience.PEOPLE, "people": [tenant.member.pk]}
    assert "at least one" in faults(tenant, chat, **own)["people"][0]
    many = {"audience": ShareAudience.PEOPLE, "people": [uuid7() for _ in range(51)]}
    assert "at most 50" in faults(tenant, chat, **many)["people"][0]
    theirs = make_conversation(other, make_bud(other))
    assert "until_message_id" in faults(tenant, chat, until=theirs.leaf_id)
    empty = create_conversation(bud=chat.bud, owner=tenant.member, actor=tenant.actor("member"))
    assert "nothing to share" in str(faults(tenant, empty))
    assert not SharedChat.objects.for_workspace(tenant.workspace).exists()


def test_a_chat_of_ten_thousand_messages_is_refused_and_a_part_of_it_is_shared(
    tenant: Tenant, bud: Bud
) -> None:
    """REL-992: with the limit in words, in few statements."""
    long = create_conversation(bud=bud, owner=tenant.member, actor=tenant.actor("member"))
    answers = add_messages(long, 10_000)
    with CaptureQueriesContext(connection) as asked:
        found = faults(tenant, long)
    assert "more than 1,000 messages" in found[""][0]
    assert len(asked) < 12
    shared = share(tenant, long, until=answers[499])
    assert len(shared.text.value.messages) == 1_000


def test_texts_that_are_too_long_are_refused(tenant: Tenant, conversation: Conversation) -> None:
    """REL-992: with the limit in words."""
    Message.objects.for_workspace(tenant.workspace).filter(role="user").update(text="x" * 2_000_001)
    assert "more than 2,000,000 characters" in faults(tenant, conversation)[""][0]


def test_the_page_is_for_readers_and_not_for_search_engines(
    tenant: Tenant, conversation: Conversation, public: None
) -> None:
    """REL-993, SEC-474: who shared it and when; kept by nobody, told to no other site, nothing from another origin."""
    shared = share(tenant, conversation, ShareAudience.LINK)
    answer = page(shared, Client())
    text = answer.content.decode()
    assert f"Shared by {tenant.member.display_name} on" in text
    assert "Orders" in text
    assert answer["X-Robots-Tag"] == "noindex, nofollow"
    assert '<meta name="robots" content="noindex">' in text
    assert answer["Referrer-Policy"] == "no-referrer"
    assert answer["Cache-Control"] == "private, no-store"
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert "http" not in answer["Content-Security-Policy"]
    assert "Continue in a chat of your own" not in text
    assert tenant.member.email not in text
    signed_in = page(shared, tenant.client())
    assert "Continue in a chat of your own" in signed_in.content.decode()


def test_who_is_not_signed_in_signs_in_and_comes_back(
    tenant: Tenant, conversation: Conversation
) -> None:
    """REL-993: a link that nobody can use gives the same page to everybody."""
    shared = share(tenant, conversation)
    answer = page(shared, Client())
    assert answer.status_code == 302
    assert answer["Location"].endswith(f"?next=/shared/{token_of(shared)}/")
    stranger = signed_in(UserFactory.create())
    refused = page(shared, stranger)
    unknown = stranger.get("/shared/unknown/")
    stop_sharing(shared=shared, actor=tenant.actor("member"))
    ended = page(shared, stranger)
    anonymous = page(shared, Client())
    bodies = {one.content for one in (refused, unknown, ended, anonymous)}
    assert [one.status_code for one in (refused, unknown, ended, anonymous)] == [404] * 4
    assert len(bodies) == 1
    assert "You cannot read this chat" in refused.content.decode()


def test_opening_a_shared_chat_asks_the_same_few_statements_however_long_it_is(
    tenant: Tenant, conversation: Conversation, bud: Bud, public: None
) -> None:
    """REL-994: one for somebody who is not signed in."""
    long = create_conversation(bud=bud, owner=tenant.member, actor=tenant.actor("member"))
    add_messages(long, 1_000)
    counts = []
    for chat in (conversation, long):
        shared = share(tenant, chat, ShareAudience.LINK)
        for client in (Client(), tenant.client()):
            page(shared, client)
            with CaptureQueriesContext(connection) as asked:
                assert page(shared, client).status_code == 200
            counts.append(len(asked))
    assert counts == [1, counts[1], 1, counts[1]]
    assert counts[1] <= 8


def test_the_log_says_who_shared_what_with_whom_and_never_what_it_says(
    tenant: Tenant, conversation: Conversation, bud: Bud
) -> None:
    """SEC-476: shared, changed, copied, ended."""
    shared = share(tenant, conversation, ShareAudience.PEOPLE, people=[tenant.admin.pk])
    share(tenant, conversation, with_calls=True)
    copy_shared(
        shared=find_shared(token_of(shared), tenant.admin),
        bud=bud,
        owner=tenant.admin,
        actor=tenant.actor(),
    )
    stop_sharing(shared=shared, actor=tenant.actor("member"))
    entries = entries_of(tenant)
    text = str([entry.details for entry in entries])
    verbs = [entry.details["verb"] for entry in entries]
    assert verbs[0] == "created"
    assert verbs[-1] == "deleted"
    assert str(conversation.pk) in text
    assert f"'readers': ['{tenant.admin.email}']" in text
    assert "'audience': 'workspace'" in text
    assert f"'copied_by': '{tenant.admin.email}'" in text
    for private in ("Orders", "Because", "find_orders", token_of(shared)):
        assert private not in text


def test_only_the_sharer_and_administrators_stop_it(
    tenant: Tenant, conversation: Conversation
) -> None:
    """SEC-477: the chat of its owner then says that it is not shared."""
    shared = share(tenant, conversation)
    rows = Conversation.objects.for_workspace(tenant.workspace)
    assert rows.get(pk=conversation.pk).shared_at is not None
    with pytest.raises(PermissionDenied):
        stop_sharing(shared=shared, actor=tenant.actor("auditor"))
    stop_sharing(shared=shared, actor=tenant.actor("admin"))
    assert rows.get(pk=conversation.pk).shared_at is None


def test_an_administrator_sees_what_is_shared_and_stops_it(
    tenant: Tenant, conversation: Conversation
) -> None:
    """SEC-477: who, when and with whom, and not what it says."""
    shared = share(tenant, conversation, ShareAudience.PEOPLE, people=[tenant.admin.pk])
    url = "/admin/chat/sharedchat/"
    client = tenant.client()
    listed = client.get(url).content.decode()
    assert tenant.member.email in listed
    assert "Chosen people" in listed
    assert "Orders" not in listed
    assert token_of(shared) not in listed
    assert tenant.client("auditor").get(url).status_code in (302, 403)
    body = {"action": "stop", "_selected_action": [str(shared.pk)]}
    asked = client.post(url, body).content.decode()
    assert "Stop sharing 1 chat?" in asked
    assert tenant.member.email in asked
    assert SharedChat.objects.for_workspace(tenant.workspace).exists()
    client.post(url, {**body, "confirmed": "yes"})
    assert not SharedChat.objects.for_workspace(tenant.workspace).exists()
    again = share(tenant, conversation)
    client.post(f"{url}{again.pk}/delete/", {"post": "yes"})
    rows = Conversation.objects.for_workspace(tenant.workspace)
    assert rows.get(pk=conversation.pk).shared_at is None


def test_what_ran_out_is_dropped_with_its_text(tenant: Tenant, conversation: Conversation) -> None:
    """REL-996: by a task, with an entry in the log."""
    share(tenant, conversation)
    rows = SharedChat.objects.for_workspace(tenant.workspace)
    assert end_shared_chats() == 0
    rows.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert end_expired() == 1
    assert not rows.exists()
    assert not SharedChatText.objects.for_workspace(tenant.workspace).exists()
    assert entries_of(tenant)[-1].details["verb"] == "deleted"


def test_erasing_a_shared_chat_is_an_end_in_the_log(
    tenant: Tenant, conversation: Conversation
) -> None:
    """SEC-476: nothing of it is left to be read."""
    share(tenant, conversation)
    with TestCase.captureOnCommitCallbacks(execute=True):
        erase_conversation(conversation=conversation, actor=tenant.actor("member"))
    assert entries_of(tenant)[-1].details["verb"] == "deleted"
    assert not SharedChatText.objects.for_workspace(tenant.workspace).exists()


def test_who_leaves_shares_nothing_any_more(tenant: Tenant, conversation: Conversation) -> None:
    """SEC-471: with an entry in the log; others' chats stay shared."""
    share(tenant, conversation)
    drop_shared_by(tenant.workspace.pk, tenant.admin.pk, tenant.actor("owner"))
    assert SharedChat.objects.for_workspace(tenant.workspace).exists()
    drop_shared_by(tenant.workspace.pk, tenant.member.pk, tenant.actor("owner"))
    assert not SharedChat.objects.for_workspace(tenant.workspace).exists()
    assert entries_of(tenant)[-1].details["verb"] == "deleted"


def test_people_find_what_they_share_and_stop_it(
    tenant: Tenant, conversation: Conversation
) -> None:
    """REL-997: with its link, its readers and its end."""
    url = f"/w/{tenant.workspace.slug}/shared-chats/"
    client = tenant.client("member")
    assert "You share no chats" in client.get(url).content.decode()
    shared = share(tenant, conversation)
    shown = client.get(url).content.decode()
    assert "Orders" in shown
    assert "Everyone in the workspace" in shown
    assert link_of(shared) in shown
    assert "Orders" not in tenant.client().get(url).content.decode()
    assert tenant.client().post(url, {"shared": str(shared.pk)}).status_code == 404
    assert client.post(url, {"shared": str(shared.pk)}).status_code == 302
    assert "You share no chats" in client.get(url).content.decode()


def test_chosen_readers_are_told_and_find_the_chat(
    tenant: Tenant, conversation: Conversation
) -> None:
    """REL-1667: by a line in their bell, once, and a list; with the title that was shared, and for as long as they may read it."""
    url = f"/w/{tenant.workspace.slug}/shared-chats/"
    lines = Notice.objects.for_workspace(tenant.workspace)
    share(tenant, conversation)
    assert "Shared with you" not in tenant.client("admin").get(url).content.decode()
    assert not lines.exists()
    shared = share(tenant, conversation, ShareAudience.PEOPLE, people=[tenant.admin.pk])
    share(tenant, conversation, ShareAudience.PEOPLE, people=[tenant.admin.pk])
    (line,) = lines
    assert (line.user_id, line.url) == (tenant.admin.pk, url)
    assert line.title.endswith("shared a chat with you")
    assert "Orders" not in line.title + line.text
    Conversation.objects.for_workspace(tenant.workspace).update(title="Something private")
    shown = tenant.client("admin").get(url).content.decode()
    assert "Shared with you" in shown
    assert "Orders" in shown
    assert "Something private" not in shown
    assert link_of(shared) in shown
    assert "Shared with you" not in tenant.client("auditor").get(url).content.decode()
    assert "Shared with you" not in tenant.client("member").get(url).content.decode()
    share(tenant, conversation, ShareAudience.PEOPLE, people=[tenant.auditor.pk])
    assert "Shared with you" not in tenant.client("admin").get(url).content.decode()
    assert "Shared with you" in tenant.client("auditor").get(url).content.decode()
    assert lines.all().count() == 2
    stop_sharing(shared=shared, actor=tenant.actor("member"))
    assert "Shared with you" not in tenant.client("auditor").get(url).content.decode()


def test_after_a_restore_no_public_link_opens(
    tenant: Tenant, bud: Bud, conversation: Conversation, public: None
) -> None:
    """SEC-530: its owner may have stopped it after the backup. What only members read stays, and they share again."""
    linked = share(tenant, conversation, ShareAudience.LINK)
    inside = share(tenant, make_conversation(tenant, bud))
    assert may_read(linked, None)
    assert end_public_shares() == 1
    assert not may_read(linked, None)
    assert may_read(inside, tenant.admin)
    again = share(tenant, conversation, ShareAudience.LINK)
    assert may_read(again, None)
    assert end_public_shares() == 1
