"""Queries that are compiled once; they stand on parts of Django that it does not promise."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import Case, Exists, F, OuterRef, Subquery, Value, When
from django.forms import model_to_dict

from tests.factories import Tenant
from workspaces.database import is_unavailable, row_security, statement_cursor
from workspaces.database.prepared import PreparedRows, PreparedUpdate, Update
from workspaces.models import Membership, User, Workspace
from workspaces.scoping import UnscopedQuery

pytestmark = [pytest.mark.django_db, pytest.mark.both_engines]


def members(workspace_id: UUID, email: str) -> Any:
    rows = Membership.objects.for_workspace(workspace_id).filter(user__email=email)
    return rows.select_related("user", "workspace").order_by()


def test_rows_are_those_that_django_gives(tenant: Tenant, django_assert_num_queries: Any) -> None:
    """Ours: with every column as Django reads it, and with what is joined."""
    prepared = PreparedRows[Membership](members, UUID, str)
    wanted = members(tenant.workspace.pk, tenant.auditor.email).get()
    for _ in range(2):
        with django_assert_num_queries(1):
            found = prepared.first(tenant.workspace.pk, tenant.auditor.email)
            assert found is not None
            joined: list[tuple[User | Workspace, User | Workspace]] = [
                (found.user, wanted.user),
                (found.workspace, wanted.workspace),
            ]
        assert model_to_dict(found) == model_to_dict(wanted)
        assert (found.pk, found.created_at) == (wanted.pk, wanted.created_at)
        assert all(model_to_dict(one) == model_to_dict(other) for one, other in joined)
    assert prepared.all(tenant.workspace.pk, tenant.owner.email) != [wanted]
    assert prepared.first(uuid4(), tenant.auditor.email) is None


def test_annotations_are_those_that_django_gives(tenant: Tenant) -> None:
    """Ours: with every column of rows and of what is joined in its place, in the form that Django gives them."""

    def members_with(workspace_id: UUID, email: str) -> Any:
        others = User.objects.filter(memberships__workspace_id=OuterRef("workspace_id"))
        return members(workspace_id, email).annotate(
            oldest=Subquery(others.order_by("pk").values("pk")[:1]),
            has_owner=Exists(others.filter(memberships__role="owner")),
            called=F("user__email"),
        )

    wanted = members_with(tenant.workspace.pk, tenant.auditor.email).get()
    found: Any = PreparedRows[Membership](members_with, UUID, str).first(
        tenant.workspace.pk, tenant.auditor.email
    )
    assert found is not None
    assert model_to_dict(found) == model_to_dict(wanted)
    assert found.user.email == found.called == tenant.auditor.email
    assert (found.oldest, found.has_owner) == (wanted.oldest, True)


def test_values_are_those_of_the_driver(tenant: Tenant) -> None:
    """Ours: equal rows give equal values, and a changed row gives others."""
    prepared = PreparedRows[Membership](members, UUID, str)
    first = prepared.first_values(tenant.workspace.pk, tenant.member.email)
    assert first == prepared.first_values(tenant.workspace.pk, tenant.member.email)
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.member).update(
        is_auditor=True
    )
    assert first != prepared.first_values(tenant.workspace.pk, tenant.member.email)
    assert prepared.first_values(uuid4(), tenant.member.email) is None

    def ids(workspace_id: UUID, email: str) -> Any:
        return members(workspace_id, email).values("pk")

    found = PreparedRows[Membership](ids, UUID, str).first_values(
        tenant.workspace.pk, tenant.member.email
    )
    assert found is not None
    assert len(found) == 1


def test_what_cannot_be_prepared_is_refused(tenant: Tenant) -> None:
    """SEC-01: no rows past the tenant's door."""
    with pytest.raises(UnscopedQuery):
        PreparedRows[Membership](lambda pk: Membership.objects.filter(pk=pk), UUID).all(uuid4())


@pytest.mark.postgresql
def test_the_database_keeps_the_statement_with_its_plan(
    tenant: Tenant, settings: Any, django_assert_num_queries: Any
) -> None:
    """REL-740: planned anew a statement with its joins takes four times as long. Behind a pooler it is."""

    def kept() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_prepared_statements")
            return int(cursor.fetchone()[0])

    before = kept()
    prepared = PreparedRows[Membership](members, UUID, str)
    with django_assert_num_queries(5):
        for _ in range(5):
            assert prepared.first(tenant.workspace.pk, tenant.auditor.email) is not None
    assert kept() == before + (0 if row_security.is_on() else 1)

    settings.TRELLIS = settings.TRELLIS.model_copy(update={"database_pooler": "transaction"})
    pooled = PreparedRows[Membership](lambda *values: members(*values).reverse(), UUID, str)
    for _ in range(5):
        assert pooled.first(tenant.workspace.pk, tenant.auditor.email) is not None
    assert kept() == before + (0 if row_security.is_on() else 1)


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_kept_statement_survives_a_migration() -> None:
    """REL-771: a column gets another type while a server runs. A transaction that finds out begins again."""
    if row_security.is_on():
        pytest.skip("statements are not kept with row-level security")

    def read() -> list[tuple[str]]:
        with statement_cursor(connection) as cursor:
            cursor.execute("SELECT name FROM migrated WHERE name = %s", ["Ada"])
            return list(cursor.fetchall())

    def change_to(kind: str) -> None:
        for _ in range(5):
            assert read() == [("Ada",)]
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE migrated ALTER name TYPE {kind}")

    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE migrated AS SELECT 'Ada'::varchar(10) AS name")
    try:
        change_to("varchar(20)")
        assert read() == [("Ada",)]
        change_to("text")
        with pytest.raises(OperationalError) as raised, transaction.atomic():
            read()
        assert is_unavailable(raised.value)
        with transaction.atomic():
            assert read() == [("Ada",)]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE migrated")


@pytest.mark.postgresql
def test_the_driver_keeps_no_other_text(tenant: Tenant) -> None:
    """REL-740: what people write would else stay in a connection's memory."""
    prepared = PreparedRows[Membership](members, UUID, str)
    for number in range(5):
        prepared.first(tenant.workspace.pk, tenant.auditor.email)
        assert not User.objects.filter(email=f"secret-{number}@example.org").exists()
    known = connection.connection._prepared
    assert "secret-" not in repr((known._names, known._counts))


def test_an_update_changes_what_django_would_change(
    tenant: Tenant, django_assert_num_queries: Any
) -> None:
    """Ours: the rows that its values name and no others, and it says how many; rows of a tenant only through the door."""

    def renaming(workspace_id: UUID, email: str, name: str) -> Update:
        rows = Membership.objects.for_workspace(workspace_id).filter(user__email=email)
        people = User.objects.filter(pk__in=rows.values("user"))
        return Update(people, {"name": Case(When(email=email, then=Value(name)))})

    prepared = PreparedUpdate(renaming, UUID, str, str)
    for name in ("Ann", "Ben"):
        with django_assert_num_queries(1):
            assert prepared.run(tenant.workspace.pk, tenant.member.email, name) == 1
        assert User.objects.get(pk=tenant.member.pk).name == name
    assert prepared.run(uuid4(), tenant.member.email, "Cid") == 0
    assert not User.objects.exclude(pk=tenant.member.pk).filter(name="Ben").exists()

    def unscoped(user_id: UUID) -> Update:
        return Update(Membership.objects.filter(user_id=user_id), {"is_auditor": True})

    with pytest.raises(UnscopedQuery):
        PreparedUpdate(unscoped, UUID).run(tenant.member.pk)
