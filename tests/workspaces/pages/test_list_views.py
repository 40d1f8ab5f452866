"""Saved views of the admin's lists."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from audit.models import AuditEntry
from tests.factories import MembershipFactory, Tenant, make_tenant
from workspaces.errors import Conflict
from workspaces.lists.list_views import MOST, change_list_view, version_of
from workspaces.models import Membership, SavedListView, User
from workspaces.people.services import remove_member
from workspaces.people.tokens import issue_token

pytestmark = pytest.mark.django_db
MEMBERS = "workspaces.membership"
LIST = "/admin/workspaces/membership/"
PATH = "/api/list-views/"


@pytest.fixture
def tenant() -> Tenant:
    """A workspace with a person in each role."""
    return make_tenant("acme")


def saved(tenant: Tenant, **values: Any) -> SavedListView:
    """A view of the members' list, which is the admin's own."""
    given = {"owner": tenant.admin, "name": "Plain members", "query": "role__exact=member"}
    given |= {"list": MEMBERS, **values}
    return SavedListView.objects.create(workspace=tenant.workspace, **given)


def views_of(tenant: Tenant) -> list[tuple[str, str, bool]]:
    rows = SavedListView.objects.for_workspace(tenant.workspace)
    return [(row.name, row.query, row.is_shared) for row in rows]


def changes_of(tenant: Tenant) -> list[dict[str, Any]]:
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    kind = "saved view of a list"
    return [row.details for row in rows.order_by("id") if row.details["kind"] == kind]


def send(client: Client, query: str, **body: Any) -> Any:
    """Send a form above the list of members as it is shown with this query."""
    return client.post(f"{LIST}?{query}", body)


def texts(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def faulty_fields(answer: Any) -> set[str]:
    return {error["attr"] for error in answer.json()["errors"]}


def test_filters_are_saved_under_a_name_and_opened_again(tenant: Tenant) -> None:
    """REL-820: without the page; the open one is marked."""
    client = tenant.client("admin")
    query = "role__exact=member&o=-5&q=acme&p=1"
    assert "Save this view" in client.get(f"{LIST}?{query}").content.decode()
    answer = send(client, query, list_view="save", name="  Plain   members ")
    assert views_of(tenant) == [("Plain members", "o=-5&q=acme&role__exact=member", False)]
    view = SavedListView.objects.for_workspace(tenant.workspace).get()
    assert answer.url == f"{LIST}?o=-5&q=acme&role__exact=member&_view={view.pk}"
    page = client.get(answer.url)
    assert page.context["saved_views"].open == view
    assert page.content.decode().count('aria-current="true"') == 1
    assert "Update this view" not in page.content.decode()
    listed = {row.user.email for row in page.context["cl"].result_list}
    assert listed == {tenant.member.email, tenant.auditor.email}


def test_a_view_is_updated_renamed_and_deleted(tenant: Tenant) -> None:
    """REL-820: the address that differs is told, and may be saved or discarded."""
    client, view = tenant.client("admin"), saved(tenant)
    query = f"role__exact=owner&_view={view.pk}"
    page = client.get(f"{LIST}?{query}").content.decode()
    assert "changes that are not saved" in page
    assert f"{LIST}?role__exact=member&amp;_view={view.pk}" in page
    named = {"view": str(view.pk)}
    assert send(client, query, list_view="update", **named).status_code == 302
    assert views_of(tenant) == [("Plain members", "role__exact=owner", False)]
    assert send(client, query, list_view="edit", name="Owners", **named).status_code == 302
    assert views_of(tenant) == [("Owners", "role__exact=owner", False)]
    answer = send(client, query, list_view="delete", **named)
    assert answer.url == f"{LIST}?role__exact=owner"
    assert views_of(tenant) == []
    assert changes_of(tenant) == []  # nobody else saw it
    assert "does not exist any more" in texts(client.get(f"{LIST}?{query}"))[-1]


@pytest.mark.parametrize(
    ("query", "name", "field", "message"),
    [
        ("role__exact=member", " ", "name", "at most 80 characters"),
        ("role__exact=member", "x" * 81, "name", "at most 80 characters"),
        ("role__exact=member", "plain", "name", "a view of that name already"),
        ("p=1", "other", "query", "filter or sort the list first"),
        ("role__exact=king", "other", "query", "No choice of the filter"),
        ("o=99", "other", "query", "There is no column “99”"),
        ("q=" + "x" * 4_000, "other", "query", "too long to save"),
    ],
)
def test_what_cannot_be_saved_is_told_at_its_field(
    tenant: Tenant, query: str, name: str, field: str, message: str
) -> None:
    """REL-821: the form stays open with what was typed."""
    saved(tenant, name="plain")
    answer = send(tenant.client("admin"), query, list_view="save", name=name)
    assert answer.status_code == 422
    assert message in " ".join(answer.context["saved_views"].form.faults[field])
    assert message in answer.content.decode()
    assert views_of(tenant) == [("plain", "role__exact=member", False)]


def test_a_saved_choice_that_has_gone_is_told_in_words(tenant: Tenant) -> None:
    """REL-821."""
    view = saved(tenant, query="role__exact=king")
    page = tenant.client("admin").get(f"{LIST}?role__exact=king&_view={view.pk}")
    assert texts(page) == ["No choice of the filter “role” fits the address."]


def test_a_list_has_so_many_views_and_no_more(tenant: Tenant) -> None:
    """REL-821: the row shows the first ones and the open one."""
    for number in range(MOST):
        saved(tenant, name=f"view {number:02}", query=f"q={number}")
    client = tenant.client("admin")
    answer = send(client, "q=one+more", list_view="save", name="One more")
    assert f"You have {MOST} views of this list already" in answer.content.decode()
    views = client.get(f"{LIST}?q=15").context["saved_views"]
    assert [link.view.name for link in views.row] == [
        *(f"view {number:02}" for number in range(6)),
        "view 15",
    ]
    assert len(views.rest) == MOST - 7


def test_a_shared_view_is_every_administrators_and_an_entry_of_the_log(tenant: Tenant) -> None:
    """REL-822: whoever saved it."""
    body = {"list_view": "save", "name": "Members", "is_shared": "on"}
    assert send(tenant.client("admin"), "role__exact=member", **body).status_code == 302
    view = SavedListView.objects.for_workspace(tenant.workspace).get()
    owner = tenant.client("owner")
    page = owner.get(f"{LIST}?{view.query}&_view={view.pk}")
    assert "shared by acme admin" in " ".join(page.content.decode().split())
    named = {"view": str(view.pk)}
    answer = send(owner, view.query, list_view="edit", name="All", is_shared="on", **named)
    assert answer.status_code == 302
    assert send(owner, view.query, list_view="delete", **named).status_code == 302
    created, changed, deleted = changes_of(tenant)
    assert (created["verb"], created["name"]) == ("created", "Members")
    assert (changed["before"], changed["after"]) == ({"name": "Members"}, {"name": "All"})
    assert (deleted["verb"], deleted["name"]) == ("deleted", "All")


def test_whoever_only_sees_a_list_does_not_change_what_others_see(tenant: Tenant) -> None:
    """REL-822: an auditor, who administers another workspace, keeps views of their own and uses shared ones."""
    elsewhere = make_tenant("elsewhere").workspace
    MembershipFactory.create(workspace=elsewhere, user=tenant.auditor, role="admin")
    view = saved(tenant, list="audit.auditentry", query="q=mail", is_shared=True)
    client = tenant.client("auditor")
    assert client.get(f"/w/{tenant.workspace.slug}/admin/").status_code == 302
    log = "/admin/audit/auditentry/"
    text = client.get(f"{log}?q=mail").content.decode()
    assert "Plain members" in text
    assert "Delete view" not in text
    assert "For all administrators" not in text
    for verb in ("delete", "edit", "update"):
        body = {"list_view": verb, "view": str(view.pk), "name": "Taken"}
        assert client.post(f"{log}?q=other", body).status_code == 422
    mine = {"list_view": "save", "name": "Mine"}
    assert client.post(f"{log}?q=x", {**mine, "is_shared": "on"}).status_code == 422
    assert client.post(f"{log}?q=x", mine).status_code == 302
    assert sorted(views_of(tenant)) == [("Mine", "q=x", False), ("Plain members", "q=mail", True)]


def test_a_token_reaches_the_views_of_the_lists_that_its_scopes_show(tenant: Tenant) -> None:
    """SEC-431."""
    saved(tenant, is_shared=True)
    for scopes, number in ((["chat"], 0), (["chat", "members:write"], 1)):
        _row, plain = issue_token(
            workspace=tenant.workspace,
            user=tenant.admin,
            name=" ".join(scopes),
            scopes=scopes,
            expires_at=timezone.now() + timedelta(days=1),
            actor=tenant.actor("admin"),
        )
        answer = Client().get(PATH, headers={"Authorization": f"Bearer {plain}"})
        assert len(answer.json()["results"]) == number


def test_own_views_are_nobody_elses(tenant: Tenant) -> None:
    """SEC-430: not in the list, not by its id, not over REST."""
    view = saved(tenant)
    other = tenant.client("owner")
    page = other.get(f"{LIST}?{view.query}&_view={view.pk}")
    assert view.name not in page.content.decode()
    for verb in ("update", "edit", "delete"):
        body = {"list_view": verb, "view": str(view.pk), "name": "Taken", "is_shared": "on"}
        assert send(other, view.query, **body).status_code == 422
    assert other.get(f"{PATH}{view.pk}/").status_code == 404
    assert other.delete(f"{PATH}{view.pk}/").status_code == 404
    assert views_of(tenant) == [("Plain members", "role__exact=member", False)]


def test_own_views_go_with_the_person_and_shared_ones_stay(tenant: Tenant) -> None:
    """REL-822: without an owner, and whoever may share changes them."""
    saved(tenant)
    shared = saved(tenant, name="Shared", is_shared=True)
    row = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.admin)
    remove_member(membership=row, actor=tenant.actor("owner"))
    assert views_of(tenant) == [("Shared", "role__exact=member", True)]
    owner = tenant.client("owner")
    assert owner.get(f"{PATH}{shared.pk}/").json()["owner"] is None
    body = {"list_view": "edit", "view": str(shared.pk), "name": "Kept", "is_shared": "on"}
    assert send(owner, shared.query, **body).status_code == 302
    assert views_of(tenant) == [("Kept", "role__exact=member", True)]


def test_deleting_a_person_leaves_what_they_shared(tenant: Tenant) -> None:
    """REL-822."""
    saved(tenant, owner=tenant.member)
    saved(tenant, owner=tenant.member, name="Shared", is_shared=True)
    User.objects.get(pk=tenant.member.pk).delete()
    assert [name for name, *_ in views_of(tenant)] == ["Shared"]


def test_a_change_by_two_loses_nobodys(tenant: Tenant) -> None:
    """REL-822: who saves second is told."""
    view = saved(tenant, is_shared=True)
    seen = version_of(view)
    change_list_view(view=view, actor=tenant.actor("owner"), query="role__exact=admin")
    with pytest.raises(Conflict):
        change_list_view(view=view, actor=tenant.actor("admin"), name="Mine", seen=seen)
    body = {"list_view": "edit", "view": str(view.pk), "name": "Mine", "seen": seen}
    answer = send(tenant.client("admin"), view.query, **body)
    assert answer.status_code == 422
    assert "Somebody else changed this view" in answer.content.decode()


def test_views_over_rest_are_the_same(tenant: Tenant) -> None:
    """REL-823: created, listed in pages, changed and deleted; what the list does not know is refused."""
    client = tenant.client("admin")
    kind = "application/json"
    body = {"list": MEMBERS, "name": "Members", "query": "role__exact=member&p=3"}
    made = client.post(PATH, body, content_type=kind)
    assert made.status_code == 201
    assert made.json()["query"] == "role__exact=member"
    assert made.json()["owner"] == tenant.admin.email
    again = client.post(PATH, body, content_type=kind)
    assert again.status_code == 422
    assert "name" in faulty_fields(again)
    for fault, field in (
        ({"query": "role__exact=king"}, "query"),
        ({"query": "user__password__startswith=a"}, "query"),
        ({"list": "chat.nothing"}, "list"),
        ({"list": "workspaces.user"}, "list"),
    ):
        refused = client.post(PATH, {**body, "name": "x", **fault}, content_type=kind)
        assert refused.status_code == 422, fault
        assert field in faulty_fields(refused)
    where = f"{PATH}{made.json()['id']}/"
    changed = client.patch(where, {"is_shared": True, "name": "All"}, content_type=kind)
    assert (changed.json()["name"], changed.json()["is_shared"]) == ("All", True)
    saved(tenant, name="Other", query="q=x")
    first = client.get(f"{PATH}?list={MEMBERS}&page_size=1").json()
    assert len(first["results"]) == 1
    assert first["next"]
    assert [one["name"] for one in client.get(f"{PATH}?is_shared=true").json()["results"]] == [
        "All"
    ]
    assert tenant.client("member").get(PATH).json()["results"] == []
    assert client.delete(where).status_code == 204
    assert [name for name, *_ in views_of(tenant)] == ["Other"]


def test_views_cost_a_list_one_statement(tenant: Tenant) -> None:
    """REL-820: however many there are."""
    client = tenant.client("admin")

    def statements() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            assert client.get(f"{LIST}?role__exact=member").status_code == 200
        return sum("savedlistview" in one["sql"].lower() for one in seen)

    client.get(LIST)
    assert statements() == 1
    for number in range(10):
        saved(tenant, name=f"view {number}", is_shared=bool(number % 2))
    assert statements() == 1


def test_a_file_of_the_list_is_as_the_view_shows_it(tenant: Tenant) -> None:
    """REL-820: the saved view in the address is no filter."""
    view = saved(tenant)
    address = reverse("admin:export_list", args=["workspaces", "membership"])
    answer: Any = tenant.client("admin").get(f"{address}?{view.query}&_view={view.pk}")
    text = b"".join(answer.streaming_content).decode()
    assert tenant.member.email in text
    assert tenant.owner.email not in text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("o=-5&q=acme&role__exact=member", "o=-6&q=acme&role__exact=member"),
        ("o=1.-2", "o=2.-3"),
        ("o=1.x", "o=2.x"),
        ("q=a%26o%3D1", "q=a%26o%3D1"),
    ],
)
def test_a_view_saved_before_keeps_its_order(tenant: Tenant, before: str, after: str) -> None:
    """REL-820: lists that got actions have a column of boxes more; other lists stay as they are, and one can go back."""
    migration = import_module("workspaces.migrations.0016_keep_the_order_of_saved_views")
    mine, other = saved(tenant, query=before), saved(tenant, query=before, list="chat.turn")
    migration.forwards(apps, connection.schema_editor())
    mine.refresh_from_db()
    other.refresh_from_db()
    assert (mine.query, other.query) == (after, before)
    migration.backwards(apps, connection.schema_editor())
    mine.refresh_from_db()
    assert mine.query == before
