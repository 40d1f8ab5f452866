"""Two people who change the same members, invitations or requests at one moment."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.factories import MembershipFactory, Tenant, UserFactory
from tests.locks import beside
from workspaces.actors import Actor, Role, Source
from workspaces.errors import Conflict, NotFound, PermissionDenied
from workspaces.middleware import actor_for
from workspaces.models import (
    AccessRequest,
    Invitation,
    Membership,
    RequestKind,
    RequestStatus,
    User,
)
from workspaces.people.access_requests import ask, decide_request, withdraw_request
from workspaces.people.inviting import resend_invitation
from workspaces.people.ownership import transfer_ownership
from workspaces.people.services import (
    accept_invitation,
    change_membership,
    find_invitation,
    make_invitation,
    remove_member,
    revoke_invitation,
)
from workspaces.people.suspending import suspend_member

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_engines]


def membership_of(tenant: Tenant, user: User) -> Membership:
    rows = Membership.objects.also_suspended(tenant.workspace).select_related("user", "workspace")
    return rows.get(user=user)


def owners(tenant: Tenant) -> list[str]:
    rows = Membership.objects.for_workspace(tenant.workspace).filter(role=Role.OWNER.value)
    return sorted(rows.values_list("user__email", flat=True))


def actor(tenant: Tenant, user: User) -> Actor:
    return actor_for(user, tenant.workspace, source=Source.WEB)


@pytest.fixture
def second(tenant: Tenant) -> User:
    """Another owner."""
    user = UserFactory.create(email="second@a.example.org")
    MembershipFactory.create(workspace=tenant.workspace, user=user, role=Role.OWNER.value)
    return user


def demote(tenant: Tenant, whom: User, by: User) -> Callable[[], object]:
    membership, who = membership_of(tenant, whom), actor(tenant, by)
    return lambda: change_membership(
        membership=membership, role=Role.ADMIN, is_auditor=False, actor=who
    )


def remove(tenant: Tenant, whom: User, by: User) -> Callable[[], object]:
    membership, who = membership_of(tenant, whom), actor(tenant, by)
    return lambda: remove_member(membership=membership, actor=who)


def suspend(tenant: Tenant, whom: User, by: User) -> Callable[[], object]:
    membership, who = membership_of(tenant, whom), actor(tenant, by)
    return lambda: suspend_member(membership=membership, actor=who)


@pytest.mark.postgresql
@pytest.mark.parametrize("end", [demote, remove, suspend])
def test_two_owners_do_not_end_each_other(
    tenant: Tenant, second: User, end: Callable[[Tenant, User, User], Callable[[], object]]
) -> None:
    """REL-1541: whoever comes second hears that nobody else would be left."""
    outcomes = beside(end(tenant, second, tenant.owner), end(tenant, tenant.owner, second))
    assert isinstance(outcomes, Conflict)
    assert owners(tenant) == [tenant.owner.email]


def test_whoever_became_the_only_owner_meanwhile_stays(tenant: Tenant) -> None:
    """REL-1541: the page was opened when they were an administrator."""
    late = remove(tenant, tenant.admin, tenant.owner)
    too_late = demote(tenant, tenant.admin, tenant.owner)
    by = actor(tenant, tenant.owner)
    to = membership_of(tenant, tenant.admin)
    transfer_ownership(to=to, typed=tenant.workspace.name, actor=by)
    for one in (late, too_late):
        with pytest.raises(Conflict):
            one()
    assert owners(tenant) == [tenant.admin.email]


def test_an_administrator_does_not_remove_whoever_became_an_owner(tenant: Tenant) -> None:
    """REL-1541: the role counts that is stored, not the one that was read before."""
    late = remove(tenant, tenant.member, tenant.admin)
    by = actor(tenant, tenant.owner)
    promoted = membership_of(tenant, tenant.member)
    change_membership(membership=promoted, role=Role.OWNER, is_auditor=False, actor=by)
    with pytest.raises(PermissionDenied):
        late()
    assert len(owners(tenant)) == 2


def test_a_member_who_is_gone_is_not_found(tenant: Tenant) -> None:
    """REL-1541: and nothing is recorded a second time."""
    by = actor(tenant, tenant.owner)
    late = membership_of(tenant, tenant.member)
    remove_member(membership=membership_of(tenant, tenant.member), actor=by)
    with pytest.raises(NotFound):
        change_membership(membership=late, role=Role.ADMIN, is_auditor=False, actor=by)
    with pytest.raises(NotFound):
        remove_member(membership=late, actor=by)
    with pytest.raises(NotFound):
        suspend_member(membership=late, actor=by)


def test_two_who_change_another_part_of_a_membership_keep_both(tenant: Tenant) -> None:
    """REL-1541: a right to audit that was given meanwhile stays when only the role is changed."""
    by = actor(tenant, tenant.owner)
    late = membership_of(tenant, tenant.member)
    change_membership(
        membership=membership_of(tenant, tenant.member),
        role=Role.MEMBER,
        is_auditor=True,
        actor=by,
    )
    change_membership(membership=late, role=Role.ADMIN, actor=by)
    stored = membership_of(tenant, tenant.member)
    assert (stored.role, stored.is_auditor) == (Role.ADMIN.value, True)


@pytest.mark.postgresql
def test_two_owners_hand_over_to_two_people(tenant: Tenant, second: User) -> None:
    """REL-1541: neither waits for the other for ever."""

    def hand_over(by: User, to: User) -> Callable[[], object]:
        membership, who = membership_of(tenant, to), actor(tenant, by)
        return lambda: transfer_ownership(to=membership, typed=tenant.workspace.name, actor=who)

    outcomes = beside(hand_over(tenant.owner, tenant.member), hand_over(second, tenant.member))
    assert isinstance(outcomes, Conflict)
    assert owners(tenant) == sorted([tenant.member.email, second.email])


def invited(tenant: Tenant, email: str = "new@a.example.org") -> tuple[Invitation, str]:
    return make_invitation(
        workspace=tenant.workspace,
        email=email,
        role=Role.MEMBER,
        is_auditor=False,
        actor=actor(tenant, tenant.owner),
    )


def test_an_invitation_that_was_accepted_is_not_said_to_be_revoked(tenant: Tenant) -> None:
    """REL-1542: its list was opened before; whoever revokes it has to know that the person is in."""
    invitation, token = invited(tenant)
    late = Invitation.objects.for_workspace(tenant.workspace).get(pk=invitation.pk)
    user = UserFactory.create(email="new@a.example.org")
    accept_invitation(
        token=token,
        user=user,
        actor=Actor.system(label="new", source=Source.WEB, workspace_id=tenant.workspace.pk),
    )
    by = actor(tenant, tenant.owner)
    with pytest.raises(Conflict):
        revoke_invitation(invitation=late, actor=by)
    with pytest.raises(Conflict):
        resend_invitation(invitation=late, actor=by)
    late.refresh_from_db()
    assert late.revoked_at is None


@pytest.mark.postgresql
def test_of_accepting_and_revoking_one_happens(tenant: Tenant) -> None:
    """REL-1542."""
    invitation, token = invited(tenant)
    user = UserFactory.create(email="new@a.example.org")
    who = Actor.system(label="new", source=Source.WEB, workspace_id=tenant.workspace.pk)
    by = actor(tenant, tenant.owner)
    outcomes = beside(
        lambda: accept_invitation(token=token, user=user, actor=who),
        lambda: revoke_invitation(invitation=invitation, actor=by),
    )
    assert isinstance(outcomes, Conflict)
    stored = Invitation.objects.for_workspace(tenant.workspace).get(pk=invitation.pk)
    assert (stored.accepted_at is None, stored.revoked_at) == (False, None)


@pytest.mark.postgresql
def test_one_address_has_one_open_invitation(tenant: Tenant) -> None:
    """REL-1542: two who invite a person at one moment send two mails, and the link of the first one ends."""
    outcomes = beside(lambda: invited(tenant), lambda: invited(tenant))
    assert outcomes is None
    rows = Invitation.objects.for_workspace(tenant.workspace)
    assert rows.filter(revoked_at=None).count() == 1


def asked(tenant: Tenant, name: str = "Jira") -> AccessRequest:
    return ask(
        workspace=tenant.workspace,
        kind=RequestKind.SERVER,
        name=name,
        reason="tickets",
        actor=actor(tenant, tenant.member),
    )


def test_a_request_that_was_decided_is_not_withdrawn(tenant: Tenant) -> None:
    """REL-1543: what was granted stays on record, and its person hears so."""
    request = asked(tenant)
    late = AccessRequest.objects.for_workspace(tenant.workspace).get(pk=request.pk)
    decide_request(request=request, is_granted=True, note="", actor=actor(tenant, tenant.admin))
    with pytest.raises(Conflict):
        withdraw_request(request=late, actor=actor(tenant, tenant.member))
    stored = AccessRequest.objects.for_workspace(tenant.workspace).get(pk=request.pk)
    assert stored.status == RequestStatus.GRANTED


def test_a_request_that_was_withdrawn_is_not_found(tenant: Tenant) -> None:
    """REL-1543: by whoever decides about it, and by its person in another tab."""
    request = asked(tenant)
    late = AccessRequest.objects.for_workspace(tenant.workspace).get(pk=request.pk)
    withdraw_request(request=request, actor=actor(tenant, tenant.member))
    with pytest.raises(NotFound):
        decide_request(request=late, is_granted=True, note="", actor=actor(tenant, tenant.admin))
    with pytest.raises(NotFound):
        withdraw_request(request=late, actor=actor(tenant, tenant.member))


@pytest.mark.postgresql
def test_a_person_asks_for_a_thing_once(tenant: Tenant) -> None:
    """REL-1543: a button that is pressed twice asks once."""
    outcomes = beside(lambda: asked(tenant), lambda: asked(tenant))
    assert isinstance(outcomes, Conflict)
    assert AccessRequest.objects.for_workspace(tenant.workspace).count() == 1


def test_a_member_who_is_gone_is_not_made_an_owner(tenant: Tenant) -> None:
    """REL-1541: the page with the button was open."""
    to = membership_of(tenant, tenant.member)
    by = actor(tenant, tenant.owner)
    remove_member(membership=membership_of(tenant, tenant.member), actor=by)
    with pytest.raises(NotFound):
        transfer_ownership(to=to, typed=tenant.workspace.name, actor=by)
    assert owners(tenant) == [tenant.owner.email]


@pytest.mark.parametrize("role", [Role.OWNER, Role.ADMIN])
def test_whoever_lost_a_role_does_not_come_back_to_it_by_an_invitation(
    tenant: Tenant, second: User, role: Role
) -> None:
    """SEC-702: an owner who sees it coming invites another address of theirs as an owner."""
    _invitation, token = make_invitation(
        workspace=tenant.workspace,
        email="other@a.example.org",
        role=role,
        is_auditor=False,
        actor=actor(tenant, second),
    )
    user = UserFactory.create(email="other@a.example.org")
    demoted = membership_of(tenant, second)
    change_membership(membership=demoted, role=Role.MEMBER, actor=actor(tenant, tenant.owner))
    who = Actor.system(label="new", source=Source.WEB, workspace_id=tenant.workspace.pk)
    with pytest.raises(NotFound):
        accept_invitation(token=token, user=user, actor=who)
    change_membership(membership=demoted, role=Role.OWNER, actor=actor(tenant, tenant.owner))
    assert accept_invitation(token=token, user=user, actor=who).role == role.value


def test_an_invitation_of_an_auditor_takes_an_owner(tenant: Tenant, second: User) -> None:
    """SEC-702: an administrator could not have sent it."""
    _invitation, token = make_invitation(
        workspace=tenant.workspace,
        email="other@a.example.org",
        role=Role.MEMBER,
        is_auditor=True,
        actor=actor(tenant, second),
    )
    demoted = membership_of(tenant, second)
    change_membership(membership=demoted, role=Role.ADMIN, actor=actor(tenant, tenant.owner))
    with pytest.raises(NotFound):
        find_invitation(token)
