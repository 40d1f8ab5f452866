"""Rows that two change at one moment: one after the other, and not at all once they are gone."""

from __future__ import annotations

import pytest
from django.db import transaction

from tests.factories import Tenant
from tests.locks import beside
from workspaces.actors import Role
from workspaces.changes import tracked_change
from workspaces.errors import NotFound
from workspaces.models import Installation, JoinLink, SavedListView
from workspaces.people.joining import make_join_link, revoke_join_link
from workspaces.restore_detection import held_installation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_engines]


def a_view(tenant: Tenant) -> SavedListView:
    row: SavedListView = SavedListView.objects.create(
        workspace=tenant.workspace,
        owner=tenant.admin,
        list="chat.bud",
        name="mine",
        query="q=a",
    )
    return row


def rename(tenant: Tenant, row: SavedListView) -> None:
    with tracked_change(row, actor=tenant.actor()):
        row.name = "other"
        row.save()


def test_what_was_deleted_is_not_saved_again(tenant: Tenant) -> None:
    """REL-1551: whoever changes it reads that it is gone."""
    row = a_view(tenant)
    SavedListView.objects.for_workspace(tenant.workspace).filter(pk=row.pk).delete()
    with pytest.raises(NotFound, match="Saved view of a list not found"):
        rename(tenant, row)
    assert not SavedListView.objects.for_workspace(tenant.workspace).exists()


@pytest.mark.postgresql
def test_what_is_being_deleted_is_not_saved_again(tenant: Tenant) -> None:
    """REL-1551: whoever changes it waits for whoever deletes it."""
    row = a_view(tenant)
    rows = SavedListView.objects.for_workspace(tenant.workspace).filter(pk=row.pk)
    outcomes = beside(rows.delete, lambda: rename(tenant, row))
    assert isinstance(outcomes, NotFound)
    assert not rows.exists()


def test_a_change_of_what_is_gone_is_no_fault_of_the_server(tenant: Tenant) -> None:
    """REL-1551: whatever is changed."""
    link, _token = make_join_link(
        workspace=tenant.workspace,
        email_domain="example.org",
        role=Role.MEMBER,
        days=1,
        most_uses=1,
        actor=tenant.actor("owner"),
    )
    JoinLink.objects.for_workspace(tenant.workspace).filter(pk=link.pk).delete()
    with pytest.raises(NotFound):
        revoke_join_link(link=link, actor=tenant.actor("owner"))


@pytest.mark.postgresql
def test_processes_that_start_together_make_one_installation() -> None:
    """REL-1554: else the link to the first account, and the checkpoint outside of the database, name another one."""
    Installation.objects.all().delete()

    def look() -> None:
        with transaction.atomic():
            held_installation()

    assert beside(look, look) is None
    assert Installation.objects.count() == 1
