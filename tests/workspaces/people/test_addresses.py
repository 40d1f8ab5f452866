"""An address counts once its mail was answered, whoever made the account."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.core.management import call_command
from django.test import Client

from audit.models import AuditEntry
from tests.factories import PASSWORD, Tenant, UserFactory, make_tenant
from tests.workspaces.people.inviting import invite_member
from workspaces.actors import Role
from workspaces.delivery.mails import compose
from workspaces.models import Invitation, User
from workspaces.people.services import accept_invitation

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/accounts/email/"
BACKEND = "allauth.account.auth_backends.AuthenticationBackend"


def by_factory() -> User:
    return UserFactory.create(email="ada@example.org")


def by_command() -> User:
    call_command("createsuperuser", "--noinput", "--email=ada@example.org")
    return _with_password()


def in_the_admin() -> User:
    root = UserFactory.create(email="root@example.org", is_superuser=True)
    form = {"email": "Ada@example.org", "name": "Ada", "password1": PASSWORD, "password2": PASSWORD}
    answer = browser(root).post("/admin/workspaces/user/add/", form)
    assert answer.status_code == 302
    mail.outbox.clear()
    return _with_password()


def in_the_admin_under_another_address() -> User:
    root = UserFactory.create(email="root@example.org", is_superuser=True)
    person = UserFactory.create(email="before@example.org")
    form = {"email": "ada@example.org", "name": "Ada", "is_active": "on"}
    answer = browser(root).post(f"/admin/workspaces/user/{person.pk}/change/", form)
    assert answer.status_code == 302
    mail.outbox.clear()
    return _with_password()


def _with_password() -> User:
    person = User.objects.get(email="ada@example.org")
    person.set_password(PASSWORD)
    person.save()
    return person


def browser(user: User | None = None) -> Client:
    client = Client()
    if user is not None:
        client.force_login(user, backend=BACKEND)
    return client


def can_sign_in(email: str) -> bool:
    client = browser()
    client.post("/accounts/login/", {"login": email, "password": PASSWORD})
    return "_auth_user_id" in client.session


def answer_the_mail(to: str, client: Client) -> None:
    sent = [one for one in mail.outbox if one.to == [to]][-1]
    found = re.search(r"(/accounts/confirm-email/[^/\s]+/)", str(sent.body))
    assert found is not None, sent.body
    client.get(found[1])
    client.post(found[1])


WAYS = [by_factory, by_command, in_the_admin, in_the_admin_under_another_address]


@pytest.mark.parametrize("make", WAYS)
def test_every_account_has_a_proper_row(make: Callable[[], User]) -> None:
    """SEC-280: one primary row; it is confirmed only if a mail was answered."""
    rows = EmailAddress.objects.filter(user=make())
    listed = [(row.email, row.primary, row.verified) for row in rows]
    assert listed == [("ada@example.org", True, make is by_factory)]


@pytest.mark.parametrize("make", WAYS)
def test_another_address_counts_once_its_mail_was_answered(make: Callable[[], User]) -> None:
    """SEC-280: until then it opens nothing, resets nothing and is nobody's; no form hurries it."""
    person = make()
    client = browser(person)
    client.post(PAGE, {"email": "new@example.org", "action_add": ""})
    for action in ("action_primary", "action_add", "action_send"):
        assert client.post(PAGE, {"email": "new@example.org", action: ""}).status_code in (200, 302)
    client.post(PAGE, {"email": "ada@example.org", "action_remove": ""})
    person.refresh_from_db()
    assert person.email == "ada@example.org"
    assert not can_sign_in("new@example.org")
    assert can_sign_in("ada@example.org")
    link = [one for one in mail.outbox if one.to == ["new@example.org"]]
    browser().post("/accounts/password/reset/", {"email": "new@example.org"})
    assert [one for one in mail.outbox if one.to == ["new@example.org"]] == link
    answer_the_mail("new@example.org", client)
    person.refresh_from_db()
    assert person.email == "new@example.org"
    rows = EmailAddress.objects.filter(user=person)
    assert [(row.email, row.primary, row.verified) for row in rows] == [
        ("new@example.org", True, True)
    ]
    assert can_sign_in("new@example.org")
    assert not can_sign_in("ada@example.org")


@pytest.mark.parametrize("make", WAYS)
@pytest.mark.parametrize("is_confirmed", [True, False])
def test_taken_and_free_addresses_look_alike(make: Callable[[], User], is_confirmed: bool) -> None:
    """SEC-280: the same answer and the same mail; a taken address stays with its account and is no error page."""
    other = User.objects.create_user("taken@example.org", PASSWORD, is_confirmed=is_confirmed)
    person = make()
    client = browser(person)
    listed = []
    for email in ("free@example.org", "taken@example.org"):
        page = client.post(PAGE, {"email": email, "action_add": ""}, follow=True)
        text = re.sub(r'value="[A-Za-z0-9]{64}"|nonce="[^"]*"', "", page.content.decode())
        listed.append((page.status_code, text.replace(email, "it")))
        client.post(PAGE, {"email": email, "action_primary": ""})
    assert listed[0] == listed[1]
    assert [one.to for one in mail.outbox] == [["free@example.org"], ["taken@example.org"]]
    assert mail.outbox[0].subject == mail.outbox[1].subject
    answer_the_mail("taken@example.org", browser())
    person.refresh_from_db()
    other.refresh_from_db()
    assert (person.email, other.email) == ("ada@example.org", "taken@example.org")


def come_by_invitation(tenant: Tenant, typed: str = "new@example.org") -> Client:
    _, token = invite_member(
        workspace=tenant.workspace,
        email="new@example.org",
        role=Role.MEMBER,
        is_auditor=False,
        actor=tenant.actor("admin"),
        accept_url="http://testserver/invitations/{token}/",
    )
    client = browser()
    client.get(f"/invitations/{token}/", follow=True)
    form = {"email": typed, "password1": PASSWORD, "password2": PASSWORD}
    client.post("/accounts/signup/", form)
    client.post("/invitations/accept/")
    return client


def test_a_claim_does_not_keep_out_whoever_is_invited() -> None:
    """SEC-280: somebody who merely wrote down an address cannot stop its owner from having an account."""
    tenant: Tenant = make_tenant("a")
    tenant.client("member").post(PAGE, {"email": "new@example.org", "action_add": ""})
    come_by_invitation(tenant)
    person = User.objects.get(email="new@example.org")
    assert EmailAddress.objects.get(email="new@example.org").user == person
    assert can_sign_in("new@example.org")


def test_nobody_confirms_an_address_by_hand() -> None:
    """SEC-280: the admin has no table of addresses, and refuses a taken one in words."""
    root = UserFactory.create(email="root@example.org", is_superuser=True)
    UserFactory.create(email="taken@example.org")
    client = browser(root)
    assert client.get("/admin/account/emailaddress/").status_code == 404
    form = {"email": "Taken@example.org", "password1": PASSWORD, "password2": PASSWORD}
    page = client.post("/admin/workspaces/user/add/", form)
    assert page.status_code == 200
    assert "Another account has this address" in page.content.decode()


@pytest.mark.parametrize("has_mail_server", [True, False])
def test_a_link_that_the_inviter_saw_confirms_no_address(
    settings: Any, has_mail_server: bool
) -> None:
    """SEC-281, REL-2633: the account is marked until its mail is answered, and whoever waits for one learns where it is."""
    host = "smtp.example.org" if has_mail_server else None
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"email_host": host})
    tenant = make_tenant("a")
    client = come_by_invitation(tenant)
    admins = tenant.client("owner")

    def marks() -> list[bool]:
        members = admins.get("/admin/workspaces/membership/").content.decode()
        own = client.get(PAGE).content.decode()
        joined = AuditEntry.objects.for_workspace(tenant.workspace).filter(
            actor_label="new@example.org"
        )
        entry = joined.order_by("-created_at", "-pk")[0]
        page = admins.get(f"/w/{tenant.workspace.slug}/audit/{entry.pk}/").content.decode()
        return ["not confirmed" in text for text in (members, own, page)]

    assert marks() == [not has_mail_server] * 3
    for page, browser in ((PAGE, client), ("/accounts/password/reset/", Client())):
        text = browser.get(page).content.decode()
        assert ("writes its mails to files" in text) is not has_mail_server
        assert "placeholder" not in text.split('name="email"')[-1]
    assert User.objects.get(email="new@example.org").is_address_confirmed is has_mail_server
    if not has_mail_server:
        client.post(PAGE, {"email": "new@example.org", "action_send": ""})
        answer_the_mail("new@example.org", client)
        client.post("/accounts/logout/")
        browser_again = {"login": "new@example.org", "password": PASSWORD}
        client.post("/accounts/login/", browser_again)
        assert marks() == [False] * 3


def test_who_is_invited_by_mail_has_answered_it() -> None:
    """SEC-281: joining by a mailed link confirms the address of an account that was there."""
    tenant = make_tenant("a")
    person = by_command()
    invitation, token = invite_member(
        workspace=tenant.workspace,
        email=person.email,
        role=Role.MEMBER,
        is_auditor=False,
        actor=tenant.actor("admin"),
        accept_url="http://testserver/invitations/{token}/",
    )
    Invitation.unscoped.filter(pk=invitation.pk).update(is_link_shown=False)
    accept_invitation(token=token, user=person, actor=tenant.actor("member"))
    person.refresh_from_db()
    assert person.is_address_confirmed


def test_a_mail_server_that_is_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-281: an invitation that was not mailed is not called mailed, and is no error page."""
    tenant = make_tenant("a")
    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", refuse)
    form = {"email": "new@example.org", "role": "member", "_save": "Save"}
    page = tenant.client("admin").post("/admin/workspaces/invitation/add/", form, follow=True)
    assert [str(message) for message in page.context["messages"]] == [
        "The mail server did not take the invitation. Try again later."
    ]
    assert not any(one.is_open for one in Invitation.objects.for_workspace(tenant.workspace))


def refuse(*args: object) -> int:
    raise ConnectionRefusedError


def mails_of_every_kind() -> list[Any]:
    """Ask for each mail under a host name that is answered, but is not the public address."""
    tenant = make_tenant("a")
    elsewhere = {"host": "127.0.0.1:8102"}
    person = by_factory()
    client = browser(person)
    mail.outbox.clear()
    form = {"email": "new@example.org", "role": "member", "_save": "Save"}
    tenant.client("admin").post("/admin/workspaces/invitation/add/", form, headers=elsewhere)
    client.post("/accounts/password/reset/", {"email": "ada@example.org"}, headers=elsewhere)
    client.post(PAGE, {"email": "other@example.org", "action_add": ""}, headers=elsewhere)
    answer_the_mail("other@example.org", client)
    change = {"oldpassword": PASSWORD, "password1": PASSWORD + "!", "password2": PASSWORD + "!"}
    client.post("/accounts/password/change/", change, headers=elsewhere)
    return list(mail.outbox)


def test_mails_carry_the_products_name_and_its_public_address(settings: Any) -> None:
    """SEC-282: each link leads to the first public origin with its port, each mail is Trellis's in word and look."""
    settings.ALLOWED_HOSTS = ["127.0.0.1", "testserver", "chat.example.org"]
    update = {"public_origins": ("https://chat.example.org:8443", "https://second.example.org")}
    settings.TRELLIS = settings.TRELLIS.model_copy(update=update)
    sent = mails_of_every_kind()
    assert len(sent) == 5
    for one in sent:
        [(look, kind)] = one.alternatives
        assert kind == "text/html"
        for text in (str(one.body), str(look)):
            links = set(re.findall(r"https?://[^/\s\"<]+", text))
            assert links == {"https://chat.example.org:8443"}, text
            assert "127.0.0.1:8102" not in text
            assert "Thank you for using" not in text
        assert "Trellis" in one.subject
        assert ">Trellis<" in str(look)


def test_a_mail_links_only_to_our_own_pages() -> None:
    """SEC-282: text of others stays text in the mail's look."""
    one = compose(
        subject="x", text="<b>hi</b>\nhttp://evil.example/\nhttp://testserver/a", to=["a@b.c"]
    )
    [(look, _)] = one.alternatives
    assert "&lt;b&gt;hi" in str(look)
    assert set(re.findall(r'href="([^"]+)"', str(look))) == {
        "http://testserver/a",
        "http://testserver/",
    }


@pytest.mark.parametrize(
    "typed",
    ["\u200bada@example.org\ufeff", "\u00a0ada@example.org\u00a0", "ada@\u00adexample.org"],
)
def test_marks_that_nobody_typed_keep_nobody_out(typed: str) -> None:
    """REL-2151: an address that was copied from a page or a mail signs in, and gets the link for a new password."""
    UserFactory.create(email="ada@example.org")
    assert can_sign_in(typed)
    browser().post("/accounts/password/reset/", {"email": typed})
    assert [one.to for one in mail.outbox] == [["ada@example.org"]]


def test_marks_that_nobody_typed_are_no_part_of_another_address() -> None:
    """REL-2151: nor of the address of a new account, or of one that takes another."""
    client = browser(UserFactory.create(email="ada@example.org"))
    client.post(PAGE, {"email": "\u200bnew@example.org\ufeff", "action_add": ""})
    assert [one.to for one in mail.outbox] == [["new@example.org"]]
    come_by_invitation(make_tenant("a"), typed="\u200bnew@example.org\ufeff")
    assert User.objects.filter(email="new@example.org").exists()
