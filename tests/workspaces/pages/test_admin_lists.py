"""The admin's lists: their addresses, their headings, and what they say where rows are left out."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.db import models
from django.urls import reverse

from chat.models import Bud
from tests.factories import Tenant
from workspaces.models import Membership


def test_a_list_says_what_of_its_address_it_leaves_out(tenant: Tenant) -> None:
    """REL-770: a filter that does not exist, and a value that is none."""
    client = tenant.client("admin")
    plain = client.get("/admin/chat/bud/", follow=True)
    assert not list(plain.context["messages"])
    for typed in ("nonsense=1", "is_archived__exact=maybe"):
        page = client.get(f"/admin/chat/bud/?{typed}", follow=True)
        assert page.status_code == 200
        texts = " ".join(str(message) for message in page.context["messages"])
        assert "All rows are shown." in texts, typed


@pytest.mark.parametrize(
    ("typo", "message"),
    [
        ("o=abc", "There is no column “abc” to sort by."),
        ("o=1.99", "There is no column “1.99” to sort by."),
        ("o=--1", "There is no column “--1” to sort by."),
        ("p=999", "There is no page “999”. This is the first one."),
        ("p=abc", "There is no page “abc”. This is the first one."),
        ("role__exact=emperor", "No choice of the filter “role” fits the address."),
    ],
)
def test_a_lists_address_that_does_not_fit_is_told(tenant: Tenant, typo: str, message: str) -> None:
    """REL-815: it would be shown without it, and nobody would know."""
    where = reverse("admin:workspaces_membership_changelist")
    shown = tenant.client("admin").get(f"{where}?{typo}", follow=True).content.decode()
    assert message in shown


@pytest.mark.parametrize("fits", ["", "o=3", "o=-1.3", "p=1", "role__exact=admin"])
def test_a_lists_address_that_fits_is_not_spoken_of(tenant: Tenant, fits: str) -> None:
    """REL-815."""
    where = reverse("admin:workspaces_membership_changelist")
    shown = tenant.client("admin").get(f"{where}?{fits}").content.decode()
    assert "There is no" not in shown
    assert "No choice" not in shown


@pytest.mark.parametrize(
    "model", sorted(admin.site._registry, key=str), ids=lambda one: one._meta.label
)
def test_each_column_of_each_list_is_one_to_ask_for(
    tenant: Tenant, model: type[models.Model]
) -> None:
    """REL-815: it sorts the list, or is told as none to sort by; columns may be fields, methods or functions."""
    tenant.owner.is_superuser = True
    tenant.owner.save(update_fields=["is_superuser"])
    shown = admin.site._registry[model]
    where = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    for column in range(len(shown.list_display) + 1):
        answer = tenant.client("owner").get(f"{where}?o={column}")
        assert answer.status_code == 200, column


def test_a_page_that_does_not_exist_leads_to_the_first_one_with_its_filters(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-815: also in a list of several pages, where Django drops all filters."""
    monkeypatch.setattr("workspaces.admin.members.MembershipAdmin.list_per_page", 1)
    where = reverse("admin:workspaces_membership_changelist")
    answer = tenant.client("admin").get(f"{where}?role__exact=member&p=999", follow=True)
    assert answer.redirect_chain == [(f"{where}?role__exact=member", 302)]
    assert "There is no page “999”" in answer.content.decode()


FIELDS = [
    (model, field.name)
    for model in (Bud, Membership)
    for field in model._meta.concrete_fields
    if not field.is_relation
]


@pytest.mark.both_engines
@pytest.mark.parametrize(("model", "field"), FIELDS)
def test_no_address_has_a_list_look_for_patterns(
    tenant: Tenant, model: type[models.Model], field: str
) -> None:
    """SEC-684: some would stop the whole process, and beginnings give fields away that are not shown. A link is enough."""
    Bud.objects.create(workspace=tenant.workspace, name="a" * 40 + "!", slug="a")
    where = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    client = tenant.client("admin")
    for way in ("regex", "iregex", "startswith", "contains", "range", "date", "0", "lower__regex"):
        answer = client.get(f"{where}?{field}__{way}=(a%2B)%2B%24")
        assert (answer.status_code, answer.headers["Location"]) == (302, f"{where}?e=1"), way


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("value", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00%2B23:59", "x"])
def test_a_moment_beyond_the_calendar_is_told(tenant: Tenant, value: str) -> None:
    """REL-1506: as any other value that does not fit, and not as an error of ours."""
    where = reverse("admin:chat_bud_changelist")
    for way in ("", "__gt", "__lte", "__in"):
        answer = tenant.client("admin").get(f"{where}?created_at{way}={value}", follow=True)
        assert answer.status_code == 200
        assert "a value that does not fit" in answer.content.decode()


@pytest.mark.both_engines
@pytest.mark.parametrize("way", ["", "__gt", "__in"])
def test_a_number_beyond_the_databases_is_told(tenant: Tenant, way: str) -> None:
    """REL-1506: SQLite's numbers end at 64 bits, and PostgreSQL's where the column's do."""
    where = reverse("admin:mcp_servers_mcpserver_changelist")
    query = f"sampling_daily_tokens{way}={'9' * 40}"
    answer = tenant.client("admin").get(f"{where}?{query}", follow=True)
    assert answer.status_code == 200


@pytest.mark.both_engines
def test_a_search_for_very_many_words_finds_what_begins_so(tenant: Tenant) -> None:
    """REL-1506: each word is a condition of its own, of which SQLite takes no thousand. The page says what was done."""
    where = reverse("admin:workspaces_membership_changelist")
    page = tenant.client("admin").get(where, {"q": "member " * 1200}).content.decode()
    assert "Only the first 200 characters of the search were looked for." in page
    assert tenant.member.email in page


def test_a_tab_of_the_browser_has_the_name_of_its_list(tenant: Tenant) -> None:
    """REL-1669: Django's own title asks to select a row to change, which is what none of these pages is for."""
    page = tenant.client("admin").get("/admin/chat/modelprovider/").content.decode()
    assert "<title>Model providers | Trellis</title>" in " ".join(page.split()).replace(
        "<title> ", "<title>"
    ).replace(" </title>", "</title>")


@pytest.mark.parametrize("name", ["workspaces_apitoken", "chat_sharedchat", "chat_turn"])
def test_a_list_that_others_fill_says_where_its_rows_come_from(tenant: Tenant, name: str) -> None:
    """REL-2450: nobody can add a row there, so the empty page would be a dead end."""
    page = tenant.client("admin").get(reverse(f"admin:{name}_changelist")).content.decode()
    assert "Nothing here yet" in page
    assert "Here you see" in page


@pytest.mark.parametrize("name", ["audit_auditentry", "chat_turn"])
def test_a_list_offers_all_rows_only_where_it_shows_some_of_them(tenant: Tenant, name: str) -> None:
    """REL-3333: above a whole list, the link led to the page it stood on."""
    client = tenant.client("admin")
    Membership.unscoped.filter(user=tenant.admin).update(is_auditor=True)
    page = reverse(f"admin:{name}_changelist")
    head = re.compile(r"<h1.*?</h1>", re.S)
    [whole] = head.findall(client.get(page).content.decode())
    assert "Show all" not in whole
    [narrowed] = head.findall(client.get(page, {"q": "nothing"}).content.decode())
    assert "Show all" in narrowed


def test_links_that_sort_a_list_are_named_by_what_they_do(tenant: Tenant) -> None:
    """REL-3339: a screen reader said "arrow circle down" and "cancel", and not how the list is sorted."""
    page = tenant.client("admin").get("/admin/workspaces/membership/", {"o": "-1"})
    [head] = re.findall(r"<thead>.*?</thead>", page.content.decode(), re.S)
    assert head.count('aria-sort="descending"') == 1
    assert 'aria-label="Sort in the other direction"' in head
    assert 'aria-label="Do not sort by this"' in head
    icons = re.findall(r"<span[^>]*material-symbols[^>]*>", head)
    assert icons
    assert all('aria-hidden="true"' in one for one in icons)
