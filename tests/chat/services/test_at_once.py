"""Two tabs of one person, or two administrators, who change the same things of the chat at one moment."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from chat.artifacts import storage
from chat.live.recording import Changes, changing
from chat.models import (
    Bud,
    BudVersion,
    ChatImport,
    Conversation,
    Folder,
    KnowledgeFile,
    ModelProvider,
    SharedChat,
)
from chat.providers.base import ProviderSpec
from chat.services import imports, preparing_knowledge, sharing
from chat.services.bud_drafts import save_draft
from chat.services.bud_versions import duplicate_bud
from chat.services.conversation_sweeps import erase_deleted
from chat.services.conversations import (
    change_conversations,
    create_conversation,
    delete_conversation,
    erase_from_trash,
    keep_conversation,
    restore_conversation,
    update_conversation,
)
from chat.services.folders import create_folder, delete_folder, update_folder
from chat.services.imports import remove_import, restore_import
from chat.services.knowledge import add_knowledge, remove_knowledge
from chat.services.provider_removal import remove_provider
from chat.services.providers import (
    ProviderDraft,
    change_provider,
    switch_provider,
)
from chat.values import BulkChange
from mcp_servers.models import McpServer, McpTool, ToolPermission
from tests.chat.services.edited_rows import DRAFT, a_bud, a_provider, seen_before
from tests.factories import Tenant
from tests.locks import beside
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput, NotFound

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_engines]


def a_chat(tenant: Tenant, **given: Any) -> Conversation:
    rows = Bud.objects.for_workspace(tenant.workspace)
    bud = rows.filter(slug="bud").first() or a_bud(tenant)
    return create_conversation(bud=bud, owner=tenant.member, actor=tenant.actor("member"), **given)


def is_there(row: Conversation) -> bool:
    rows = Conversation.objects.for_workspace(row.workspace_id)
    return rows.filter(pk=row.pk, deleted_at=None).exists()


def test_what_was_restored_in_another_tab_is_not_erased(tenant: Tenant) -> None:
    """REL-1544: the trash of this tab still shows it."""
    actor = tenant.actor("member")
    row = a_chat(tenant)
    delete_conversation(conversation=row, actor=actor)
    late = seen_before(row)
    restore_conversation(conversation=row, actor=actor)
    with pytest.raises(NotFound):
        erase_from_trash(conversation=late, actor=actor)
    assert is_there(row)


def test_what_is_restored_while_the_trash_is_emptied_stays(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1544: chats are erased one after another, which takes a while; the others go, and nobody reads a fault."""
    from chat.services import conversations

    actor = tenant.actor("member")
    rows = [a_chat(tenant) for _ in range(3)]
    for row in rows:
        delete_conversation(conversation=row, actor=actor)
    erase = conversations.erase_with

    def restore_another(changes: Changes, by: Actor) -> None:
        if changes.conversation.pk == rows[0].pk:
            restore_conversation(conversation=rows[1], actor=actor)
        erase(changes, by)

    monkeypatch.setattr(conversations, "erase_with", restore_another)
    change_conversations(
        ids=[row.pk for row in rows],
        change=BulkChange.ERASE,
        workspace=tenant.workspace,
        person=tenant.member,
        actor=actor,
    )
    left = Conversation.objects.for_workspace(tenant.workspace)
    assert [row.pk for row in left] == [rows[1].pk]
    assert is_there(rows[1])


def test_a_temporary_chat_that_was_kept_in_another_tab_can_be_brought_back(tenant: Tenant) -> None:
    """REL-1544: it is deleted as any other then, and not erased."""
    actor = tenant.actor("member")
    row = a_chat(tenant, is_temporary=True)
    late = seen_before(row)
    keep_conversation(conversation=row, actor=actor)
    delete_conversation(conversation=late, actor=actor)
    assert not is_there(row)
    restore_conversation(conversation=row, actor=actor)
    assert is_there(row)


def test_chats_in_which_a_tool_was_allowed_are_erased_in_time(
    tenant: Tenant, settings: Settings
) -> None:
    """REL-375: their owner deleted them, so nobody is asked whether the permission may be taken back."""
    row = a_chat(tenant)
    server = McpServer.objects.create(
        workspace=tenant.workspace, name="notes", url="https://mcp.example.org/"
    )
    tool = McpTool.objects.create(
        workspace=tenant.workspace, server=server, name="read", last_seen_at=database_now()
    )
    ToolPermission.objects.create(
        workspace=tenant.workspace, user=tenant.member, tool=tool, conversation_id=row.pk
    )
    delete_conversation(conversation=row, actor=tenant.actor("member"))
    Conversation.objects.for_workspace(tenant.workspace).filter(pk=row.pk).update(
        deleted_at=database_now().replace(year=2020)
    )
    assert erase_deleted() == 1
    assert not ToolPermission.objects.for_workspace(tenant.workspace).exists()


def a_folder(tenant: Tenant, name: str = "Plans") -> Folder:
    return create_folder(
        workspace_id=tenant.workspace.pk,
        owner=tenant.member,
        actor=tenant.actor("member"),
        name=name,
    )


def test_a_folder_that_was_deleted_does_not_come_back(tenant: Tenant) -> None:
    """REL-1545: renaming it in another tab says that it is gone."""
    folder = a_folder(tenant)
    late = seen_before(folder)
    delete_folder(folder=folder, actor=tenant.actor("member"))
    with pytest.raises(NotFound):
        update_folder(folder=late, actor=tenant.actor("member"), name="Other")
    assert not Folder.objects.for_workspace(tenant.workspace).exists()


def test_name_and_colour_of_a_folder_change_side_by_side(tenant: Tenant) -> None:
    """REL-1545: each tab changes what it says, and nothing else."""
    folder = a_folder(tenant)
    late = seen_before(folder)
    update_folder(folder=folder, actor=tenant.actor("member"), name="Other")
    update_folder(folder=late, actor=tenant.actor("member"), colour="blue")
    stored = seen_before(folder)
    assert (stored.name, stored.colour) == ("Other", "blue")


def key_of(provider: ModelProvider) -> str:
    stored = seen_before(provider)
    return str(stored.api_key.reveal("test")) if stored.api_key else ""


def test_a_key_that_was_changed_meanwhile_stays(tenant: Tenant) -> None:
    """REL-1546: whoever renames the provider at the same moment does not bring the old key back."""
    provider = a_provider(tenant)
    late = seen_before(provider)
    changed = ProviderDraft(name="Models", api_key="sk-second-0123456789", **DRAFT)
    change_provider(provider=provider, draft=changed, actor=tenant.actor())
    renamed = ProviderDraft(name="Renamed", **DRAFT)
    change_provider(provider=late, draft=renamed, actor=tenant.actor())
    assert key_of(provider) == "sk-second-0123456789"
    assert seen_before(provider).name == "Renamed"


def test_a_provider_that_was_removed_does_not_come_back(tenant: Tenant) -> None:
    """REL-1546: neither by a change nor by a switch."""
    provider = a_provider(tenant)
    late = seen_before(provider)
    remove_provider(provider=provider, actor=tenant.actor())
    draft = ProviderDraft(name="Renamed", **DRAFT)
    with pytest.raises(NotFound):
        change_provider(provider=late, draft=draft, actor=tenant.actor())
    with pytest.raises(NotFound):
        switch_provider(provider=late, is_active=False, actor=tenant.actor())
    with pytest.raises(NotFound):
        remove_provider(provider=late, actor=tenant.actor())
    assert not ModelProvider.objects.for_workspace(tenant.workspace).exists()


def test_a_provider_that_was_switched_off_meanwhile_is_told_to_be(tenant: Tenant) -> None:
    """REL-1546."""
    provider = a_provider(tenant)
    late = seen_before(provider)
    switch_provider(provider=provider, is_active=False, actor=tenant.actor())
    with pytest.raises(Conflict):
        switch_provider(provider=late, is_active=False, actor=tenant.actor())


@pytest.mark.postgresql
def test_a_provider_is_not_brought_back_by_a_change_that_waited(tenant: Tenant) -> None:
    """REL-1546: it waits for whoever removes the provider, and finds nothing then."""
    provider = a_provider(tenant)
    late = seen_before(provider)
    draft = ProviderDraft(name="Renamed", **DRAFT)
    outcomes = beside(
        lambda: remove_provider(provider=provider, actor=tenant.actor()),
        lambda: change_provider(provider=late, draft=draft, actor=tenant.actor()),
    )
    assert isinstance(outcomes, NotFound)
    assert not ModelProvider.objects.for_workspace(tenant.workspace).exists()


@pytest.mark.postgresql
def test_two_who_make_a_bud_of_one_name_are_told(tenant: Tenant) -> None:
    """REL-1547: the second one reads at the field that the name is taken."""
    outcomes = beside(lambda: a_bud(tenant), lambda: a_bud(tenant))
    assert isinstance(outcomes, InvalidInput)
    assert "slug" in outcomes.fields
    assert BudVersion.objects.for_workspace(tenant.workspace).count() == 1


@pytest.mark.postgresql
def test_a_bud_that_is_copied_twice_at_once_has_two_copies(tenant: Tenant) -> None:
    """REL-1547: each under a name of its own."""
    bud = a_bud(tenant)
    outcomes = beside(
        lambda: duplicate_bud(bud=bud, actor=tenant.actor()),
        lambda: duplicate_bud(bud=bud, actor=tenant.actor()),
    )
    assert outcomes is None
    slugs = Bud.objects.for_workspace(tenant.workspace).values_list("slug", flat=True)
    assert sorted(slugs) == ["bud", "bud-2", "bud-3"]


@pytest.mark.postgresql
def test_a_chat_is_not_moved_into_a_folder_that_is_being_deleted(tenant: Tenant) -> None:
    """REL-1545: it stays where it is, and its person reads that the folder is gone."""
    folder, row = a_folder(tenant), a_chat(tenant)
    actor = tenant.actor("member")
    outcomes = beside(
        lambda: delete_folder(folder=seen_before(folder), actor=actor),
        lambda: update_conversation(conversation=row, actor=actor, folder_id=folder.pk),
    )
    assert isinstance(outcomes, InvalidInput)
    assert is_there(row)


@pytest.mark.postgresql
def test_a_chat_is_not_begun_in_a_folder_that_is_being_deleted(tenant: Tenant) -> None:
    """REL-1545: with an id of the page's own or without."""
    folder = a_folder(tenant)
    a_bud(tenant)
    actor = tenant.actor("member")
    outcomes = beside(
        lambda: delete_folder(folder=seen_before(folder), actor=actor),
        lambda: a_chat(tenant, folder_id=folder.pk, client_id="from-the-page"),
    )
    assert isinstance(outcomes, InvalidInput)


@pytest.mark.postgresql
def test_a_folder_is_made_once_whatever_is_pressed(tenant: Tenant) -> None:
    """REL-427: of two of one name the second is told."""
    outcomes = beside(lambda: a_folder(tenant), lambda: a_folder(tenant))
    assert isinstance(outcomes, InvalidInput)


@pytest.mark.postgresql
def test_a_file_that_is_taken_from_a_bud_while_it_is_copied_stays_in_the_copy(
    tenant: Tenant,
) -> None:
    """REL-1547: both share its content, which goes only when neither has it."""
    bud, actor = a_bud(tenant), tenant.actor()
    file = add_knowledge(bud=bud, name="guide.md", content=b"# Guide\nWater it.", actor=actor)
    outcomes = beside(
        lambda: duplicate_bud(bud=bud, actor=actor),
        lambda: remove_knowledge(file=seen_before(file), actor=actor),
    )
    assert outcomes is None
    [left] = KnowledgeFile.objects.for_workspace(tenant.workspace)
    assert left.bud_id != bud.pk
    assert storage.read(left.path) == b"# Guide\nWater it."


def test_a_share_whose_date_was_put_off_is_not_ended(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1553: the sweep looks at each one again when it ends it; the link stays the same."""
    row = a_chat(tenant)
    now = database_now()
    shared: SharedChat = SharedChat.objects.create(
        workspace=tenant.workspace,
        conversation=row,
        owner=tenant.member,
        audience="workspace",
        token="a token",
        token_hash="hash",
        shared_at=now,
        expires_at=now - timedelta(minutes=1),
    )

    def put_off_first(conversation_id: UUID, workspace_id: UUID) -> Any:
        later = now + timedelta(days=1)
        SharedChat.objects.for_workspace(workspace_id).update(expires_at=later)
        return changing(conversation_id, workspace_id)

    with monkeypatch.context() as patch:
        patch.setattr(sharing, "changing", put_off_first)
        assert sharing.end_expired() == 0
    stored = SharedChat.objects.for_workspace(tenant.workspace)
    assert [one.pk for one in stored] == [shared.pk]
    stored.update(expires_at=now - timedelta(minutes=1))
    assert sharing.end_expired() == 1


def an_import(tenant: Tenant, **given: Any) -> tuple[ChatImport, Conversation]:
    """One that is done, with a chat that came with it, and what is said of that one."""
    chat = a_chat(tenant)
    row: ChatImport = ChatImport.objects.create(
        workspace=tenant.workspace,
        owner=tenant.member,
        bud=chat.bud,
        file_name="chats.json",
        status="done",
    )
    rows = Conversation.objects.for_workspace(tenant.workspace).filter(pk=chat.pk)
    rows.update(chat_import=row, **given)
    return row, chat


def test_what_was_removed_in_another_tab_is_brought_back(tenant: Tenant) -> None:
    """REL-1555: also where this tab had read it before."""
    row, chat = an_import(tenant)
    late = seen_before(row)
    remove_import(row=row, actor=tenant.actor("member"))
    assert not is_there(chat)
    assert restore_import(row=late, actor=tenant.actor("member")) == 1
    assert is_there(chat)


def test_what_is_brought_back_while_it_is_removed_stays(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1555: chats with files are removed one by one, which takes a while."""
    actor = tenant.actor("member")
    row, chat = an_import(tenant, has_files=True)
    other = a_chat(tenant)
    rows = Conversation.objects.for_workspace(tenant.workspace)
    rows.filter(pk=other.pk).update(chat_import=row)

    def bring_back_at_once(**given: Any) -> None:
        delete_conversation(**given)
        restore_import(row=seen_before(row), actor=actor)

    with monkeypatch.context() as patch:
        patch.setattr(imports, "delete_conversation", bring_back_at_once)
        remove_import(row=row, actor=actor)
    assert seen_before(row).status == "done"
    assert (is_there(chat), is_there(other)) == (True, True)


@pytest.mark.postgresql
def test_a_folder_into_which_a_chat_is_being_moved_is_deleted_all_the_same(tenant: Tenant) -> None:
    """REL-1545: the chat is in no folder then."""
    folder, row = a_folder(tenant), a_chat(tenant)
    actor = tenant.actor("member")
    outcomes = beside(
        lambda: update_conversation(conversation=row, actor=actor, folder_id=folder.pk),
        lambda: delete_folder(folder=seen_before(folder), actor=actor),
    )
    assert outcomes is None
    assert not Folder.objects.for_workspace(tenant.workspace).exists()
    assert seen_before(row).folder_id is None


@pytest.mark.postgresql
def test_a_bud_that_two_tabs_try_at_once_has_one_draft(tenant: Tenant) -> None:
    """REL-1547: neither tab reads a fault."""
    bud = a_bud(tenant)

    def try_out() -> None:
        save_draft(
            workspace_id=tenant.workspace.pk,
            bud=bud,
            person=tenant.admin,
            actor=tenant.actor(),
            values={"name": "Bud", "system_prompt": "Be brief."},
            provider_id=None,
        )

    assert beside(try_out, try_out) is None
    drafts = Bud.objects.for_workspace(tenant.workspace).filter(is_draft=True)
    assert drafts.count() == 1


def test_a_file_that_was_removed_since_it_was_found_is_not_prepared(tenant: Tenant) -> None:
    """REL-1547: and keeps the files of others from nothing."""
    bud, actor = a_bud(tenant), tenant.actor()
    file = add_knowledge(bud=bud, name="guide.md", content=b"# Guide\nWater it.", actor=actor)
    late = KnowledgeFile.objects.for_workspace(tenant.workspace).get(pk=file.pk)
    remove_knowledge(file=file, actor=actor)
    spec = ProviderSpec(name="Models", base_url="https://models.example.org/v1", model="small")
    assert preparing_knowledge._begin(late, spec) is None
