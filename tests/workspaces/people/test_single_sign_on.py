"""Single sign-on: who gets in with the identity provider of their organization, and into which account."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.signals import pre_social_login
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from audit.models import AuditEntry
from mcp_servers.models import McpServer, OAuthClient, OAuthGrant
from tests.factories import PASSWORD, Tenant, UserFactory, signed_in
from tests.fakes.authorization import Issuer
from tests.workspaces.people.authenticator_app import code_of
from tests.workspaces.people.single_sign_on import (
    ADA,
    START,
    configured,
    confirmed,
    continue_with,
    is_in,
    issued,
    text_of,
)
from tests.workspaces.people.test_two_step import CODE, turn_on
from workspaces.actors import Role, Source
from workspaces.middleware import actor_for
from workspaces.models import ApiToken, Membership, User
from workspaces.people.platform import save_account
from workspaces.people.services import make_invitation
from workspaces.people.tokens import issue_token

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD_PAGE = "/accounts/password/set/"


def last_entry(action: str) -> AuditEntry:
    """The newest of its kind."""
    found = AuditEntry.objects.across_workspaces().filter(action=action).order_by("-id").first()
    assert found is not None
    return found


# Signing in


def test_a_person_signs_in_with_the_provider_and_lands_where_they_wanted(provider: Issuer) -> None:
    """REL-3300: Whoever the provider knows signs in without a password, and the log says so."""
    ada, client = confirmed(), Client()
    page = client.get("/accounts/login/?next=/account/")
    assert 'href="/accounts/sso/?next=/account/"' in page.content.decode()
    assert "Continue with Acme" in page.content.decode()

    assert continue_with(provider, client, to="/account/").headers["Location"] == "/account/"

    assert client.session["_auth_user_id"] == str(ada.pk)
    assert last_entry("auth.signed_in").sign_in == "sso"


def test_somebody_who_comes_again_is_known_by_more_than_their_address(provider: Issuer) -> None:
    """REL-3301: A person whose address changes at the provider keeps their account."""
    ada = confirmed()
    provider.accounts.claims["sub"] = "person-17"
    continue_with(provider, Client())
    client = Client()
    continue_with(provider, client, "ada.king@example.org")
    assert client.session["_auth_user_id"] == str(ada.pk)


def test_without_the_setting_there_is_no_such_way_in(client: Client) -> None:
    """Nobody sees a button, and the addresses behind it are empty."""
    assert "/accounts/sso/" not in client.get("/accounts/login/").content.decode()
    assert client.get(START).status_code == 404
    assert client.get(f"{START}callback/?code=1&state=2").status_code == 404


def test_whoever_is_signed_in_goes_on(provider: Issuer) -> None:
    """A second click on the button changes nothing."""
    assert signed_in(confirmed()).get(f"{START}?next=/account/").headers["Location"] == "/account/"


# Who is let in


@pytest.mark.parametrize(
    ("account", "claims", "words"),
    [
        ("ada@example.com", {}, "Here it lets in people with an address at example.org"),
        (ADA, {"email_verified": False}, "is not confirmed to be yours"),
        (ADA, {"email": None}, "does not say your e-mail address"),
    ],
)
def test_only_addresses_that_the_provider_may_vouch_for_find_an_account(
    provider: Issuer, account: str, claims: dict[str, Any], words: str
) -> None:
    """SEC-1235: An address finds an account only at a domain of the setting, and only if the provider does not doubt it."""
    confirmed(account)
    provider.accounts.claims |= claims
    if "email" in claims:
        provider.answer("userinfo", {"sub": account})
    client = Client()
    answer = continue_with(provider, client, account)
    assert answer.status_code == 403
    assert words in text_of(answer)
    assert not is_in(client)
    assert last_entry("auth.failed").details["step"] == "sso"


def test_a_provider_may_keep_silent_about_what_it_gives_itself(provider: Issuer) -> None:
    """Some providers say of no address that it is confirmed. The setting of domains says that they give them."""
    ada, client = confirmed(), Client()
    provider.accounts.claims["email_verified"] = None
    continue_with(provider, client)
    assert client.session["_auth_user_id"] == str(ada.pk)


def test_an_address_that_only_waits_for_its_mail_finds_nobody(provider: Issuer) -> None:
    """SEC-1236: Whoever has noted somebody else's address at their own account does not get that person's sign-in."""
    eve = confirmed("eve@example.org")
    EmailAddress.objects.create(user=eve, email=ADA, verified=False, primary=False)
    client = Client()
    assert continue_with(provider, client).status_code == 403
    assert not is_in(client)


def test_an_address_that_was_given_to_somebody_else_opens_no_account(provider: Issuer) -> None:
    """SEC-1254: An account that the provider knows as one person's opens to nobody else who gets its address."""
    confirmed()
    provider.accounts.claims["sub"] = "person-17"
    continue_with(provider, Client())
    provider.accounts.claims["sub"] = "person-18"
    client = Client()
    answer = continue_with(provider, client)
    assert answer.status_code == 403
    assert "knows it as somebody else’s" in text_of(answer)
    assert not is_in(client)


def test_two_addresses_never_become_one(provider: Issuer) -> None:
    """SEC-1255: An address beyond ASCII, of which small letters make another one, opens nobody's account."""
    confirmed("mark@example.org")
    provider.accounts.claims["email"] = "mar\u212a@example.org"
    client = Client()
    assert continue_with(provider, client).status_code == 403
    assert not is_in(client)


def test_nobody_comes_in_uninvited(provider: Issuer) -> None:
    """SEC-1237: The provider alone makes no account: it takes an invitation, or the workspace for all."""
    client = Client()
    answer = continue_with(provider, client)
    assert answer.status_code == 403
    assert "nobody has invited this address" in text_of(answer)
    assert not User.objects.filter(email=ADA).exists()


def test_an_invited_person_needs_no_password(provider: Issuer, tenant: Tenant) -> None:
    """REL-3302: With an invitation, the first sign-in makes the account, named as the provider names it, and joins."""
    _row, token = make_invitation(
        workspace=tenant.workspace,
        email=ADA,
        role=Role.ADMIN,
        is_auditor=False,
        actor=tenant.actor("owner"),
    )
    client = Client()
    client.get(f"/invitations/{token}/")
    assert "Continue with Acme" in client.get("/accounts/signup/").content.decode()
    assert continue_with(provider, client).status_code == 302
    ada = User.objects.get(email=ADA)
    assert ada.name == "Ada Lovelace"
    assert ada.is_address_confirmed
    assert not ada.has_usable_password()
    assert Membership.unscoped.get(user=ada, workspace=tenant.workspace).role == Role.ADMIN.value


def test_an_invitation_serves_only_whom_it_was_sent_to(provider: Issuer, tenant: Tenant) -> None:
    """Who comes by the link of somebody else's invitation stays outside."""
    _row, token = make_invitation(
        workspace=tenant.workspace,
        email="bob@example.org",
        role=Role.MEMBER,
        is_auditor=False,
        actor=tenant.actor(),
    )
    client = Client()
    client.get(f"/invitations/{token}/")
    assert continue_with(provider, client).status_code == 403


def test_new_people_join_the_workspace_for_all(provider: Issuer, tenant: Tenant) -> None:
    """REL-3303: With a workspace for all in the settings, new people become its members, and the log says by what."""
    client = Client()
    with configured(provider, sso_workspace=tenant.workspace.slug):
        continue_with(provider, client)
    ada = User.objects.get(email=ADA)
    assert Membership.unscoped.get(user=ada).role == Role.MEMBER.value
    entry = last_entry("config.changed")
    assert (entry.details["verb"], entry.actor_label) == ("created", ADA)
    assert client.get(f"/w/{tenant.workspace.slug}/").status_code == 200


def test_somebody_who_was_switched_off_stays_out(provider: Issuer) -> None:
    """SEC-1238: Single sign-on lets nobody in whose account is switched off."""
    confirmed(is_active=False)
    client = Client()
    assert continue_with(provider, client).headers["Location"] == "/accounts/inactive/"
    assert not is_in(client)


# What others may have prepared


def test_an_account_that_nobody_confirmed_is_its_owners_alone_afterwards(
    provider: Issuer, tenant: Tenant
) -> None:
    """SEC-1239: The first single sign-on ends password, sessions, second step and tokens of an unconfirmed account."""
    ada = UserFactory.create(email=ADA, is_confirmed=False)
    Membership.unscoped.create(workspace=tenant.workspace, user=ada, role=Role.MEMBER.value)
    eve = Client()
    eve.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
    turn_on(eve)
    actor = actor_for(ada, tenant.workspace, source=Source.WEB, request_id="test")
    issue_token(
        workspace=tenant.workspace,
        user=ada,
        name="Eve's",
        scopes=["chat"],
        expires_at=timezone.now() + timedelta(days=7),
        actor=actor,
    )

    client = Client()
    continue_with(provider, client)

    assert client.session["_auth_user_id"] == str(ada.pk)
    assert eve.get("/account/").status_code == 302
    assert not ApiToken.objects.across_workspaces().filter(user=ada).exists()
    assert not Authenticator.objects.filter(user=ada).exists()
    ada.refresh_from_db()
    assert ada.is_address_confirmed
    assert not ada.has_usable_password()


def test_what_somebody_connected_in_an_unconfirmed_account_ends_with_it(
    provider: Issuer, tenant: Tenant
) -> None:
    """SEC-1266: The person of the address talks to no server, and by no account, of whoever was there before."""
    ada = UserFactory.create(email=ADA, is_confirmed=False)
    Membership.unscoped.create(workspace=tenant.workspace, user=ada, role=Role.MEMBER.value)
    here: Any = {"workspace": tenant.workspace}
    _own, joint = (
        McpServer.objects.create(
            name=scope, url="https://eve.example/mcp", scope=scope, **rest, **here
        )
        for scope, rest in (("personal", {"owner": ada}), ("workspace", {}))
    )
    issuer: Any = {"issuer": "https://eve.example"}
    metadata = {**issuer, "token_endpoint": "https://eve.example/token"}
    client = OAuthClient.objects.create(
        server=joint, client_id="c", metadata=metadata, **issuer, **here
    )
    tokens: Any = {"access_token": "of-eve"}
    for person in (ada, tenant.member):
        OAuthGrant.objects.create(
            server=joint,
            user=person,
            client=client,
            token_endpoint="https://eve.example/token",
            endpoint=joint.url,
            resource=joint.url,
            tokens=tokens,
            granted_at=timezone.now(),
            **issuer,
            **here,
        )

    continue_with(provider, Client())

    kept = McpServer.objects.for_workspace(tenant.workspace)
    assert [one.pk for one in kept] == [joint.pk]
    grants = OAuthGrant.objects.for_workspace(tenant.workspace)
    assert [one.user_id for one in grants] == [tenant.member.pk]
    changes = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    assert "claimed" in str([one.details for one in changes])


def test_an_owner_of_the_platform_keeps_their_password(provider: Issuer) -> None:
    """SEC-1240: An owner of the platform signs in with their password too, also where all others may not."""
    owner = UserFactory.create(email=ADA, is_superuser=True, is_confirmed=False)
    with configured(provider, sso_required=True):
        client = Client()
        continue_with(provider, client)
        assert client.session["_auth_user_id"] == str(owner.pk)
        client = Client()
        client.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
        assert is_in(client)


def test_a_password_lets_nobody_in_where_single_sign_on_is_required(
    provider: Issuer, tenant: Tenant
) -> None:
    """SEC-1241: Where it is required, no password lets in somebody of its domains, and none can be chosen for that."""
    confirmed()
    confirmed("guest@example.com")
    with configured(provider, sso_required=True):
        client = Client()
        page = client.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
        assert "You sign in with Acme, and in no other way" in page.content.decode()
        assert not is_in(client)

        client.post("/accounts/login/", {"login": "guest@example.com", "password": PASSWORD})
        assert is_in(client)

        _row, token = make_invitation(
            workspace=tenant.workspace,
            email="new@example.org",
            role=Role.MEMBER,
            is_auditor=False,
            actor=tenant.actor("owner"),
        )
        client = Client()
        client.get(f"/invitations/{token}/")
        fields = {"email": "new@example.org", "password1": PASSWORD, "password2": PASSWORD}
        page = client.post("/accounts/signup/", fields)
        assert "You sign in with Acme" in page.content.decode()
        assert not User.objects.filter(email="new@example.org").exists()


def test_another_address_is_no_way_around_it(provider: Issuer) -> None:
    """SEC-1258: Who has to use single sign-on stays its person, and does not change their address here."""
    with configured(provider, sso_required=True):
        grace = Client()
        confirmed("grace@example.org")
        continue_with(provider, grace, "grace@example.org")
        page = grace.post("/accounts/email/", {"action_add": "", "email": "grace@example.com"})
        assert "your address is the one that you have there" in text_of(page)
    ada = confirmed()
    continue_with(provider, Client())
    User.objects.filter(pk=ada.pk).update(email="ada@example.com")
    EmailAddress.objects.filter(user=ada).update(email="ada@example.com")
    with configured(provider, sso_required=True):
        client = Client()
        client.post("/accounts/login/", {"login": "ada@example.com", "password": PASSWORD})
        assert not is_in(client)


def test_an_account_that_gets_another_address_is_of_whoever_has_that(
    provider: Issuer, superuser: User
) -> None:
    """SEC-1253: When the platform's owner gives an account another address, single sign-on goes by that one."""
    ada = confirmed()
    continue_with(provider, Client())
    ada.email = "grace@example.org"
    actor = actor_for(superuser, None, source=Source.ADMIN, request_id="test")
    save_account(account=ada, actor=actor)
    assert continue_with(provider, Client()).status_code == 403
    client = Client()
    continue_with(provider, client, "grace@example.org")
    assert client.session["_auth_user_id"] == str(ada.pk)


def test_a_second_step_that_has_ended_meanwhile_lets_nobody_in(provider: Issuer) -> None:
    """SEC-1259: Whoever waits at the second step begins anew when it, or their password, has ended."""
    ada = confirmed()
    browser = Client()
    browser.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
    turn_on(browser)
    waiting = Client()
    waiting.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
    assert waiting.get(CODE).status_code == 200
    with configured(provider, sso_required=True):
        assert waiting.get(CODE).headers["Location"] == "/accounts/login/"
    waiting.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
    Authenticator.objects.filter(user=ada).delete()
    assert waiting.get(CODE).headers["Location"] == "/accounts/login/"
    assert waiting.get("/accounts/login/").status_code == 200
    assert not is_in(waiting)


def test_the_second_step_is_asked_for_here_as_well(provider: Issuer) -> None:
    """SEC-1242: Whoever has two-step verification here gives a code after single sign-on, too; the session holds no token."""
    ada = confirmed()
    browser = Client()
    browser.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
    key = turn_on(browser)
    Authenticator.objects.filter(user=ada).update(last_used_at=None)
    cache.clear()  # a code works once

    client = Client()
    assert continue_with(provider, client).headers["Location"].startswith(CODE)
    assert not is_in(client)
    assert "access_token" not in json.dumps(dict(client.session))
    assert not any(token in json.dumps(dict(client.session)) for token in issued(provider))
    client.post(CODE, {"code": code_of(key)})
    assert is_in(client)
    assert last_entry("auth.signed_in").sign_in == "sso+code"


@pytest.mark.parametrize("is_known", [True, False])
def test_two_first_sign_ins_at_once_make_one_account(
    provider: Issuer, tenant: Tenant, is_known: bool
) -> None:
    """REL-3312: A person who comes for the first time in two windows at once gets one account, and no error."""
    if is_known:
        confirmed()
    first, second = Client(), Client()
    answers: list[Any] = []

    def come_between(**_words: Any) -> None:
        pre_social_login.disconnect(come_between)
        answers.append(continue_with(provider, second))

    pre_social_login.connect(come_between)
    with configured(provider, sso_workspace=tenant.workspace.slug):
        answers.append(continue_with(provider, first))
    assert [answer.status_code for answer in answers] == [302, 400]
    assert "Please sign in again" in text_of(answers[1])
    assert is_in(second)
    assert User.objects.filter(email=ADA).count() == SocialAccount.objects.count() == 1


def test_somebody_who_says_no_is_back_at_the_sign_in(provider: Issuer) -> None:
    """Saying no at the provider is no error."""
    confirmed()
    provider.accounts.denies = True
    assert continue_with(provider, Client()).headers["Location"] == "/accounts/login/"


def test_settings_fit_somebody_without_a_password(provider: Issuer, tenant: Tenant) -> None:
    """REL-3307: Who signs in with the provider is led to a password they may set, or reads that none would help."""
    client = Client()
    with configured(provider, sso_workspace=tenant.workspace.slug):
        continue_with(provider, client)
        assert client.get("/accounts/password/change/").headers["Location"] == PASSWORD_PAGE
        assert 'name="password1"' in text_of(client.get(PASSWORD_PAGE))
        assert "Set a password first" in text_of(client.get("/accounts/2fa/"))
    with configured(provider, sso_required=True):
        page = text_of(client.get(PASSWORD_PAGE))
        assert "You sign in with Acme. A password does not let you in here." in page
        assert 'name="password1"' not in page
        assert "a second step is turned on there" in text_of(client.get("/accounts/2fa/"))
    client.post(PASSWORD_PAGE, {"password1": PASSWORD, "password2": PASSWORD})
    assert User.objects.get(email=ADA).has_usable_password()
