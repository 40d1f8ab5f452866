"""The first account: made by whoever reads the console, once."""

from __future__ import annotations

import pytest
from django.core import signing
from django.test import Client

from audit.models import AuditEntry
from tests.factories import UserFactory, WorkspaceFactory
from workspaces.errors import NotFound
from workspaces.models import Installation, Membership, User, Workspace
from workspaces.people import first_owner

pytestmark = pytest.mark.django_db
FORM = {
    "name": "Rosa",
    "email": "Rosa@example.org",
    "password": "a long good phrase 7",
    "workspace_name": "Garden Club",
}


def link() -> str:
    path = first_owner.setup_path()
    assert path is not None
    return path


def test_the_link_makes_an_owner_and_a_workspace_and_signs_in(client: Client) -> None:
    """SEC-331, REL-2303: from the console to the admin's overview, without a shell, and beside other workspaces.

    REL-2632: whoever opens the sign-in before that is led to it.
    """
    first = "Nobody has an account here yet"
    assert first in client.get("/accounts/login/").content.decode()
    WorkspaceFactory.create(name="A demo")
    assert client.get(link()).status_code == 302
    answer = client.post("/setup/", FORM)
    assert answer["Location"] == "/w/garden-club/admin/"
    owner = User.objects.get()
    assert (owner.email, owner.is_superuser, owner.check_password(FORM["password"])) == (
        "rosa@example.org",
        True,
        True,
    )
    assert Membership.unscoped.get().role == "owner"
    assert first not in Client().get("/accounts/login/").content.decode()
    assert "First steps" in client.get("/w/garden-club/admin/", follow=True).content.decode()
    signed_in = AuditEntry.objects.across_workspaces().get(action="auth.signed_in")
    assert signed_in.workspace_id == Workspace.objects.get(slug="garden-club").pk
    entries = AuditEntry.objects.across_workspaces().filter(action="config.changed")
    assert {entry.details["kind"] for entry in entries} >= {"user", "workspace"}


def test_it_opens_no_second_time(client: Client) -> None:
    """SEC-331: not for whoever kept the link, and not for whoever has the page open."""
    kept = link()
    late = Client()
    assert late.get(kept, follow=True).status_code == 200
    client.get(kept)
    client.post("/setup/", FORM)
    answer = late.post("/setup/", {**FORM, "email": "eve@example.org", "workspace_name": "Eve's"})
    assert answer.status_code == 404
    assert "no longer works" in answer.content.decode()
    assert User.objects.count() == 1
    assert first_owner.setup_path() is None


def test_nothing_opens_where_there_is_an_owner_already(client: Client) -> None:
    kept = link()
    UserFactory.create(is_superuser=True)
    assert client.get(kept, follow=True).status_code == 404


@pytest.mark.parametrize("token", ["", "x", "a:b:c"])
def test_a_made_up_link_opens_nothing(token: str) -> None:
    """SEC-331: it is signed, for this installation and this purpose."""
    Installation.objects.get_or_create()
    with pytest.raises(NotFound):
        first_owner.check(token)
    of_another = signing.dumps({"installation": "0" * 32}, salt="workspaces.first_owner")
    with pytest.raises(NotFound):
        first_owner.check(of_another)
    for_another_purpose = signing.dumps({"installation": Installation.objects.get().pk.hex})
    with pytest.raises(NotFound):
        first_owner.check(for_another_purpose)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("password", "short", "too short"),
        ("email", "no address", "valid email"),
        ("workspace_name", "", "required"),
        ("workspace_name", "n" * 101, "at most 100"),
    ],
)
def test_what_does_not_fit_is_told_at_its_field(
    client: Client, field: str, value: str, message: str
) -> None:
    client.get(link())
    answer = client.post("/setup/", {**FORM, field: value})
    assert message in " ".join(answer.context["form"].errors[field])
    assert not User.objects.exists()
    assert not Workspace.objects.exists()


def test_a_name_without_letters_gets_a_usable_address(client: Client) -> None:
    client.get(link())
    assert client.post("/setup/", {**FORM, "workspace_name": "🌱"})["Location"] == "/w/team/admin/"


def test_the_owners_name_holds_what_people_see(client: Client) -> None:
    """REL-2037."""
    client.get(link())
    client.post("/setup/", {**FORM, "name": "\u202eOlga\u200b"})
    assert User.objects.get().name == "Olga"
