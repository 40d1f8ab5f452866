"""The pages of a person's own settings, and the list of them that each has."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.factories import Tenant
from workspaces.models import User

pytestmark = pytest.mark.django_db

PROFILE = "/account/"


def settings_of(page: bytes) -> tuple[dict[str, str], list[str], str]:
    """The addresses in the list with their names, those marked as open, and what its menu says is open."""
    text = page.decode()
    assert text.count("<h1") == 1
    rows = re.findall(
        r'<li><a class="menu-item" href="(\S+)"( aria-current="page")?>(.+?)</a>', text
    )
    [current] = re.findall(r'<span class="grow truncate">(.+?)</span>', text)
    return (
        {url: name for url, _, name in rows},
        [url for url, is_here, _ in rows if is_here],
        current,
    )


def test_each_page_of_settings_lists_all_and_marks_itself(tenant: Tenant) -> None:
    """REL-3121: in groups that have names; a refused picture is still on the page of the profile."""
    client = tenant.client("member")
    first = client.get(PROFILE)
    pages, _, _ = settings_of(first.content)
    assert len(pages) == 18
    for address, name in pages.items():
        assert settings_of(client.get(address).content) == (pages, [address], name), address
    groups = re.findall(
        r'id="(settings-\d)">(.+?)</div>\s*<ul aria-labelledby="\1">', first.content.decode()
    )
    assert len(groups) == 4
    refused = client.post("/account/picture/")
    assert refused.status_code == 422
    assert settings_of(refused.content)[1] == [PROFILE]


def test_settings_of_no_workspace_are_listed_without_those_of_one() -> None:
    """REL-3121, SEC-461: also the page that signs out of all other browsers.

    REL-3176: whoever has no password yet is led to another page, which is marked all the same.
    """
    client = Client()
    client.force_login(User.objects.create_user(email="nowhere@trellis.example", password=None))
    pages, _, _ = settings_of(client.get(PROFILE).content)
    assert [*pages.values()] == [
        *("Profile", "Appearance", "Time and formats", "Shortcuts"),
        *("E-mail", "Password", "Two-step verification", "Passkeys", "Sessions"),
    ]
    password = "/accounts/password/change/"
    without_password = client.get(password, follow=True)
    assert settings_of(without_password.content) == (pages, [password], "Password")
    two_steps = client.get("/accounts/2fa/").content.decode()
    assert "Set a password first" in two_steps
    assert "/accounts/2fa/app/activate/" not in two_steps
