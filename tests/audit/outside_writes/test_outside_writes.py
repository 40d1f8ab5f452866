"""Configuration that is written past the services becomes an entry; what a service announces does not twice."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.db import connection, transaction
from django.utils import timezone

from audit.actions import Action
from audit.models import AuditEntry, OutsideWrite
from audit.outside_writes import install, sweep, triggers
from audit.sealing.sealer import seal_pending
from audit.services import EntryDraft, record
from chat.models import Bud, BudCheck, ModelProvider, SharedProvider
from chat.services.buds import create_bud, update_bud
from mcp_servers.models import McpServer
from tests.factories import Tenant
from tests.mcp_servers.factories import http_server
from workspaces.audited_tables import audited_tables
from workspaces.changes import record_deleted, tracked_change
from workspaces.models import Membership, Workspace
from workspaces.redaction import MASK

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "sk-net-canary-0123456789"


@pytest.fixture
def quiet(tenant: Tenant) -> Tenant:
    """A workspace whose making, by factories, has been entered and sealed."""
    settle()
    return tenant


def settle() -> None:
    sweep()
    while seal_pending().sealed:
        pass


def changes(tenant: Tenant) -> list[dict[str, object]]:
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    return [row.details for row in rows.order_by("id") if row.details.get("past_the_services")]


def test_a_row_changed_by_hand_is_entered_with_before_and_after(quiet: Tenant) -> None:
    """Ours: raw SQL, as somebody at the database's prompt would."""
    before = len(changes(quiet))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workspaces_membership SET role = 'owner' WHERE role = 'member'")
        cursor.execute("UPDATE workspaces_membership SET updated_at = updated_at")
    assert sweep() == 2  # the member and the auditor, who is a member too
    membership = Membership.unscoped.get(workspace=quiet.workspace, user=quiet.member)
    (found,) = [row for row in changes(quiet)[before:] if row["id"] == str(membership.pk)]
    assert (found["verb"], found["kind"], found["id"]) == (
        "changed",
        "membership",
        str(membership.pk),
    )
    assert (found["before"], found["after"]) == ({"role": "member"}, {"role": "owner"})
    entry = AuditEntry.objects.for_workspace(quiet.workspace).latest("id")
    assert entry.actor_label == "unknown (past the services)"
    assert sweep() == 0


def test_secrets_are_told_as_changed_and_never_shown(quiet: Tenant) -> None:
    """SEC-93: by the ORM past the services, too."""
    provider = ModelProvider.objects.create(
        workspace=quiet.workspace, name="p", base_url="https://models.example.org", api_key=CANARY
    )
    settle()
    provider.api_key = f"{CANARY}-new"
    provider.save()
    settle()
    ModelProvider.objects.for_workspace(quiet.workspace).filter(pk=provider.pk).delete()
    sweep()
    created, changed, deleted = [row for row in changes(quiet) if row["kind"] == "model provider"]
    assert created["verb"] == "created"
    assert created["after"]["api_key"] == MASK  # type: ignore[index]
    assert (changed["before"], changed["after"]) == ({"api_key": MASK}, {"api_key": MASK})
    assert (deleted["verb"], deleted["before"]["name"]) == ("deleted", "p")  # type: ignore[index]
    assert CANARY not in str(changes(quiet))
    assert "v1." not in str(changes(quiet))


def test_a_secret_that_is_sealed_under_another_key_is_the_same_secret(quiet: Tenant) -> None:
    """SEC-92: a rotation of keys touches every secret and changes none."""
    ModelProvider.objects.create(
        workspace=quiet.workspace, name="p", base_url="https://models.example.org", api_key=CANARY
    )
    settle()
    before = len(changes(quiet))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE chat_modelprovider SET api_key = replace(api_key, 'v1.', 'v1.x')")
    assert sweep() == 1
    assert len(changes(quiet)) == before


def test_what_the_services_announce_is_entered_once(quiet: Tenant) -> None:
    """Ours: create, change, delete; the triggers note nothing."""
    provider = ModelProvider.objects.create(
        workspace=quiet.workspace, name="p", base_url="https://models.example.org"
    )
    settle()
    bud = create_bud(
        workspace_id=quiet.workspace.pk,
        actor=quiet.actor(),
        values={"slug": "b", "name": "B"},
        provider_id=provider.pk,
    )
    update_bud(bud=bud, actor=quiet.actor(), values={"name": "C"})
    assert not OutsideWrite.objects.exists()


def three_buds(tenant: Tenant) -> list[Bud]:
    """Made by hand, and entered."""
    made = [Bud(workspace=tenant.workspace, name=name, slug=name) for name in ("a", "b", "c")]
    buds = Bud.objects.bulk_create(made)
    BudCheck.objects.create(workspace=tenant.workspace, bud=buds[0], question="What time is it?")
    settle()
    return buds


def rename_by_hand(bud: Bud) -> None:
    Bud.objects.for_workspace(bud.workspace_id).filter(pk=bud.pk).update(name="by hand")


def noted() -> set[UUID]:
    return set(map(UUID, OutsideWrite.objects.values_list("row_id", flat=True)))


def test_an_announcement_covers_its_own_row_alone(quiet: Tenant) -> None:
    """SEC-1052: not what the same transaction wrote to others, before and after it."""
    before, announced, after = three_buds(quiet)
    with transaction.atomic():
        rename_by_hand(before)
        with tracked_change(announced, actor=quiet.actor()):
            announced.name = "by a person"
            announced.save()
        rename_by_hand(after)
    assert noted() == {before.pk, after.pk}


def test_a_deletion_announces_what_goes_with_it_and_nothing_else(quiet: Tenant) -> None:
    """SEC-1052: a bud takes its checks along; another bud is changed by hand meanwhile."""
    deleted, other, _ = three_buds(quiet)
    with transaction.atomic():
        record_deleted(deleted, actor=quiet.actor())
        deleted.delete()
        rename_by_hand(other)
    assert noted() == {other.pk}


def test_a_change_announces_no_deletion(quiet: Tenant) -> None:
    """SEC-1052."""
    changed, other, _ = three_buds(quiet)
    check = BudCheck.objects.for_workspace(quiet.workspace).get()
    with transaction.atomic():
        with tracked_change(changed, actor=quiet.actor()):
            changed.name = "by a person"
            changed.save()
        BudCheck.objects.for_workspace(quiet.workspace).delete()
        Bud.objects.for_workspace(quiet.workspace).filter(pk=other.pk).delete()
    assert noted() == {check.pk, other.pk}


@pytest.mark.parametrize("is_first", [True, False])
def test_entries_of_other_actions_announce_nothing(quiet: Tenant, is_first: bool) -> None:
    """SEC-1052: whatever row they name."""
    bud = three_buds(quiet)[0]
    draft = EntryDraft(
        action=Action.SERVER_ERROR,
        workspace_id=quiet.workspace.pk,
        actor=quiet.actor(),
        details={"id": str(bud.pk)},
    )
    with transaction.atomic():
        if is_first:
            record(draft)
        rename_by_hand(bud)
        if not is_first:
            record(draft)
    assert noted() == {bud.pk}


def test_rows_of_the_platform_are_noted_too(db: None) -> None:
    """SEC-1052: they are of no workspace."""
    row = SharedProvider.objects.create(name="by hand", base_url="https://models.example.org")
    assert row.pk in noted()


def test_what_is_rolled_back_leaves_nothing(quiet: Tenant) -> None:
    """Ours."""
    with transaction.atomic():
        Workspace.objects.filter(pk=quiet.workspace.pk).update(name="other")
        transaction.set_rollback(True)
    assert sweep() == 0


def test_there_and_back_again_is_no_change(quiet: Tenant) -> None:
    """Ours: several writes of one row are one entry, or none."""
    name = quiet.workspace.name
    before = len(changes(quiet))
    for value in ("one", "two", name):
        Workspace.objects.filter(pk=quiet.workspace.pk).update(name=value)
    assert sweep() == 1
    assert len(changes(quiet)) == before


def test_state_that_changes_by_itself_is_no_configuration(quiet: Tenant) -> None:
    """Ours: a server's health is written all the time, and its row says when something about it is new."""
    server = http_server(quiet, "https://tools.example.org/mcp")
    settle()
    server.state.write(status="error", consecutive_failures=3)
    McpServer.objects.for_workspace(quiet.workspace).update(updated_at=timezone.now())
    server.refresh_from_db()
    server.save()
    assert not OutsideWrite.objects.exists()


def test_whatever_people_enter_about_a_server_is_configuration(quiet: Tenant) -> None:
    """SEC-310: whose account calls use, what is asked for at a sign-in, what the model is: all of it."""
    server = http_server(quiet, "https://tools.example.org/mcp")
    settle()
    rows = McpServer.objects.for_workspace(quiet.workspace).filter(pk=server.pk)
    rows.update(account_use="workspace", oauth_scope="everything", protocol="2026-07-28")
    assert sweep() == 1
    after = changes(quiet)[-1]["after"]
    assert after == {
        "account_use": "workspace",
        "oauth_scope": "everything",
        "protocol": "2026-07-28",
    }


def test_the_triggers_stand_on_every_watched_table_and_are_made_once(tenant: Tenant) -> None:
    """Ours: a second migration changes nothing."""
    from audit.outside_writes.triggers import _names_on

    def names() -> dict[str, set[str]]:
        with connection.cursor() as cursor:
            return {w.table: _names_on(w.table, connection, cursor) for w in audited_tables()}

    before = names()
    install()
    assert names() == before
    assert len(before) >= 10
    assert all(before.values())


@pytest.mark.postgresql
def test_an_announcement_covers_its_own_transaction_only(quiet: Tenant) -> None:
    """Ours: a write by hand just before a person's change of the same row is not hidden by that."""
    workspace = quiet.workspace
    Workspace.objects.filter(pk=workspace.pk).update(is_active=True, name="by hand")
    workspace.refresh_from_db()
    with tracked_change(workspace, actor=quiet.actor()):
        workspace.name = "by a person"
        workspace.save()
    assert sweep() == 1
    assert changes(quiet)[-1]["after"] == {"name": "by hand"}
    Workspace.objects.filter(pk=workspace.pk).update(name="by hand, after it")
    assert sweep() == 1
    assert changes(quiet)[-1]["after"] == {"name": "by hand, after it"}


def test_what_can_not_be_entered_keeps_nothing_behind_it_waiting(quiet: Tenant) -> None:
    """REL-1644: hundreds of such notes stay, and what was written after them is entered."""
    OutsideWrite.objects.bulk_create(
        OutsideWrite(table_name="chat_bud", row_id=str(number), verb="UPDATE", after=["no object"])
        for number in range(201)
    )
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workspaces_membership SET role = 'owner' WHERE role = 'member'")
    before = len(changes(quiet))
    assert sweep() == 2
    assert len(changes(quiet)) == before + 2
    assert OutsideWrite.objects.count() == 201
    assert sweep() == 0
    OutsideWrite.objects.all().delete()


@pytest.mark.postgresql
@pytest.mark.parametrize("schema", ["trellis", "Trellis", "my-schema"])
def test_a_schema_may_have_any_name(db: None, schema: str) -> None:
    """REL-2322: to look for the function there failed in one with capitals or signs in its name."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f'CREATE SCHEMA "{schema}"')
        cursor.execute(f'SET LOCAL search_path TO "{schema}"')
        triggers._install_function(cursor)
        transaction.set_rollback(True)
