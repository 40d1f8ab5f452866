"""What the database refuses because another request was faster."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.http import HttpResponse
from django.test import RequestFactory
from uuid_utils.compat import uuid7

from audit.reviews.saved_views import change_view, delete_view, save_view
from config.serving.middleware import DomainErrorMiddleware
from tests.factories import Tenant
from workspaces.models import JoinLink, Membership
from workspaces.write_conflicts import as_conflict

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_engines]


def of_nobody(tenant: Tenant) -> None:
    Membership.unscoped.create(workspace=tenant.workspace, user_id=uuid7())


def a_second_time(tenant: Tenant) -> None:
    Membership.unscoped.create(workspace=tenant.workspace, user=tenant.member)


def without_a_need(tenant: Tenant) -> None:
    Membership.unscoped.filter(user=tenant.member).update(role=None)


def against_a_rule(tenant: Tenant) -> None:
    JoinLink.objects.create(
        workspace=tenant.workspace,
        email_domain="example.org",
        token_hash="x",
        hint="x",
        most_uses=1,
        uses=2,
        expires_at=tenant.workspace.created_at,
    )


@pytest.mark.parametrize(
    ("store", "is_told"),
    [(of_nobody, True), (a_second_time, True), (without_a_need, False), (against_a_rule, False)],
)
def test_whoever_was_overtaken_is_told(
    tenant: Tenant, store: Callable[[Tenant], None], is_told: bool
) -> None:
    """REL-1552: what is a fault of ours in any case stays one."""
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        store(tenant)
    error = as_conflict(caught.value)
    assert (error is not None) is is_told
    assert error is None or "at the same moment" in error.message


def test_no_other_error_is_taken_for_one() -> None:
    """REL-1552."""
    assert as_conflict(ValueError("duplicate key")) is None
    assert as_conflict(None) is None


def test_a_page_tells_it_with_the_status_of_a_conflict(tenant: Tenant, rf: RequestFactory) -> None:
    """REL-1552: and a part of a page in words alone."""
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        a_second_time(tenant)
    pages = DomainErrorMiddleware(lambda _request: HttpResponse())
    request = rf.post("/w/a/buds/", headers={"HX-Request": "true"})
    answer = pages.process_exception(request, caught.value)
    assert answer is not None
    assert (answer.status_code, b"at the same moment" in answer.content) == (409, True)
    assert pages.process_exception(request, ValueError()) is None


def test_whoever_changes_what_is_gone_is_told(tenant: Tenant) -> None:
    """REL-1552: also where the row was read before, and is saved without being looked for."""
    owner = tenant.actor("owner")
    view = save_view(
        workspace_id=tenant.workspace.pk,
        actor=owner,
        page="log",
        name="mine",
        query="q=a",
        is_shared=False,
    )
    delete_view(workspace_id=tenant.workspace.pk, actor=owner, view_id=view.pk)
    view.pk = uuid7()
    with pytest.raises(DatabaseError) as caught:
        change_view(view=view, actor=owner, query="q=b")
    assert as_conflict(caught.value) is not None
