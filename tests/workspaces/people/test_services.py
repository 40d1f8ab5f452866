"""People come by invitation, and nobody rises above who let them in."""

from __future__ import annotations

from datetime import timedelta

import pytest
from allauth.account.signals import user_signed_up
from django.core import mail
from django.test import Client
from django.utils import timezone

from audit.models import AuditEntry
from tests.factories import PASSWORD, Tenant, TwoTenants, UserFactory, signed_in
from tests.workspaces.people.inviting import invite_member
from workspaces.actors import Role
from workspaces.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from workspaces.models import Invitation, Membership, User
from workspaces.people.services import (
    accept_invitation,
    change_membership,
    remove_member,
    revoke_invitation,
)
from workspaces.people.suspending import suspend_member
from workspaces.people.tokens import authenticate, hash_token, issue_token, revoke_token
from workspaces.redaction import redact_text

URL = "http://testserver/invitations/{token}/"


def invite(
    tenant: Tenant, email: str = "new@example.org", **changes: object
) -> tuple[Invitation, str]:
    values = {"role": Role.MEMBER, "is_auditor": False, "actor": tenant.actor("admin"), **changes}
    return invite_member(workspace=tenant.workspace, email=email, accept_url=URL, **values)  # type: ignore[arg-type]


def test_an_invitation_is_mailed_and_lets_its_person_in_once(tenant: Tenant) -> None:
    """SEC-23: single use, bound to the address; only a hash is stored."""
    invitation, token = invite(tenant)
    assert token in mail.outbox[0].body
    assert token not in invitation.token_hash
    user = UserFactory.create(email="new@example.org")
    membership = accept_invitation(token=token, user=user, actor=tenant.actor("admin"))
    assert (membership.workspace_id, membership.role) == (tenant.workspace.pk, "member")
    with pytest.raises(NotFound):
        accept_invitation(token=token, user=user, actor=tenant.actor("admin"))


def test_an_invitation_opens_for_nobody_else(tenant: Tenant) -> None:
    """SEC-23: another address, a revoked, a replaced and an expired one are refused."""
    stranger = UserFactory.create(email="stranger@example.org")
    person = UserFactory.create(email="new@example.org")
    _, first = invite(tenant)
    with pytest.raises(PermissionDenied):
        accept_invitation(token=first, user=stranger, actor=tenant.actor())
    second, token = invite(tenant)
    with pytest.raises(NotFound):
        accept_invitation(token=first, user=person, actor=tenant.actor())
    revoke_invitation(invitation=second, actor=tenant.actor())
    with pytest.raises(NotFound):
        accept_invitation(token=token, user=person, actor=tenant.actor())
    third, token = invite(tenant)
    Invitation.unscoped.filter(pk=third.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(NotFound):
        accept_invitation(token=token, user=person, actor=tenant.actor())


def test_nobody_invites_or_promotes_above_themselves(tenant: Tenant) -> None:
    """SEC-23, SEC-24: an admin cannot make an owner; a member cannot invite at all."""
    with pytest.raises(PermissionDenied):
        invite(tenant, role=Role.OWNER)
    with pytest.raises(PermissionDenied):
        invite(tenant, actor=tenant.actor("member"))
    mine = Membership.objects.for_workspace(tenant.workspace)
    with pytest.raises(PermissionDenied):
        change_membership(
            membership=mine.get(user=tenant.member),
            role=Role.OWNER,
            is_auditor=False,
            actor=tenant.actor("admin"),
        )
    with pytest.raises(PermissionDenied):
        remove_member(membership=mine.get(user=tenant.owner), actor=tenant.actor("admin"))


def test_an_admin_of_another_workspace_changes_nothing(two_workspaces: TwoTenants) -> None:
    """SEC-01: rights end at the workspace's border."""
    theirs = Membership.objects.for_workspace(two_workspaces.b.workspace).get(
        user=two_workspaces.b.member
    )
    with pytest.raises(PermissionDenied):
        remove_member(membership=theirs, actor=two_workspaces.a.actor("owner"))


def test_the_last_owner_stays(tenant: Tenant) -> None:
    """Ours: a workspace is never left without an owner."""
    owner = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.owner)
    with pytest.raises(Conflict):
        remove_member(membership=owner, actor=tenant.actor("owner"))
    with pytest.raises(Conflict):
        change_membership(
            membership=owner, role=Role.ADMIN, is_auditor=False, actor=tenant.actor("owner")
        )


def test_changes_are_recorded_with_before_and_after(tenant: Tenant) -> None:
    """SEC-104: who changed what, from what, to what."""
    row = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    change_membership(membership=row, role=Role.ADMIN, is_auditor=True, actor=tenant.actor("owner"))
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(action="config.changed")
    assert entry.actor_label == tenant.owner.email
    assert entry.details["before"] == {"role": "member", "is_auditor": False}
    assert entry.details["after"] == {"role": "admin", "is_auditor": True}


def test_sign_up_begins_with_the_invited_address(tenant: Tenant, client: Client) -> None:
    """REL-1304, REL-2722: it is the only one that is taken. Once the invitation has ended, the form leads to its page."""
    invitation, token = invite(tenant)
    client.get(f"/invitations/{token}/", follow=True)
    page = client.get("/accounts/signup/")
    form = page.context["form"]
    names = ["E-mail address", "Your name", "Password", "Password (again)"]
    assert [str(field.label) for field in form] == names
    assert form["password1"].help_text == "At least ten characters."
    assert "placeholder" not in page.content.decode().split('name="password1"')[1]
    assert form["email"].value() == invitation.email
    revoke_invitation(invitation=invitation, actor=tenant.actor("owner"))
    ended = client.get("/accounts/signup/", follow=True).content.decode()
    assert invitation.email not in ended
    assert "This invitation no longer works" in ended


def test_sign_up_is_open_only_to_the_invited_address(tenant: Tenant, client: Client) -> None:
    """SEC-23, REL-2722: without an invitation the door is shut; with one, only its address enters, and joins at once."""
    form = {"email": "new@example.org", "password1": PASSWORD, "password2": PASSWORD, "name": "New"}
    client.post("/accounts/signup/", form)
    assert not User.objects.filter(email="new@example.org").exists()
    _, token = invite(tenant)
    client.get(f"/invitations/{token}/", follow=True)
    client.post("/accounts/signup/", {**form, "email": "other@example.org"})
    assert not User.objects.filter(email="other@example.org").exists()
    page = client.post("/accounts/signup/", form, follow=True)
    assert page.redirect_chain[-1][0] == f"/w/{tenant.workspace.slug}/"
    assert f"Welcome to {tenant.workspace.name}." in page.content.decode()
    person = User.objects.get(email="new@example.org")
    assert person.name == "New"
    members = Membership.objects.for_workspace(tenant.workspace)
    assert members.get(user=person).role == Role.MEMBER
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(actor_label=person.email)
    joined, signed_in = entries.order_by("created_at", "pk")
    assert (joined.action, signed_in.action) == ("config.changed", "auth.signed_in")
    assert joined.details["kind"] == "membership"


def test_an_invitation_that_ends_meanwhile_leaves_the_new_account_outside(
    tenant: Tenant, client: Client
) -> None:
    """REL-2722: its page says that it is no longer valid."""
    invitation, token = invite(tenant)
    client.get(f"/invitations/{token}/", follow=True)

    def take_back(**_given: object) -> None:
        revoke_invitation(invitation=invitation, actor=tenant.actor("owner"))

    form = {"email": invitation.email, "password1": PASSWORD, "password2": PASSWORD}
    user_signed_up.connect(take_back)
    try:
        page = client.post("/accounts/signup/", form, follow=True)
    finally:
        user_signed_up.disconnect(take_back)
    assert page.status_code == 404
    assert "no longer valid" in page.content.decode()
    person = User.objects.get(email=invitation.email)
    assert client.session["_auth_user_id"] == str(person.pk)
    assert not Membership.objects.for_workspace(tenant.workspace).filter(user=person).exists()


def test_a_token_is_shown_once_and_ends_when_it_should(tenant: Tenant) -> None:
    """SEC-18: random, hashed, expiring; it ends with the membership and with the person."""
    token, plain = issue_token(
        workspace=tenant.workspace,
        user=tenant.member,
        name="script",
        scopes=["chat"],
        expires_at=timezone.now() + timedelta(days=1),
        actor=tenant.actor("member"),
    )
    assert plain not in str(vars(token))
    assert token.token_hash == hash_token(plain)
    assert len(plain) >= 40
    found = authenticate(plain)
    assert found is not None
    assert found.token.pk == token.pk
    assert found.role == "member"
    assert authenticate(plain + "x") is None
    tenant.member.is_active = False
    tenant.member.save()
    assert authenticate(plain) is None
    tenant.member.is_active = True
    tenant.member.save()
    assert authenticate(plain) is not None
    revoke_token(token=token, actor=tenant.actor("member"))
    assert authenticate(plain) is None


def test_what_strangers_send_decides_nothing(tenant: Tenant) -> None:
    """SEC-94: a made-up token is not remembered as a secret, so it masks and evicts nothing."""
    for junk in ("github-action", "trl_made-up-by-a-stranger"):
        assert authenticate(junk) is None
        assert (
            redact_text(f"about {junk} itself", workspace_id=tenant.workspace.pk)
            == f"about {junk} itself"
        )


def test_only_an_owner_decides_who_is_an_auditor(tenant: Tenant) -> None:
    """SEC-24: an admin sees metadata, and cannot give themselves more."""
    row = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.admin)
    with pytest.raises(PermissionDenied):
        change_membership(
            membership=row, role=Role.ADMIN, is_auditor=True, actor=tenant.actor("admin")
        )
    with pytest.raises(PermissionDenied):
        invite(tenant, is_auditor=True)
    invite(tenant, is_auditor=True, actor=tenant.actor("owner"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"scopes": []},
        {"scopes": ["everything"]},
        {"expires_at": timezone.now() - timedelta(days=1)},
        {"expires_at": timezone.now() + timedelta(days=4000)},
        {"name": " "},
    ],
)
def test_a_token_needs_a_name_a_scope_and_an_end(tenant: Tenant, wrong: dict[str, object]) -> None:
    """SEC-18: the fault is named."""
    values = {"name": "x", "scopes": ["chat"], "expires_at": timezone.now() + timedelta(days=1)}
    with pytest.raises(InvalidInput):
        issue_token(
            workspace=tenant.workspace,
            user=tenant.member,
            actor=tenant.actor("member"),
            **{**values, **wrong},  # type: ignore[arg-type]
        )


@pytest.mark.parametrize("is_suspended", [False, True])
def test_whoever_has_joined_comes_to_the_workspace_by_the_same_mail(
    tenant: Tenant, client: Client, is_suspended: bool
) -> None:
    """REL-2072: also from a second page; they are not sent for another invitation."""
    _invitation, token = invite(tenant)
    user = UserFactory.create(email="new@example.org")
    client.force_login(user)
    home = f"/w/{tenant.workspace.slug}/"
    client.get(f"/invitations/{token}/")
    assert client.post("/invitations/accept/")["Location"] == home
    assert client.post("/invitations/accept/")["Location"] == home  # on the other page
    if is_suspended:
        member = Membership.objects.for_workspace(tenant.workspace).get(user=user)
        suspend_member(membership=member, actor=tenant.actor())
    again = client.get(f"/invitations/{token}/", follow=True)
    assert again.redirect_chain[-1][0] == home
    other = signed_in(UserFactory.create(email="stranger@example.org"))
    assert other.get(f"/invitations/{token}/", follow=True).status_code == 404
    Membership.unscoped.filter(user=user).delete()
    assert client.get(f"/invitations/{token}/", follow=True).status_code == 404
