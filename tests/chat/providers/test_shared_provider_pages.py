"""The pages on which the platform's owner shares model providers with workspaces."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from chat.models import ModelProvider, SharedProvider, WithheldReason
from tests.chat.providers.sharing import (
    KEY,
    NEW_KEY,
    row_of,
    share,
    stored_key,
)
from tests.chat.providers.usage import ask, make_bud
from tests.factories import CANARY, TwoTenants, signed_in
from tests.fakes.scripted_model import ScriptedModel
from workspaces.actors import Actor
from workspaces.models import User, Workspace

URL = "/platform/providers/"


@pytest.fixture
def root(superuser: User) -> Client:
    """The browser of the platform's owner."""
    return signed_in(superuser)


def page_of(shared: SharedProvider) -> str:
    return f"{URL}{shared.pk}/"


def filled(**changes: Any) -> dict[str, Any]:
    """What a person enters."""
    return {
        "name": "Everybody's",
        "base_url": "https://shared-canary.example.org/v1",
        "default_model": "m",
        **changes,
    }


@pytest.mark.django_db
def test_nobody_but_the_platforms_owner_finds_the_pages(
    two_workspaces: TwoTenants, owner: Actor
) -> None:
    """SEC-456: whatever role a person has in a workspace, also in one that has the provider."""
    shared = share(owner, two_workspaces.a)
    pages = [URL, f"{URL}new/", page_of(shared), f"{page_of(shared)}edit/"]
    for role in ("owner", "admin", "auditor", "member"):
        client = two_workspaces.a.client(role)
        for page in pages:
            assert client.get(page).status_code == 404
            assert client.post(page, filled()).status_code == (405 if page == URL else 404)
        for verb in ("give", "withdraw", "on", "off", "delete"):
            answer = client.post(
                f"{page_of(shared)}{verb}/", {"workspace": two_workspaces.a.workspace.pk}
            )
            assert answer.status_code == 404
        assert "hared model providers" not in client.get("/admin/").content.decode()
    assert [Client().get(page).status_code for page in pages] == [302] * 4
    assert row_of(two_workspaces.a).answers
    assert SharedProvider.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_owner_shares_a_provider_in_the_browser(model: ScriptedModel, root: Client) -> None:
    """REL-938: what is wrong is told at its field; the key is tested, and never shown again."""
    empty = root.get(URL).content.decode()
    assert "You share no provider yet" in empty
    assert "From the environment" in empty
    given = filled(base_url=model.base_url, api_key=KEY)
    for field, value in (
        ("name", ""),
        ("base_url", "ftp://a.example.org"),
        ("api_key", "two words — of no key"),
        ("most_at_once", "0"),
    ):
        refused = root.post(f"{URL}new/", {**given, field: value})
        assert (refused.status_code, set(refused.context["form"].errors)) == (
            422,
            {field, "api_key"},  # which comes back empty
        )
    model.keys = {NEW_KEY}
    refused = root.post(f"{URL}new/", given)
    assert "did not accept this key" in str(refused.context["form"].errors["api_key"])
    assert KEY not in refused.content.decode()
    assert "untested_key" not in refused.context["form"].fields
    model.keys = {KEY}
    model.say("Yes.")
    page = root.post(f"{URL}new/", given, follow=True)
    assert page.status_code == 200
    assert "No workspace may use it yet" in page.content.decode()
    assert KEY not in page.content.decode()
    shared = SharedProvider.objects.get()
    assert stored_key(shared) == KEY
    model.say("Yes.")
    tested = root.post(page_of(shared))
    assert tested.context["trial"].fault == ""
    assert "m answered in" in tested.content.decode()
    assert "Everybody&#x27;s" in root.get(URL).content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_key_that_cannot_be_tested_is_stored_on_request(
    model: ScriptedModel, root: Client
) -> None:
    """REL-938: only then the form offers it."""
    model.stop()
    given = filled(base_url=model.base_url, api_key=KEY)
    refused = root.post(f"{URL}new/", given)
    assert "could not test this key" in str(refused.context["form"].errors["api_key"])
    assert "untested_key" in refused.context["form"].fields
    assert root.post(f"{URL}new/", {**given, "untested_key": "on"}).status_code == 302
    assert stored_key(SharedProvider.objects.get()) == KEY


@pytest.mark.django_db
def test_workspaces_are_found_by_name_and_told_what_a_withdrawal_stops(
    two_workspaces: TwoTenants, root: Client, owner: Actor
) -> None:
    """REL-939: how many buds and chats there use it, before it is withdrawn, switched off or deleted."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a)
    bud = make_bud(a, "Notes")
    bud.provider = row_of(a)
    bud.save()
    ask(a, bud, a.member, "member")
    page = root.get(page_of(shared))
    assert [one.workspace for one in page.context["workspaces"]] == [a.workspace]
    html = page.content.decode()
    assert "It is used there by 1 bud and 1 chat." in html
    assert "It is used by 1 bud and 1 chat. What uses it gets no answers while it is off." in html
    assert CANARY not in html
    found = root.get(page_of(shared), {"q": CANARY.lower()})
    [row] = found.context["workspaces"]
    assert (row.workspace, row.has_it) == (b.workspace, False)
    answer = root.post(f"{page_of(shared)}give/", {"workspace": b.workspace.pk}, follow=True)
    assert "may use “Shared” now" in answer.content.decode()
    assert row_of(b).answers
    root.post(f"{page_of(shared)}withdraw/", {"workspace": a.workspace.pk})
    assert row_of(a).withheld == WithheldReason.WITHDRAWN
    for text in ("", "nothing", str(shared.pk)):
        unknown = root.post(f"{page_of(shared)}give/", {"workspace": text})
        assert unknown.status_code == 404
    assert root.post(f"{page_of(shared)}burn/").status_code == 404


@pytest.mark.django_db
def test_it_is_switched_and_deleted(two_workspaces: TwoTenants, root: Client, owner: Actor) -> None:
    """REL-939: each with a word of what happened."""
    shared = share(owner, two_workspaces.a)
    page = root.post(f"{page_of(shared)}off/", follow=True).content.decode()
    assert "“Shared” is off." in page
    assert row_of(two_workspaces.a).withheld == WithheldReason.SWITCHED_OFF
    assert "“Shared” is on." in root.post(f"{page_of(shared)}on/", follow=True).content.decode()
    gone = root.post(f"{page_of(shared)}delete/", follow=True)
    assert gone.redirect_chain == [(URL, 302)]
    assert "“Shared” is deleted." in gone.content.decode()
    assert root.get(page_of(shared)).status_code == 404
    assert not ModelProvider.objects.for_workspace(two_workspaces.a.workspace).exists()


@pytest.mark.django_db
def test_an_edit_is_noticed_by_whoever_has_the_form_open(root: Client, owner: Actor) -> None:
    """REL-935: the second one sees the value of the first before it is replaced."""
    shared = share(owner)
    edit = f"{page_of(shared)}edit/"
    form = root.get(edit).context["form"]
    seen = {"seen": form.seen_input.split('value="')[1].split('"')[0]}
    kept = filled(name="Shared")
    assert root.post(edit, {**kept, **seen, "default_model": "big"}).status_code == 302
    second = root.post(edit, {**kept, **seen, "default_model": "small"})
    assert second.status_code == 422
    assert "Somebody else changed this to “big”" in str(second.context["form"].errors)
    shared.refresh_from_db()
    assert (shared.default_model, stored_key(shared)) == ("big", KEY)
    other = root.post(edit, filled(base_url="https://other.example.org/v1"), follow=True)
    assert "The stored key was for the old address" in other.content.decode()


@pytest.mark.django_db
@pytest.mark.both_engines
def test_a_page_of_many_workspaces_asks_no_more_than_one_of_few(
    root: Client, owner: Actor, django_assert_max_num_queries: Any
) -> None:
    """REL-939: an installation may have a thousand; they come page by page, by name."""
    Workspace.objects.bulk_create(
        Workspace(name=f"Department {place:03}", slug=f"d-{place:03}") for place in range(120)
    )
    shared = share(owner, is_for_all=True)
    with django_assert_max_num_queries(20):
        page = root.get(page_of(shared))
    assert len(page.context["workspaces"]) == 50
    names = [one.workspace.name for one in page.context["workspaces"]]
    following = root.get(page_of(shared) + page.context["ways"].following.split("#")[0])
    names += [one.workspace.name for one in following.context["workspaces"]]
    assert names == sorted(names)
    assert len(set(names)) == 100
    with django_assert_max_num_queries(12):
        listed = root.get(URL)
    assert listed.context["rows"][0]["row"].workspaces == Workspace.objects.count()
