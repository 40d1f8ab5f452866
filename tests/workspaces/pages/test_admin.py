"""The admin refuses what the services refuse, in words, and never calls it done."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.core import mail
from django.db import connection
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from chat.models import Bud, ModelProvider
from tests.factories import Tenant, UserFactory, make_tenant, signed_in
from workspaces.models import Invitation, Membership, User
from workspaces.pages.model_admin import TrackedModelAdmin


def test_a_refused_invitation_is_not_called_sent(tenant: Tenant) -> None:
    """SEC-23: an admin cannot invite an owner, or a member again; the page says why, and no success."""
    client = tenant.client("admin")
    form = {"email": "new@example.org", "role": "owner", "is_auditor": "on", "_save": "Save"}
    page = client.post("/admin/workspaces/invitation/add/", form)
    assert "Select a valid choice. owner is not one" in page.content.decode()
    form = {"email": tenant.member.email, "role": "member", "_save": "Save"}
    page = client.post("/admin/workspaces/invitation/add/", form, follow=True)
    texts = [str(message) for message in page.context["messages"]]
    assert texts == ["This person is already a member."]
    assert Invitation.objects.for_workspace(tenant.workspace).count() == 0


def test_marks_that_nobody_sees_are_no_part_of_an_address_here_either(tenant: Tenant) -> None:
    """REL-2071."""
    form = {"email": "\u200bnew@example.org\ufeff", "role": "member", "_save": "Save"}
    tenant.client("admin").post("/admin/workspaces/invitation/add/", form)
    assert Invitation.objects.for_workspace(tenant.workspace).get().email == "new@example.org"


def test_an_invitations_mail_leaves_once_it_is_committed(
    transactional_db: None, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-47: no transaction is open while the mail server is spoken with; what it refuses is told, and revoked."""
    were_open: list[bool] = []

    def refuse(_mail: object) -> None:
        were_open.append(connection.in_atomic_block)
        raise ConnectionRefusedError

    monkeypatch.setattr(mail.EmailMultiAlternatives, "send", refuse)
    form = {"email": "new@example.org", "role": "member", "_save": "Save"}
    client = tenant.client("admin")
    page = client.post("/admin/workspaces/invitation/add/", form, follow=True)
    assert were_open == [False]
    texts = " ".join(str(message) for message in page.context["messages"])
    assert "The mail server did not take the invitation" in texts
    assert Invitation.objects.for_workspace(tenant.workspace).get().revoked_at is not None


def test_an_invitations_link_is_shown_only_where_no_mail_server_is(
    transactional_db: None, tenant: Tenant, settings: Any
) -> None:
    """SEC-281: with a mail server the link goes by mail alone."""
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"email_host": "smtp.example.org"})
    form = {"email": "new@example.org", "role": "member", "_save": "Save"}
    client = tenant.client("admin")
    page = client.post("/admin/workspaces/invitation/add/", form, follow=True)
    shown = [str(message) for message in page.context["messages"]]
    assert shown[0] == "The invitation was mailed to new@example.org."
    assert "/invitations/" not in " ".join(shown)
    assert "/invitations/" in mail.outbox[0].body


def test_an_invitation_is_sent_and_its_link_shown_once(
    transactional_db: None, tenant: Tenant
) -> None:
    """Ours: without a mail server the link is on the page after saving, and nowhere else."""
    client = tenant.client("admin")
    form = {"email": "new@example.org", "role": "member", "_save": "Save"}
    page = client.post("/admin/workspaces/invitation/add/", form, follow=True)
    shown = " ".join(str(message) for message in page.context["messages"])
    assert "/invitations/" in shown
    again = client.get("/admin/workspaces/invitation/")
    assert "/invitations/" not in " ".join(str(m) for m in again.context["messages"])


def test_the_last_owner_cannot_be_demoted_here_either(tenant: Tenant) -> None:
    """Ours: the same rule through every door."""
    row = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.owner)
    client = tenant.client("owner")
    page = client.post(
        f"/admin/workspaces/membership/{row.pk}/change/",
        {"role": "member", "_save": "Save", "confirmed": "yes"},
        follow=True,
    )
    assert [str(m) for m in page.context["messages"]] == [
        "A workspace needs an owner. Make someone else an owner first."
    ]
    row.refresh_from_db()
    assert row.role == "owner"


def test_a_provider_in_use_is_not_deleted(tenant: Tenant) -> None:
    """Ours: the page names what still uses it."""
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace, name="p", base_url="https://m.example/v1", default_model="m"
    )
    Bud.objects.create(workspace=tenant.workspace, slug="b", name="Busy bud", provider=provider)
    page = tenant.client("admin").post(
        f"/admin/chat/modelprovider/{provider.pk}/delete/", {"post": "yes"}, follow=True
    )
    assert page.status_code == 200
    assert [str(m) for m in page.context["messages"]] == ["This is still in use by Busy bud."]
    assert ModelProvider.objects.for_workspace(tenant.workspace).exists()


def test_a_page_that_deletes_says_what_becomes_of_what_depends_on_the_row(tenant: Tenant) -> None:
    """REL-2073: it had said that nothing else goes."""
    row = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    shown = tenant.client("owner").get(f"/admin/workspaces/membership/{row.pk}/delete/")
    page = shown.content.decode()
    assert tenant.member.email in page
    assert (
        "Their tokens, sign-ins and own servers end. Their account and what they made stay." in page
    )
    assert "related items" not in page
    request: Any = RequestFactory().get("/admin/")
    request.user, request.workspace = UserFactory.create(is_superuser=True), tenant.workspace
    request.actor = tenant.actor("owner")
    silent = [
        type(page).__name__
        for page in admin.site._registry.values()
        if isinstance(page, TrackedModelAdmin)
        and page.has_delete_permission(request)
        and not page.deletion_note
    ]
    assert silent == ["ModelProviderAdmin"]  # its page names what uses the provider


def test_the_admin_is_of_one_workspace_at_a_time(tenant: Tenant) -> None:
    """SEC-01: a person who administers two sees the rooms of the current one, and can change over."""
    other = make_tenant("other")
    Membership.objects.create(workspace=other.workspace, user=tenant.admin, role="admin")
    client = tenant.client("admin")
    client.get(f"/w/{tenant.workspace.slug}/admin/")
    page = client.get("/admin/workspaces/membership/").content.decode()
    assert "owner@a.example.org" in page
    assert "owner@other.example.org" not in page
    assert f"/w/{other.workspace.slug}/admin/" in page
    client.get(f"/w/{other.workspace.slug}/admin/")
    page = client.get("/admin/workspaces/membership/").content.decode()
    assert "owner@other.example.org" in page
    assert "owner@a.example.org" not in page


def test_an_admin_is_offered_no_role_above_their_own(tenant: Tenant) -> None:
    """REL-1487: in forms, in actions, on rows of owners and on invitations; an owner is offered all of it."""
    rows = Membership.objects.for_workspace(tenant.workspace)
    of = {name: rows.get(user=getattr(tenant, name)) for name in ("owner", "admin", "member")}
    for name, (role, is_auditor) in {
        "owner": ("owner", False),
        "judge": ("member", True),
        "plain": ("member", False),
    }.items():
        Invitation.objects.create(
            workspace=tenant.workspace,
            email=f"{name}@guest.example.org",
            role=role,
            is_auditor=is_auditor,
            token_hash=name * 12,
            invited_by=tenant.owner,
            expires_at=timezone.now() + timedelta(days=1),
        )
    base, invited = "/admin/workspaces/membership/", f"/w/{tenant.workspace.slug}/people/invite/"
    for who, is_owner in (("admin", False), ("owner", True)):
        client = tenant.client(who)

        def page(path: str, client: Client = client) -> str:
            return str(client.get(path).content.decode())

        form = page(f"{base}{of['member'].pk}/change/")
        assert ('value="owner"' in form) == is_owner
        assert ('name="is_auditor"' in form) == is_owner
        listed = page(base)
        for action in ("make_owner", "let_audit", "no_longer_audit"):
            assert (f'value="{action}"' in listed) == is_owner, action
        assert 'value="make_admin"' in listed
        of_owner = page(f"{base}{of['owner'].pk}/change/")
        assert ('name="_save"' in of_owner) == is_owner
        assert (client.get(f"{base}{of['owner'].pk}/delete/").status_code == 200) == is_owner
        add = page("/admin/workspaces/invitation/add/")
        assert ('value="owner"' in add) == is_owner
        assert ('name="is_auditor"' in add) == is_owner
        open_ones = page(invited)
        assert ("Send owner@guest.example.org a new" in open_ones) == is_owner
        assert ("Send judge@guest.example.org a new" in open_ones) == is_owner
        assert "Send plain@guest.example.org a new" in open_ones
        assert "Revoke the invitation of owner@guest.example.org" in open_ones


def test_whoever_has_a_role_or_right_already_is_told_so(tenant: Tenant) -> None:
    """REL-1190: and nothing of theirs is ended."""
    row = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    client = tenant.client("owner")
    for action, message in (
        ("make_member", "This is their role already."),
        ("no_longer_audit", "They may not audit anyway."),
    ):
        sent = {"action": action, "_selected_action": str(row.pk), "confirmed": "1"}
        page = client.post("/admin/workspaces/membership/", sent, follow=True)
        assert message in str(next(iter(page.context["messages"])))
    Membership.objects.for_workspace(tenant.workspace).filter(pk=row.pk).update(is_auditor=True)
    sent = {"action": "let_audit", "_selected_action": str(row.pk)}
    page = client.post("/admin/workspaces/membership/", sent, follow=True)
    assert "They may audit already." in str(next(iter(page.context["messages"])))


@pytest.mark.parametrize("name", ["password_change", "password_change_done"])
def test_the_admin_has_no_way_of_its_own_to_change_a_password(tenant: Tenant, name: str) -> None:
    """SEC-686: with a stolen session, the old one could be guessed there without end; nobody would hear of the change."""
    person = tenant.admin
    person.set_password("correct horse battery 1")
    person.save()
    client = tenant.client("admin")
    form = {
        "old_password": "correct horse battery 1",
        "new_password1": "another long one 77",
        "new_password2": "another long one 77",
    }
    for answer in (
        client.get(reverse(f"admin:{name}")),
        client.post(reverse(f"admin:{name}"), form),
    ):
        assert (answer.status_code, answer.headers["Location"]) == (
            302,
            "/accounts/password/change/",
        )
    person.refresh_from_db()
    assert person.check_password("correct horse battery 1")
    assert client.get("/accounts/password/change/").status_code == 200


@pytest.mark.parametrize("page", ["x", "0", "-1", "2", "9" * 30])
def test_the_search_for_pages_of_the_admin_has_one_page(tenant: Tenant, page: str) -> None:
    """REL-1509: another one is not there, which is no error of ours."""
    client = tenant.client("admin")
    where = reverse("admin:search")
    assert "Buds" in client.get(where, {"s": "bud"}).content.decode()
    assert client.get(where, {"s": "bud", "page": "1"}).status_code == 200
    assert client.get(where, {"s": "bud", "page": page}).status_code == 404


def test_the_search_for_pages_finds_what_the_sidebar_shows_the_person_now(tenant: Tenant) -> None:
    """REL-1776: by the names that people see, also pages outside of the admin; rights count as they are."""
    client, where = tenant.client("admin"), reverse("admin:search")

    def found(words: str) -> str:
        return client.get(where, {"s": words, "extended": "1"}).content.decode()

    assert 'data-title="Models and prices"' in found("MODELS AND")
    assert reverse("audit:alerts", args=[tenant.workspace.slug]) in found("alerts")
    assert "No results" in found("no page of this name")
    Membership.unscoped.filter(user=tenant.admin).update(is_auditor=False, role="member")
    assert reverse("audit:alerts", args=[tenant.workspace.slug]) not in found("alerts")
    assert not client.get(where, {"s": " "}).content


def test_an_address_that_is_taken_is_told_at_its_field(tenant: Tenant) -> None:
    """REL-1489: once, in words, in whatever case it is written; a constraint of the table is not named."""
    root = User.objects.create_superuser(email="root@a.example.org")
    client = signed_in(root)
    form = {"email": tenant.member.email.upper(), "name": "N", "password1": "a-long-one-94"}
    form["password2"] = form["password1"]
    for path in ("add/", f"{root.pk}/change/"):
        answer = client.post(f"/admin/workspaces/user/{path}", form)
        errors = answer.context["adminform"].form.errors
        assert errors == {"email": ["Another account has this address."]}, path


def test_accounts_are_shown_in_our_words(tenant: Tenant) -> None:
    """REL-2635: not in Django's, with an address as it is written, and nothing of what is stored of a password."""
    tenant.owner.is_superuser = True
    tenant.owner.save(update_fields=["is_superuser"])
    listed = reverse("admin:workspaces_user_changelist")
    form = reverse("admin:workspaces_user_change", args=[tenant.member.pk])
    for page in (listed, form):
        text = tenant.client("owner").get(page).content.decode()
        assert "Owner of the platform" in text
        assert not re.search("superuser status|Designates|algorithm|Raw passwords", text, re.I)
        assert "Authenticator" not in text
    assert f">{tenant.member.email}</a>" in text
    assert reverse("admin:auth_user_password_change", args=[tenant.member.pk]) in text


def test_whoever_gives_up_the_platform_is_asked_and_led_to_what_is_theirs(tenant: Tenant) -> None:
    """REL-3331: one click shut them out, and the next page only said that they have no access."""
    root = User.objects.create_superuser(email="root@a.example.org")
    UserFactory.create(is_superuser=True)
    client = signed_in(root)
    page = reverse("admin:workspaces_user_change", args=[root.pk])
    asked = client.post(page, {"email": root.email, "name": "Root", "is_active": "on"})
    assert "only another owner can make you an owner again" in asked.content.decode()
    root.refresh_from_db()
    assert root.is_superuser
    shown = client.post(page, dict(asked.context["hidden"]), follow=True)
    assert shown.redirect_chain == [(reverse("workspaces:all"), 302)]
    assert shown.status_code == 200
    root.refresh_from_db()
    assert not root.is_superuser


@pytest.mark.parametrize(
    ("name", "slug", "errors"),
    [
        (
            "x" * 101,
            "garden",
            {"name": ["Ensure this value has at most 100 characters (it has 101)."]},
        ),
        ("", "garden", {"name": ["This field is required."]}),
        ("\u200b", "garden", {"name": ["Give the workspace a name that people can see."]}),
        (
            "Garden",
            "my garden",
            {"slug": ["Use letters from a to z, digits, hyphens and underscores alone."]},
        ),
    ],
)
@pytest.mark.django_db
def test_the_form_of_a_workspace_says_once_what_is_wrong(
    name: str, slug: str, errors: dict[str, list[str]]
) -> None:
    """REL-3332: a name that was too long was also called none, and the short name had a word of programmers."""
    client = signed_in(User.objects.create_superuser(email="root@a.example.org"))
    form = {"name": name, "slug": slug, "is_active": "on"}
    answer = client.post(reverse("admin:workspaces_workspace_add"), form)
    assert answer.context["adminform"].form.errors == errors


@pytest.mark.parametrize("name", ["change", "delete", "history"])
def test_whoever_opens_or_saves_a_row_that_is_gone_reads_so_above_its_list(
    tenant: Tenant, name: str
) -> None:
    """REL-3334: they read its id, on the overview, of a page that they had not asked for."""
    row = Membership.unscoped.get(user=tenant.member)
    page = reverse(f"admin:workspaces_membership_{name}", args=[row.pk])
    page = f"{page}?_changelist_filters=role__exact%3Dmember"
    client = tenant.client("admin")
    assert client.get(page).status_code == 200
    row.delete()
    listed = f"{reverse('admin:workspaces_membership_changelist')}?role__exact=member"
    for ask in (client.get, client.post):
        shown = ask(page, follow=True)
        assert shown.redirect_chain == [(listed, 302)]
        text = shown.content.decode()
        assert "This membership does not exist any more, or it is of another workspace." in text
        assert str(row.pk) not in text


def test_a_refused_invitation_is_in_the_form_again(tenant: Tenant) -> None:
    """REL-3335: its address was lost, and the message did not name it."""
    form = {"email": tenant.member.email, "role": "admin", "is_auditor": "on"}
    page = tenant.client("owner").post("/admin/workspaces/invitation/add/", form, follow=True)
    assert "This person is already a member." in page.content.decode()
    again = page.context["adminform"].form
    assert {name: again[name].value() for name in form} == {**form, "is_auditor": "1"}


def test_the_history_of_a_row_has_moments_as_the_reader_writes_them(tenant: Tenant) -> None:
    """REL-3337: it had the server's, each heading twice on a wide screen, and a word of programmers where it is empty."""
    tenant.owner.is_superuser = True
    tenant.owner.save(update_fields=["is_superuser"])
    client = tenant.client("owner")
    of_account = reverse("admin:workspaces_user_history", args=[tenant.member.pk])
    empty = client.get(of_account).content.decode()
    assert "The audit log has every change." in empty
    change = reverse("admin:workspaces_user_change", args=[tenant.member.pk])
    client.post(change, {"email": tenant.member.email, "name": "Renamed", "is_active": "on"})
    text = client.get(of_account).content.decode()
    [table] = re.findall(r"<table.*?</table>", text, re.S)
    assert "<time " in table
    assert "first:border-t-0lg" not in table
    assert "1 entry" in " ".join(text.split())
