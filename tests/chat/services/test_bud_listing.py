"""The page of buds in a workspace with very many, and the choice of buds where a server is installed."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from chat.models import Bud
from chat.pages.bud_listing import PAGE
from tests.chat.services.buds import MANY, many_buds
from tests.factories import Tenant, make_tenant

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def names(page: str) -> list[str]:
    return re.findall(r'/buds/([0-9a-f-]{36})/">', page)


def test_every_bud_is_on_one_page_of_the_list_and_none_on_two(tenant: Tenant) -> None:
    """REL-762: also where many have the same name."""
    many_buds(tenant)
    client = tenant.client("admin")
    page = client.get("/w/acme/buds/").content.decode()
    found = names(page)
    assert len(found) == PAGE
    while following := re.search(r'hx-get="/w/acme/buds/\?([^"]+)"', page):
        page = client.get(f"/w/acme/buds/?{following[1]}", headers=HTMX).content.decode()
        assert "<html" not in page
        found += names(page)
    wanted = Bud.objects.for_workspace(tenant.workspace).order_by("is_archived", "name", "id")
    assert found == [str(pk) for pk in wanted.values_list("pk", flat=True)]


def test_buds_that_are_in_use_lead_to_a_chat_with_them(tenant: Tenant) -> None:
    """REL-2721: from the list, the editor and the admin; from an archived one nothing does."""
    many_buds(tenant, 2)
    archived, used = Bud.objects.for_workspace(tenant.workspace).order_by("name", "-is_archived")
    client = tenant.client("admin")
    for where in (
        "/w/acme/buds/",
        reverse("admin:chat_bud_changelist"),
        f"/w/acme/buds/{used.pk}/",
    ):
        page = client.get(where).content.decode()
        assert f'href="/w/acme/?bud={used.pk}"' in page, where
        assert f"?bud={archived.pk}" not in page
    assert "?bud=" not in client.get(f"/w/acme/buds/{archived.pk}/").content.decode()


def test_the_list_of_buds_is_searched_and_filtered_over_all_of_them(tenant: Tenant) -> None:
    """REL-762."""
    many_buds(tenant)
    client = tenant.client("admin")
    assert len(names(client.get("/w/acme/buds/?q=needle").content.decode())) == 1
    archived = client.get("/w/acme/buds/?state=archived").content.decode()
    assert len(names(archived)) == MANY // 10
    empty = client.get("/w/acme/buds/?q=nothing-like-it").content.decode()
    assert "No bud fits." in empty


@pytest.mark.parametrize(
    ("query", "message"),
    [("stat=x", "There is no filter “stat”."), ("state=gone", "There is no state “gone”.")],
)
def test_a_filter_with_a_typo_is_told_at_the_field(
    tenant: Tenant, query: str, message: str
) -> None:
    """REL-762."""
    page = tenant.client("admin").get(f"/w/acme/buds/?{query}").content.decode()
    assert f'<p class="field-error" id="bud-state-fault" role="alert">{message}</p>' in page
    assert 'aria-describedby="bud-state-fault"' in page


def test_a_member_finds_the_buds_that_members_may_edit(tenant: Tenant) -> None:
    """REL-762: and without one, the page is not theirs."""
    many_buds(tenant, 5)
    client = tenant.client("member")
    assert client.get("/w/acme/buds/").status_code == 403
    Bud.unscoped.filter(slug="bud-3").update(members_may_edit=True)
    assert len(names(client.get("/w/acme/buds/").content.decode())) == 1


def test_the_catalogue_holds_no_list_of_buds_until_one_is_wanted(tenant: Tenant) -> None:
    """REL-763: with ten thousand buds each entry had all of them."""
    many_buds(tenant)
    client = tenant.client("admin")
    page = client.get("/w/acme/catalogue/").content.decode()
    assert "Bud 00001" not in page
    assert 'hx-get="/w/acme/servers/buds/"' in page
    shown = client.get("/w/acme/servers/buds/").content.decode()
    assert shown.count('name="bud_ids"') == 30
    assert "There are more. Search for a name." in shown
    ticked = Bud.unscoped.get(slug="bud-9").pk
    found = client.get(f"/w/acme/servers/buds/?bud_q=00070&bud_ids={ticked}").content.decode()
    assert re.findall(r'value="([0-9a-f-]{36})" (checked)?', found)[0] == (str(ticked), "checked")
    assert found.count('name="bud_ids"') == 2, "the ticked one, and the one in use that fits"
    assert tenant.client("member").get("/w/acme/servers/buds/").status_code == 403


def test_the_page_that_adds_a_server_lists_a_few_buds_and_keeps_those_that_were_ticked(
    tenant: Tenant,
) -> None:
    """REL-765: with ten thousand buds it had all of them. It takes one of this workspace that it does not show."""
    many_buds(tenant)
    other = make_tenant("other")
    many_buds(other, 1)
    client = tenant.client("admin")
    url = "/w/acme/servers/add/"
    page = client.get(url).content.decode()
    assert page.count('name="bud_ids"') == 30
    assert 'hx-get="/w/acme/servers/buds/"' in page
    assert 'form="no-form"' in page, "Enter in the search does not add the server"
    last = Bud.objects.for_workspace(tenant.workspace).order_by("name").last()
    elsewhere = Bud.objects.for_workspace(other.workspace).get()
    assert last
    asked = {"name": "orders", "auth_type": "none", "protocol": "auto", "use": "chosen_buds"}
    again = client.post(url, {**asked, "bud_ids": [str(last.pk)]}).content.decode()
    assert f'value="{last.pk}" checked' in again
    asked["url"] = "https://orders.example.org/mcp"
    refused = client.post(url, {**asked, "bud_ids": [str(last.pk), str(elsewhere.pk)]})
    assert refused.status_code == 422
    assert "is not one of the available choices" in refused.content.decode()
    assert client.post(url, {**asked, "bud_ids": [str(last.pk)]}).status_code == 302
    last.refresh_from_db()
    assert last.mcp.servers
