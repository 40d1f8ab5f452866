"""Two-step verification: after the password, a code of an app, or a recovery code."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client, override_settings

from audit.models import AuditEntry
from config.env import EncryptionKey
from tests.factories import PASSWORD, Tenant, UserFactory, make_tenant
from tests.workspaces.people.authenticator_app import code_of
from workspaces.models import TwoStepSecret, User
from workspaces.secrets import count_by_key

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/accounts/2fa/"
APP = f"{PAGE}app/activate/"
CODE = f"{PAGE}authenticate/"
CODES = f"{PAGE}recovery-codes/"
WRONG = "000000"


def sign_in(client: Client, person: User, **more: str) -> Any:
    """Give the password in the form of the page."""
    return client.post("/accounts/login/", {"login": person.email, "password": PASSWORD, **more})


def give_password_again(client: Client, path: str) -> Any:
    """Confirm who one is, as each of these pages asks first."""
    return client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": path})


def turn_on(client: Client) -> str:
    """Turn it on as the page says, and give the key that the app has now."""
    assert give_password_again(client, APP).headers["Location"] == APP
    page = client.get(APP).content.decode()
    found = re.search(r'id="app-key">([A-Z2-7 ]+)<', page)
    assert found is not None
    assert client.post(APP, {"code": code_of(found[1])}).headers["Location"] == CODES
    return found[1]


def recovery_codes(client: Client) -> list[str]:
    """Read them from their page."""
    return re.findall(r"\b\d{8}\b", client.get(CODES).content.decode())


@pytest.fixture
def ada() -> User:
    return UserFactory.create(email="ada@example.org")


@pytest.fixture
def browser(ada: User) -> Client:
    """Ada's, in which she has just signed in."""
    client = Client()
    assert sign_in(client, ada).status_code == 302
    return client


def is_in(client: Client) -> bool:
    """Whether this browser is signed in."""
    return "_auth_user_id" in client.session


def entries(action: str) -> list[AuditEntry]:
    return list(AuditEntry.unscoped.filter(action=action).order_by("created_at"))


def test_the_password_alone_lets_nobody_in(ada: User, browser: Client) -> None:
    """SEC-1225: With two-step verification, a password without a code signs nobody in, and the log has the wrong code."""
    key = turn_on(browser)
    stranger = Client()
    assert sign_in(stranger, ada).headers["Location"] == CODE
    assert not is_in(stranger)
    assert stranger.get("/accounts/2fa/").headers["Location"].startswith("/accounts/login/")
    page = stranger.post(CODE, {"code": WRONG})
    assert "This code is not right." in page.content.decode()
    assert not is_in(stranger)
    wrong = entries("auth.failed")[-1]
    assert wrong.details == {"account": ada.email, "step": "code"}

    assert stranger.post(CODE, {"code": code_of(key)}).status_code == 302
    assert is_in(stranger)
    assert [entry.sign_in for entry in entries("auth.signed_in")] == ["password", "password+code"]


def test_a_new_password_by_mail_is_no_way_around_it(ada: User, browser: Client) -> None:
    """SEC-1233: Whoever reads somebody's mail sets a new password, and is asked for the code all the same."""
    turn_on(browser)
    mail.outbox.clear()
    stranger = Client()
    stranger.post("/accounts/password/reset/", {"email": ada.email})
    found = re.search(r"/accounts/password/reset/key/\S+", str(mail.outbox[0].body))
    assert found is not None
    form = stranger.get(found[0]).headers["Location"]
    new = "another long phrase"
    assert stranger.post(form, {"password1": new, "password2": new}).status_code == 302
    assert not is_in(stranger)
    answer = stranger.post("/accounts/login/", {"login": ada.email, "password": new})
    assert answer.headers["Location"] == CODE
    assert not is_in(stranger)


def test_a_code_works_once(ada: User, browser: Client) -> None:
    """SEC-1226: Whoever sees a code that was used cannot sign in with it."""
    key = turn_on(browser)
    code = code_of(key)
    for client, is_let_in in ((Client(), True), (Client(), False)):
        sign_in(client, ada)
        client.post(CODE, {"code": code})
        assert is_in(client) is is_let_in


def test_codes_cannot_be_guessed(ada: User, browser: Client) -> None:
    """SEC-1227: After five wrong codes in five minutes even the right one is refused, also from another browser."""
    key = turn_on(browser)
    stranger = Client()
    sign_in(stranger, ada)
    for _ in range(5):
        stranger.post(CODE, {"code": WRONG})
    for client in (stranger, Client()):
        sign_in(client, ada)
        page = client.post(CODE, {"code": code_of(key)})
        assert "Too many wrong tries." in page.content.decode()
        assert not is_in(client)


def test_a_recovery_code_lets_in_once(ada: User, browser: Client) -> None:
    """SEC-1228: Each recovery code lets in once. New ones end those before."""
    turn_on(browser)
    first, second, *rest = recovery_codes(browser)
    assert len(rest) == 8
    for client, is_let_in in ((Client(), True), (Client(), False)):
        sign_in(client, ada)
        client.post(CODE, {"code": first})
        assert is_in(client) is is_let_in
    assert entries("auth.signed_in")[-1].sign_in == "password+recovery"
    assert "9 unused codes" in browser.get(PAGE).content.decode()

    assert browser.post(f"{CODES}generate/").headers["Location"] == CODES
    assert not set(recovery_codes(browser)) & {second, *rest}
    late = Client()
    sign_in(late, ada)
    late.post(CODE, {"code": second})
    assert not is_in(late)


def test_changing_it_takes_the_password_again(ada: User, browser: Client) -> None:
    """SEC-1229: A browser that somebody has left open does not show codes, and does not turn the second step off."""
    key = turn_on(browser)
    other = Client()
    sign_in(other, ada)
    other.post(CODE, {"code": code_of(key)})
    turning_off = f"{PAGE}app/deactivate/"
    for path in (CODES, f"{CODES}generate/", f"{CODES}download/", turning_off):
        answer = other.get(path)
        assert answer.headers["Location"].startswith("/accounts/reauthenticate/"), path
    for password in ("wrong", PASSWORD):
        ada.refresh_from_db()
        assert ada.has_two_steps
        other.post("/accounts/reauthenticate/", {"password": password, "next": turning_off})
        other.post(turning_off)
    ada.refresh_from_db()
    assert not ada.has_two_steps


def test_turning_it_on_and_off_is_in_the_log_and_in_a_mail(ada: User, browser: Client) -> None:
    """SEC-1230: The log and a mail tell of each change of how a person signs in, and turning it off forgets its secrets."""
    turn_on(browser)
    browser.post(f"{CODES}generate/")
    browser.post(f"{PAGE}app/deactivate/")
    for action in ("auth.two_steps_on", "auth.recovery_codes", "auth.two_steps_off"):
        assert [entry.actor_label for entry in entries(action)] == [ada.email], action
    assert [one.subject for one in mail.outbox] == [
        "Trellis: Two-step verification was turned on",
        "Trellis: You have new recovery codes",
        "Trellis: Two-step verification was turned off",
    ]
    assert not TwoStepSecret.objects.exists()
    assert not Authenticator.objects.exists()
    client = Client()
    sign_in(client, ada)
    assert is_in(client)


def test_a_wrong_first_code_turns_nothing_on(ada: User, browser: Client) -> None:
    """SEC-1225: Nobody is locked out by an app that did not get the key. The page keeps the key for another try."""
    give_password_again(browser, APP)
    before = browser.get(APP).content.decode()
    after = browser.post(APP, {"code": WRONG}).content.decode()
    keys = [re.findall(r'id="app-key">([A-Z2-7 ]+)<', page) for page in (before, after)]
    assert keys[0] == keys[1]
    assert "This code is not right." in after
    ada.refresh_from_db()
    assert not ada.has_two_steps


def test_the_key_is_sealed_and_rotates(ada: User, browser: Client) -> None:
    """SEC-1231: Keys of apps are sealed as all secrets are, and stay usable when the encryption key changes."""
    give_password_again(browser, APP)
    [shown] = re.findall(r'id="app-key">([A-Z2-7 ]+)<', browser.get(APP).content.decode())
    assert shown.replace(" ", "") not in str(dict(browser.session))
    key = turn_on(browser)
    plain = key.replace(" ", "")
    with connection.cursor() as cursor:
        for table in ("mfa_authenticator", "workspaces_twostepsecret"):
            cursor.execute(f"SELECT * FROM {table}")
            assert plain not in str(cursor.fetchall())
    keys = (EncryptionKey("new", bytes(range(32))), *settings.TRELLIS.encryption_keys)
    with override_settings(TRELLIS=settings.TRELLIS.model_copy(update={"encryption_keys": keys})):
        call_command("rotate_keys", stdout=StringIO())
        assert set(count_by_key()) == {"new"}
        client = Client()
        sign_in(client, ada)
        client.post(CODE, {"code": code_of(key)})
        assert is_in(client)


def test_the_key_of_somebody_else_does_not_count(ada: User, browser: Client) -> None:
    """SEC-1231: Whoever points a row at another person's secret gains nothing by it."""
    key = turn_on(browser)
    eve = UserFactory.create(email="eve@example.org")
    kept = Authenticator.objects.get(user=ada, type="totp")
    Authenticator.objects.create(user=eve, type="totp", data=kept.data)
    client = Client()
    sign_in(client, eve)
    assert client.post(CODE, {"code": code_of(key)}).status_code == 409
    assert not is_in(client)


def test_who_comes_from_a_link_gets_there_after_the_code(ada: User, browser: Client) -> None:
    """REL-3280: The second step leads to the page that somebody wanted."""
    key = turn_on(browser)
    client = Client()
    sign_in(client, ada, next="/account/")
    answer = client.post(CODE, {"code": code_of(key)})
    assert answer.headers["Location"] == "/account/"


@pytest.fixture
def owner() -> Client:
    """The browser of the platform's owner."""
    client = Client()
    root = UserFactory.create(email="root@example.org", is_superuser=True)
    sign_in(client, root)
    return client


def test_the_owner_helps_whoever_lost_their_phone(
    ada: User, browser: Client, owner: Client
) -> None:
    """REL-3281: The platform's owner turns it off for somebody, in the admin or over REST. The log and a mail tell it."""
    for how in ("admin", "rest"):
        turn_on(browser)
        mail.outbox.clear()
        if how == "admin":
            form = {
                "action": "turn_off_two_steps",
                "_selected_action": str(ada.pk),
                "confirmed": "1",
            }
            assert owner.post("/admin/workspaces/user/", form).status_code == 302
        else:
            path = f"/api/platform/accounts/{ada.pk}/two_steps/"
            answer = owner.delete(path)
            assert (answer.status_code, answer.json()["has_two_steps"]) == (200, False)
            assert owner.delete(path).status_code == 409
        assert [one.to for one in mail.outbox] == [[ada.email]]
        change = entries("config.changed")[-1].details
        assert (change["before"], change["after"]) == (
            {"has_two_steps": True},
            {"has_two_steps": False},
        )
        assert not TwoStepSecret.objects.exists()
        client = Client()
        sign_in(client, ada)
        assert is_in(client)


def test_only_the_owner_may(ada: User, browser: Client) -> None:
    """SEC-1232: Admins of workspaces cannot take somebody's second step away."""
    turn_on(browser)
    tenant: Tenant = make_tenant("a")
    client = Client()
    client.force_login(tenant.owner, backend="allauth.account.auth_backends.AuthenticationBackend")
    assert client.delete(f"/api/platform/accounts/{ada.pk}/two_steps/").status_code in {403, 404}
    ada.refresh_from_db()
    assert ada.has_two_steps


def test_whoever_has_the_machine_helps_the_owner(ada: User, browser: Client) -> None:
    """REL-3282: A command lets an owner in who has lost phone and codes. It says so where there is nothing to turn off."""
    turn_on(browser)
    out = StringIO()
    call_command("turn_off_two_steps", "Ada@example.org", stdout=out)
    assert "signs in with the password alone" in out.getvalue()
    assert entries("config.changed")[-1].source == "command"
    for address, fault in (
        (ada.email, "has no two-step verification"),
        ("nobody@example.org", "There is no account"),
    ):
        with pytest.raises(CommandError, match=fault):
            call_command("turn_off_two_steps", address)
