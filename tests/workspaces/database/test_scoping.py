"""The tenant door: nothing is read, counted or changed without saying whose rows are meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from uuid_utils.compat import uuid7

from audit.models import AuditEntry
from chat.models import Bud, Conversation
from mcp_servers.models import McpServer
from tests.factories import TwoTenants
from workspaces.errors import NotFound
from workspaces.models import Membership
from workspaces.scoping import UnscopedQuery

USES: dict[str, Callable[[Any], object]] = {
    "list": list,
    "count": lambda rows: rows.count(),
    "exists": lambda rows: rows.exists(),
    "first": lambda rows: rows.first(),
    "get": lambda rows: rows.get(pk=uuid7()),
    "values": lambda rows: list(rows.values("pk")),
    "iterator": lambda rows: list(rows.iterator()),
    "update": lambda rows: rows.update(),
    "delete": lambda rows: rows.delete(),
    "filter": lambda rows: list(rows.filter(pk=uuid7())),
    "fetch": lambda rows: rows.fetch(uuid7()),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("model", [Membership, Bud, Conversation, McpServer, AuditEntry])
def test_an_unscoped_query_raises(db: None, model: Any, use: str) -> None:
    """SEC-01, SEC-11: without a tenant nothing runs."""
    with pytest.raises(UnscopedQuery):
        USES[use](model.objects.all())


def test_rows_of_others_look_missing(two_workspaces: TwoTenants) -> None:
    """SEC-02: a foreign id, a missing id and nonsense give the same error."""
    a, b = two_workspaces.a, two_workspaces.b
    foreign = Membership.unscoped.get(user=b.member)
    door = Membership.objects.for_workspace(a.workspace)
    listed = []
    for pk in (foreign.pk, uuid7(), "nonsense", None, 7):
        with pytest.raises(NotFound) as caught:
            door.fetch(pk)
        listed.append((caught.value.status, caught.value.message))
    assert len(set(listed)) == 1
    assert door.count() == 4


def test_a_person_sees_rows_of_their_workspaces_only(two_workspaces: TwoTenants) -> None:
    """SEC-01: also where no workspace is named."""
    seen = Membership.objects.visible_to(two_workspaces.a.member)
    assert {row.workspace_id for row in seen} == {two_workspaces.a.workspace.pk}


@pytest.mark.postgresql
def test_the_database_refuses_references_across_tenants(two_workspaces: TwoTenants) -> None:
    """SEC-03: a row of A cannot point at a row of B, whoever writes it."""
    from django.db import IntegrityError, transaction

    a, b = two_workspaces.a, two_workspaces.b
    bud = Bud.objects.create(workspace=b.workspace, slug="b", name="b")
    with pytest.raises(IntegrityError), transaction.atomic():
        Conversation.objects.create(workspace=a.workspace, bud=bud, owner=a.member)
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
