"""What somebody who has left keeps in a workspace is erased when an owner wants that, and not before."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from audit.models import AuditEntry
from chat.models import Bud, ChatImport, Conversation, Draft, Folder, KnowledgeFile
from chat.services import conversation_sweeps
from chat.services.bud_drafts import forget_old_drafts
from chat.services.conversation_sweeps import erase_deleted
from chat.services.conversations import create_conversation
from chat.services.knowledge import add_knowledge
from tests.audit.retention.asking import ask
from tests.chat.services.test_deleted_conversations import a_chat
from tests.factories import MembershipFactory, Tenant, TwoTenants
from workspaces.database import database_now
from workspaces.models import Membership
from workspaces.people.services import remove_member

pytestmark = pytest.mark.django_db
WANTED = {"reason": "Request 12", "with_chats": True}


def leave(tenant: Tenant) -> None:
    membership = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    remove_member(membership=membership, actor=tenant.actor("owner"))


def test_chats_of_somebody_who_has_left_are_erased_on_request(two_workspaces: TwoTenants) -> None:
    """REL-2401: chats, drafts and folders go by the next sweep; those in another workspace and of others stay."""
    tenant, other = two_workspaces.a, two_workspaces.b
    MembershipFactory.create(workspace=other.workspace, user=tenant.member)
    a_chat(tenant), a_chat(tenant)
    theirs = {"workspace": tenant.workspace, "owner": tenant.member}
    Folder.objects.create(name="Garden", **theirs)
    Draft.objects.create(text="half a thought", written_at=database_now(), **theirs)
    stays = a_chat(other)
    Conversation.objects.for_workspace(other.workspace).update(owner=tenant.member)
    wanted = {**WANTED, "email": tenant.member.email}

    still_in = ask(tenant, "post", "audit-erasures/", wanted)
    assert still_in.status_code == 422
    assert still_in.json()["errors"][0]["attr"] == "with_chats"
    leave(tenant)
    done = ask(tenant, "post", "audit-erasures/", wanted)
    assert done.json()["chats"] == 2, done.content
    assert erase_deleted() == 2
    for kind in (Conversation, Folder, Draft):
        assert not kind.objects.for_workspace(tenant.workspace).exists()
    assert Conversation.objects.for_workspace(other.workspace).get() == stays
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(action="body.erased")
    assert entry.details["chats"] == 2


def test_chats_stay_where_nobody_asked_for_their_erasure(two_workspaces: TwoTenants) -> None:
    """SEC-981: not with the log's contents alone, not of the platform's owner, not by another workspace's owner."""
    tenant, other = two_workspaces.a, two_workspaces.b
    kept = a_chat(tenant)
    leave(tenant)
    wanted = {**WANTED, "email": tenant.member.email}
    assert ask(other, "post", "audit-erasures/", wanted).json()["errors"][0]["attr"] == "email"
    assert ask(tenant, "post", "audit-erasures/", wanted, role="admin").status_code == 403
    without = ask(tenant, "post", "audit-erasures/", {**wanted, "with_chats": False})
    assert without.json()["chats"] == 0
    tenant.member.is_superuser = True
    tenant.member.save()
    assert ask(tenant, "post", "audit-erasures/", wanted).status_code == 422
    assert erase_deleted() == 0
    assert Conversation.objects.for_workspace(tenant.workspace).get() == kept


def test_private_buds_of_somebody_who_has_left_are_erased_on_request(
    two_workspaces: TwoTenants,
) -> None:
    """REL-2528, REL-2575: with their files, versions and chats; the log does not say again what stood in them.

    Those that everybody uses stay, and so does what others once asked a bud that is private now, or brought to it.
    """
    tenant = two_workspaces.a
    private, once_shared, imported_to, shared = (
        Bud.objects.create(
            workspace=tenant.workspace,
            owner=tenant.member,
            slug=name,
            name=name,
            system_prompt="My own words",
        )
        for name in ("private", "once-shared", "imported-to", "shared")
    )
    for person, bud in (("member", private), ("admin", once_shared)):
        add_knowledge(bud=bud, name="diary.md", content=b"My diary", actor=tenant.actor("owner"))
        owner = tenant.people[person]
        others = create_conversation(bud=bud, owner=owner, actor=tenant.actor(person))
    ChatImport.objects.create(
        workspace=tenant.workspace,
        bud=imported_to,
        owner=tenant.people["admin"],
        file_name="old.zip",
    )
    rows = Bud.objects.for_workspace(tenant.workspace)
    rows.exclude(pk=shared.pk).update(visibility="owner")
    leave(tenant)
    asked = timezone.now()
    done = ask(tenant, "post", "audit-erasures/", {**WANTED, "email": tenant.member.email}).json()
    assert (done["chats"], done["buds"]) == (1, 3)
    assert not KnowledgeFile.objects.for_workspace(tenant.workspace).exists()
    assert rows.get(pk=once_shared.pk).system_prompt == ""
    assert rows.get(is_draft=True) == private
    long_ago = asked - timedelta(days=2)
    rows.update(updated_at=long_ago)
    Conversation.objects.for_workspace(tenant.workspace).update(last_message_at=long_ago)
    assert forget_old_drafts() == 1
    assert set(rows) == {once_shared, imported_to, shared}
    assert Conversation.objects.for_workspace(tenant.workspace).get() == others
    for entry in AuditEntry.objects.for_workspace(tenant.workspace).filter(created_at__gte=asked):
        assert "My own words" not in str(entry.details)


def test_whose_chats_cannot_be_erased_is_told_with_the_reason(tenant: Tenant) -> None:
    """REL-2505: a member, also one who cannot enter at the moment, or somebody who runs the installation."""
    wanted = {**WANTED, "email": tenant.member.email}
    a_chat(tenant)

    def why() -> str:
        answer = ask(tenant, "post", "audit-erasures/", wanted)
        assert answer.status_code == 422
        return str(answer.json()["errors"][0]["detail"])

    rows = Membership.objects.also_suspended(tenant.workspace.pk).filter(user=tenant.member)
    rows.update(suspended_at=database_now())
    assert why().startswith("They are still a member of this workspace.")
    remove_member(membership=rows.get(), actor=tenant.actor("owner"))
    tenant.member.is_superuser = True
    tenant.member.save()
    assert why().startswith("They run this installation")


def test_the_page_says_how_many_chats_go(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-2401, SEC-1211: and what of a person stays in the log; it is asked for by a tick. Many take more than one round."""
    for _ in range(3):
        a_chat(tenant)
    leave(tenant)
    client, url = tenant.client("owner"), f"/w/{tenant.workspace.slug}/audit/settings/"
    assert "under which name or address" in client.get(url).content.decode()
    wanted = {"email": tenant.member.email, "reason": "Request 12", "with_chats": "on"}
    answer = client.post(f"{url}erase/", wanted, follow=True).content.decode()
    until = "in the database until the hourly job has erased them."
    assert f"3 chats are out of sight. They stay {until}" in answer
    assert f"Their chats are out of sight at once, and stay {until}" in answer, "asked before"
    assert "Chats stay in the database until a job has run" in answer
    monkeypatch.setattr(conversation_sweeps, "MOST_ERASED", 2)
    assert (erase_deleted(), erase_deleted()) == (2, 1)
