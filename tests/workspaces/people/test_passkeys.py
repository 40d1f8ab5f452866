"""Passkeys: signing in by the lock of a device, alone or after the password."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.core import mail
from django.test import Client, override_settings

from audit.models import AuditEntry
from tests.factories import PASSWORD, UserFactory
from tests.workspaces.people.passkey_device import PasskeyDevice
from tests.workspaces.people.test_two_step import CODE, CODES, is_in, recovery_codes, turn_on
from workspaces.actors import Source
from workspaces.middleware import actor_for
from workspaces.models import User
from workspaces.people.two_step import turn_off_two_steps

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/accounts/2fa/"
KEYS = f"{PAGE}passkeys/"
ADD = f"{KEYS}add/"
ALONE = "/accounts/passkey/"
ODD = [
    json.dumps({"id": "a", "rawId": "a", "response": {}, "clientExtensionResults": []}),
    json.dumps(
        {
            "id": "a",
            "rawId": "a",
            "type": "public-key",
            "response": {"attestationObject": "YQ", "clientDataJSON": "YQ"},
        }
    ),
]
OPTIONS = re.compile(r'<script id="passkey-options" type="application/json">(.*?)</script>', re.S)


def browser_of(person: User | None = None) -> Client:
    """A browser at the address that devices know; of somebody who has just given their password."""
    client = Client(headers={"host": "localhost"})
    if person is not None:
        give_password(client, person)
        assert is_in(client)
    return client


def give_password(client: Client, person: User) -> Any:
    """Fill the form of the page."""
    return client.post("/accounts/login/", {"login": person.email, "password": PASSWORD})


def asked_of(page: Any) -> dict[str, Any]:
    """What a page asks of a device."""
    found = OPTIONS.search(page.content.decode())
    assert found is not None, page.content.decode()[:500]
    options: dict[str, Any] = json.loads(found[1])
    return options.get("request_options", options)


def add(client: Client, device: PasskeyDevice, name: str = "My phone") -> Any:
    """Add the device's passkey to whoever is signed in."""
    client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": ADD})
    credential = device.create(asked_of(client.get(ADD)))
    return client.post(ADD, {"name": name, "credential": credential})


def sign_in_with(client: Client, device: PasskeyDevice, **more: str) -> Any:
    """Press the button of the sign-in page."""
    ajax = {"x-requested-with": "XMLHttpRequest", "accept": "application/json"}
    options = client.get(ALONE, headers=ajax).json()["request_options"]
    return client.post(ALONE, {"credential": device.get(options), **more}, follow=False)


def entries(action: str) -> list[AuditEntry]:
    """Of the log, the oldest first."""
    return list(AuditEntry.objects.across_workspaces().filter(action=action).order_by("id"))


@pytest.fixture
def ada() -> User:
    return UserFactory.create(email="ada@example.org")


@pytest.fixture
def device(ada: User) -> PasskeyDevice:
    """Ada's, with a passkey of hers."""
    made = PasskeyDevice()
    assert add(browser_of(ada), made).headers["Location"] == CODES
    return made


def test_a_person_signs_in_with_a_passkey_alone(ada: User, device: PasskeyDevice) -> None:
    """REL-3310: With a passkey a person signs in without a password, lands where they wanted, and the log says so."""
    client = browser_of()
    assert sign_in_with(client, device, next="/account/").headers["Location"] == "/account/"
    assert client.session["_auth_user_id"] == str(ada.pk)
    assert [entry.sign_in for entry in entries("auth.signed_in")] == ["password", "passkey"]


def test_adding_and_removing_are_in_the_log_and_in_a_mail(ada: User, device: PasskeyDevice) -> None:
    """SEC-1247: Each passkey that comes or goes has an entry and a mail to its person, and takes their password."""
    assert len(entries("auth.passkey_added")) == 1
    assert mail.outbox[-1].subject == "Trellis: A passkey was added"
    client = browser_of()
    sign_in_with(client, device)
    row = Authenticator.objects.get(user=ada, type=Authenticator.Type.WEBAUTHN)
    remove = f"{KEYS}{row.pk}/remove/"
    assert client.get(remove).headers["Location"].startswith("/accounts/reauthenticate/")
    assert client.get(ADD).headers["Location"].startswith("/accounts/reauthenticate/")
    client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": remove})
    assert "My phone" in client.get(remove).content.decode()
    client.post(remove)
    assert len(entries("auth.passkey_removed")) == 1
    assert mail.outbox[-1].subject == "Trellis: A passkey was removed"
    ada.refresh_from_db()
    assert not ada.has_two_steps
    assert give_password(browser_of(), ada).headers["Location"] != CODE


def test_a_password_alone_lets_nobody_in_who_has_a_passkey(
    ada: User, device: PasskeyDevice
) -> None:
    """SEC-1248: Whoever has a passkey is asked for it, or for a recovery code, after the password."""
    ada.refresh_from_db()
    assert ada.has_two_steps
    client = browser_of()
    assert give_password(client, ada).headers["Location"] == CODE
    assert not is_in(client)
    page = client.get(CODE)
    assert "Use your passkey" in page.content.decode()
    client.post(CODE, {"credential": device.get(asked_of(page))})
    assert is_in(client)
    assert entries("auth.signed_in")[-1].sign_in == "password+passkey"

    client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": CODES})
    other = browser_of()
    give_password(other, ada)
    other.post(CODE, {"code": recovery_codes(client)[0]})
    assert is_in(other)


def test_the_owner_of_the_platform_ends_passkeys_with_the_rest(
    ada: User, device: PasskeyDevice, superuser: User
) -> None:
    """SEC-1260: When two-step verification is turned off for somebody, their passkeys let nobody in any more."""
    actor = actor_for(superuser, None, source=Source.ADMIN, request_id="test")
    turn_off_two_steps(account=ada, actor=actor)
    assert "removed your passkeys" in str(mail.outbox[-1].body)
    client = browser_of()
    sign_in_with(client, device)
    assert not is_in(client)
    give_password(client, ada)
    assert is_in(client)


def test_a_passkey_stands_beside_the_app(ada: User) -> None:
    """Whoever has both may use either."""
    client, device = browser_of(ada), PasskeyDevice()
    turn_on(client)
    assert add(client, device).headers["Location"] == KEYS
    other = browser_of()
    give_password(other, ada)
    page = other.get(CODE).content.decode()
    assert "Enter your code" in page
    assert "Use a passkey" in page


@pytest.mark.parametrize(
    "change",
    [
        {"origin": "https://evil.example"},
        {"is_unlocked": False},
        {"id": b"another"},
    ],
    ids=["another page", "locked", "another passkey"],
)
def test_a_passkey_works_only_where_and_by_whom_it_should(
    ada: User, device: PasskeyDevice, change: dict[str, Any]
) -> None:
    """SEC-1249: A passkey lets in neither for another site's page, nor unlocked by nobody, nor one that is unknown."""
    for name, value in change.items():
        setattr(device, name, value)
    client = browser_of()
    assert sign_in_with(client, device).headers["Location"] == "/accounts/login/"
    assert not is_in(client)
    assert "This passkey was not accepted" in client.get("/accounts/login/").content.decode()


def test_an_answer_works_once(ada: User, device: PasskeyDevice) -> None:
    """SEC-1250: What a device has signed lets somebody in once, and only the browser that asked."""
    client, thief = browser_of(), browser_of()
    ajax = {"x-requested-with": "XMLHttpRequest"}
    options = client.get(ALONE, headers=ajax).json()["request_options"]
    thief.get(ALONE, headers=ajax)
    credential = device.get(options)
    thief.post(ALONE, {"credential": credential})
    assert not is_in(thief)
    client.post(ALONE, {"credential": credential})
    assert is_in(client)
    client.post("/accounts/logout/")
    client.post(ALONE, {"credential": credential})
    assert not is_in(client)


@pytest.mark.parametrize(
    "credential", ["", "{", "[]", "{}", '{"response": 7}', "null", '{"id": 1}', *ODD]
)
def test_a_broken_answer_is_refused_in_words(ada: User, credential: str) -> None:
    """Nothing of it is an error of the server."""
    client = browser_of()
    client.get(ALONE, headers={"x-requested-with": "XMLHttpRequest"})
    assert client.post(ALONE, {"credential": credential}).status_code == 302
    assert not is_in(client)
    client = browser_of(ada)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": ADD})
    client.get(ADD)
    assert client.post(ADD, {"credential": credential}).status_code == 200


def test_one_without_a_lock_is_not_added(ada: User) -> None:
    """A passkey that anybody could use who finds its device is refused when it is added."""
    page = add(browser_of(ada), PasskeyDevice(is_unlocked=False))
    assert "This passkey was not accepted" in page.content.decode()
    assert not Authenticator.objects.exists()


def test_a_passkey_is_of_its_owner_alone(ada: User, device: PasskeyDevice) -> None:
    """SEC-1251: Nobody removes or uses somebody else's passkey."""
    eve = UserFactory.create()
    client = browser_of(eve)
    row = Authenticator.objects.get(type=Authenticator.Type.WEBAUTHN)
    remove = f"{KEYS}{row.pk}/remove/"
    client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": remove})
    assert client.get(remove).status_code == 404
    assert client.post(remove).status_code == 404
    hers = PasskeyDevice()
    add(client, hers)
    device.owner = hers.owner
    assert not is_in_after(device)


def is_in_after(device: PasskeyDevice) -> bool:
    """Whether a stranger gets in with it."""
    client = browser_of()
    sign_in_with(client, device)
    return is_in(client)


def test_somebody_who_was_switched_off_stays_out(ada: User, device: PasskeyDevice) -> None:
    """SEC-1252: A passkey lets in nobody whose account is switched off, and nobody who has to use single sign-on."""
    values = {
        "sso_issuer": "https://login.example.org",
        "sso_domains": ("example.org",),
        "sso_name": "Acme",
        "sso_required": True,
    }
    with override_settings(TRELLIS=settings.TRELLIS.model_copy(update=values)):
        client = browser_of()
        sign_in_with(client, device)
        assert not is_in(client)
        assert "You sign in with Acme" in client.get("/accounts/login/").content.decode()
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert not is_in_after(device)
