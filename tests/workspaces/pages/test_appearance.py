"""The theme is a setting of the person: every page of theirs carries it, wherever they sign in."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.factories import Tenant
from tests.workspaces.pages.profile import profile, root_of

pytestmark = pytest.mark.django_db

PAGE = "/account/appearance/"


def test_every_page_carries_the_theme_of_the_person(tenant: Tenant) -> None:
    """REL-587: chat, pages, settings, the admin and the page of the API; on another device too."""
    assert tenant.client("admin").post(PAGE, {"theme": "dark"}).status_code == 302
    other_device = tenant.client("admin")
    slug = tenant.workspace.slug
    for path in (f"/w/{slug}/", f"/w/{slug}/servers/", f"/w/{slug}/audit/", PAGE, "/api/docs/"):
        root = root_of(other_device, path)
        assert 'data-person-theme="dark" data-theme="dark"' in root, path
    assert 'class="dark"' in root_of(other_device, "/admin/")
    other_device.post(PAGE, {"theme": "system"})
    root = root_of(other_device, PAGE)
    assert 'data-person-theme="system"' in root
    assert "data-theme=" not in root
    assert "theme('auto')" in root_of(other_device, "/admin/")


def test_who_never_chose_keeps_the_choice_of_the_browser(tenant: Tenant) -> None:
    """REL-587: so does a visitor; no page says otherwise."""
    assert 'data-person-theme=""' in root_of(tenant.client("member"), PAGE)
    assert "person-theme" not in root_of(Client(), "/accounts/login/")
    assert "theme()" in root_of(tenant.client("admin"), "/admin/")


def test_a_menu_leads_back_to_its_page_and_to_no_other_site(tenant: Tenant) -> None:
    """REL-587, SEC-398: an address of somebody else's is not gone to."""
    client = tenant.client("member")
    here = f"/w/{tenant.workspace.slug}/servers/?q=x"
    assert client.post(PAGE, {"theme": "light", "next": here}).headers["Location"] == here
    for foreign in (
        "https://evil.example/",
        "//evil.example/",
        "javascript:alert(1)",
        "admin:index",
    ):
        answer = client.post(PAGE, {"theme": "light", "next": foreign})
        assert answer.headers["Location"] == PAGE, foreign
    response = client.post(f"{PAGE}?format=json", {"theme": "dark"})
    assert response.json() == {"theme": "dark"}


def test_an_unknown_theme_is_told_at_its_field(tenant: Tenant) -> None:
    """REL-587: on the page and over REST, and what was chosen stays."""
    client = tenant.client("member")
    client.post(PAGE, {"theme": "dark"})
    refused = client.post(PAGE, {"theme": "pink"})
    assert refused.status_code == 422
    assert "Choose light, dark or as the device." in refused.content.decode()
    assert 'data-theme="dark"' in refused.content.decode()
    assert profile(client, tenant, theme="pink").status_code == 400
    assert profile(client, tenant).json()["theme"] == "dark"


def test_programs_read_and_change_the_callers_profile(tenant: Tenant) -> None:
    """REL-587, SEC-398: what is left out stays, and nobody else's is reached."""
    client = tenant.client("member")
    changed = profile(client, tenant, name=" Ada ", theme="light").json()
    assert changed == {
        "id": str(tenant.member.pk),
        "email": tenant.member.email,
        "name": "Ada",
        "theme": "light",
        "time_zone": "",
        "date_format": "",
        "clock": "",
        "number_format": "",
        "shortcuts": None,
        "picture": "",
    }
    assert profile(client, tenant, name="Ada L.").json()["theme"] == "light"
    assert profile(client, tenant, id=str(tenant.owner.pk), theme="dark").json()["name"] == "Ada L."
    tenant.owner.refresh_from_db()
    assert tenant.owner.theme == ""
    assert profile(client, tenant, name="x" * 151).status_code == 400
