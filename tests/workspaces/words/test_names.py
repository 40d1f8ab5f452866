"""Names that people give are what others see of them."""

from __future__ import annotations

import pytest

from chat.models import Bud
from tests.factories import Tenant
from tests.platform_api import in_browser
from workspaces.models import User
from workspaces.words.names import seen_name


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("Ada", "Ada"),
        (" invoice\u202egpj.exe ", "invoicegpj.exe"),
        ("A\u200bda\ufeff", "Ada"),
        ("\u2060 \u200b", ""),
        ("\u200d", ""),
        ("\u3164\u2800", ""),
        ("👩\u200d👩\u200d👧 می\u200cخواهم", "👩\u200d👩\u200d👧 می\u200cخواهم"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("…", "…"),
    ],
)
def test_a_name_is_what_people_see_of_it(given: str, seen: str) -> None:
    """REL-2037: joiners that letters and emoji need stay."""
    assert seen_name(given) == seen


@pytest.mark.django_db
def test_nobody_and_no_bud_has_an_unseen_name(tenant: Tenant) -> None:
    """REL-2037: neither a bud nor a folder gets one, and turned names of people are straight."""
    client = tenant.client("owner")

    def send(path: str, **body: str) -> int:
        return int(client.post(path, body, content_type="application/json").status_code)

    unseen = "\u200b\u2060"
    assert send("/api/buds/", slug="ghost", name=unseen) == 422
    assert send("/api/folders/", name=unseen) == 422
    assert send("/api/buds/", slug="turned", name="\u202eTurned") == 201
    assert Bud.objects.for_workspace(tenant.workspace).get(slug="turned").name == "Turned"
    assert send("/api/profile/", name="nimdA\u202e Ada") == 200
    assert User.objects.get(pk=tenant.people["owner"].pk).name == "nimdA Ada"


@pytest.mark.django_db
def test_no_workspace_has_an_unseen_name(superuser: User) -> None:
    """REL-2037: also as the platform's owner makes and renames them."""
    root = in_browser(superuser)
    unseen = root.post("workspaces/", {"name": "\u200b\u2060", "slug": "ghost"})
    assert unseen.status_code == 422
    assert unseen.json()["errors"][0]["attr"] == "name"
    made = root.post("workspaces/", {"name": "\u202eTurned", "slug": "turned"}).json()
    assert made["name"] == "Turned"
    renamed = root.patch(f"workspaces/{made['id']}/", {"name": "nimdA\u202e Acme"}).json()
    assert renamed["name"] == "nimdA Acme"
