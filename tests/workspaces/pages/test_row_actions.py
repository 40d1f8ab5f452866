"""Actions on several rows of the lists about people, workspaces and accounts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from audit.models import AuditEntry
from tests.factories import (
    CANARY,
    MembershipFactory,
    Tenant,
    UserFactory,
    WorkspaceFactory,
    make_tenant,
)
from tests.row_actions import act, notices
from workspaces.actors import Role
from workspaces.errors import Conflict, PermissionDenied
from workspaces.models import ApiToken, Invitation, Membership, User, Workspace
from workspaces.pages import row_actions
from workspaces.people.services import make_invitation, revoke_invitation
from workspaces.people.tokens import issue_token, revoke_token

MEMBERS = "/admin/workspaces/membership/"
INVITATIONS = "/admin/workspaces/invitation/"
TOKENS = "/admin/workspaces/apitoken/"
USERS = "/admin/workspaces/user/"
WORKSPACES = "/admin/workspaces/workspace/"


def member_of(tenant: Tenant, role: str) -> Membership:
    rows = Membership.objects.also_suspended(tenant.workspace).select_related("user")
    found: Membership = rows.get(user=tenant.people[role])
    return found


def some_members(tenant: Tenant, number: int) -> list[Membership]:
    return [MembershipFactory.create(workspace=tenant.workspace) for _ in range(number)]


def is_suspended(row: Membership) -> bool:
    rows = Membership.objects.also_suspended(row.workspace_id)
    return bool(rows.get(pk=row.pk).suspended_at)


@pytest.fixture
def root(tenant: Tenant) -> Tenant:
    """The owner of the workspace owns the platform, too."""
    tenant.owner.is_superuser = True
    tenant.owner.save(update_fields=["is_superuser"])
    return tenant


def test_members_are_suspended_and_let_in_again(tenant: Tenant) -> None:
    """REL-1190: with the reason, an entry of each, and one message."""
    rows = some_members(tenant, 3)
    page = act(tenant.client(), MEMBERS, "suspend", *rows, reason="  The project is over ")
    assert notices(page) == ["3 members suspended."]
    assert all(is_suspended(row) for row in rows)
    stored = Membership.objects.also_suspended(tenant.workspace).get(pk=rows[0].pk)
    assert stored.suspension_reason == "The project is over"
    log = AuditEntry.objects.for_workspace(tenant.workspace)
    assert log.filter(action="config.changed", actor_id=tenant.admin.pk).count() == 3
    page = act(tenant.client(), MEMBERS, "let_in", rows[0], confirmed=False)
    assert notices(page) == ["1 member may enter again."]
    assert not is_suspended(rows[0])


def test_a_refused_row_undoes_nothing_of_the_others(tenant: Tenant) -> None:
    """REL-1190: oneself, an owner, somebody who is suspended already; each is told why, the others are suspended."""
    [row, before] = some_members(tenant, 2)
    client = tenant.client()
    act(client, MEMBERS, "suspend", before)
    own, owner = member_of(tenant, "admin"), member_of(tenant, "owner")
    page = act(client, MEMBERS, "suspend", own, before, owner, row)
    texts = notices(page)
    assert texts[0] == "1 member suspended."
    assert sorted(texts[1:]) == sorted(
        [
            f"a admin ({tenant.admin.email}): You cannot suspend yourself.",
            f"{before.user.name} ({before.user.email}): {before.user.email} is suspended already.",
            f"a owner ({tenant.owner.email}): That role is above your own.",
        ]
    )
    assert is_suspended(row)
    assert not is_suspended(own)
    assert not is_suspended(owner)


def test_rows_that_are_refused_alike_are_told_together(tenant: Tenant) -> None:
    """REL-1190: and a long list is shortened."""
    rows = some_members(tenant, 12)
    page = act(tenant.client(), MEMBERS, "make_member", *rows)
    [text] = notices(page)
    assert text.endswith("and 2 more: This is their role already.")
    assert rows[-1].user.email in text


def test_a_page_names_the_rows_before_people_are_shut_out(tenant: Tenant) -> None:
    """REL-1191: at most ten of them, and what will happen; only the answer changes something."""
    rows = some_members(tenant, 12)
    list_url = f"{MEMBERS}?role__exact=member"
    page = act(tenant.client(), list_url, "suspend", *rows, confirmed=False)
    text = page.content.decode()
    assert page.status_code == 200
    assert "Suspend 12 members?" in text
    assert "and 2 more" in text
    assert sum(row.user.email in text for row in rows) == 10
    assert "They can no longer enter this workspace." in text
    assert f'href="{list_url}"' in text
    assert text.count('name="_selected_action"') == 12
    assert not any(is_suspended(row) for row in rows)


def test_all_that_a_list_shows_is_named_by_the_page_that_asks(tenant: Tenant) -> None:
    """REL-1191: of "select all", what was named is what is done, whoever joins meanwhile."""
    rows = some_members(tenant, 3)
    client, url = tenant.client(), f"{MEMBERS}?q=Person"
    page = act(client, url, "suspend", rows[0], confirmed=False, select_across="1")
    assert "Suspend 3 members?" in page.content.decode()
    later = MembershipFactory.create(workspace=tenant.workspace)
    assert notices(act(client, url, "suspend", *rows)) == ["3 members suspended."]
    assert not is_suspended(later)


@pytest.mark.parametrize("confirmed", [True, False])
def test_too_many_rows_are_refused(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, confirmed: bool
) -> None:
    """REL-1192: nothing is changed, and the page says how many may be chosen."""
    number = row_actions.MOST_ROWS + 1
    people = User.objects.bulk_create(
        User(email=f"many{place}@example.org", name="Many") for place in range(number)
    )
    Membership.unscoped.bulk_create(
        Membership(workspace=tenant.workspace, user=person) for person in people
    )
    first = Membership.objects.for_workspace(tenant.workspace).filter(user=people[0]).get()
    url = f"{MEMBERS}?q=many"
    page = act(tenant.client(), url, "suspend", first, confirmed=confirmed, select_across="1")
    assert notices(page) == [
        "You chose 201 rows. Choose at most 200 at once. Nothing was changed.",
    ]
    rows = Membership.objects.also_suspended(tenant.workspace)
    assert not rows.filter(suspended_at__isnull=False).exists()


def test_rows_that_do_not_exist_are_told(tenant: Tenant) -> None:
    """REL-1190: an id that is none, one of nobody, and a row that the list's filters no longer show."""
    client, [row] = tenant.client(), some_members(tenant, 1)
    page = act(client, MEMBERS, "suspend", "nonsense", row)
    assert notices(page) == ["A row that you chose does not exist. Choose the rows again."]
    assert not is_suspended(row)
    page = act(client, MEMBERS, "suspend", uuid4(), row)
    assert notices(page) == [
        "1 member suspended.",
        "1 row that you chose is gone, or the list's filters no longer show it. Nothing happened to it.",
    ]
    page = act(client, f"{MEMBERS}?role__exact=owner", "let_in", row, uuid4())
    assert notices(page)[0].startswith("2 rows that you chose are gone")


def test_no_action_touches_or_names_another_workspace(tenant: Tenant) -> None:
    """SEC-580: the rows of another workspace are not among those that can be chosen."""
    other = make_tenant("other", CANARY)
    foreign = member_of(other, "member")
    for action in ("suspend", "make_admin", "sign_out", "let_audit"):
        for confirmed in (True, False):
            page = act(tenant.client("owner"), MEMBERS, action, foreign, confirmed=confirmed)
            assert CANARY not in page.content.decode()
    assert not is_suspended(foreign)
    foreign.refresh_from_db()
    assert (foreign.role, foreign.is_auditor) == ("member", False)


@pytest.mark.parametrize("role", ["member", "auditor"])
def test_members_cannot_act(tenant: Tenant, role: str) -> None:
    """SEC-580: not even by sending the form."""
    [row] = some_members(tenant, 1)
    answer = tenant.client(role).post(
        MEMBERS, {"action": "suspend", "_selected_action": [str(row.pk)], "confirmed": "yes"}
    )
    assert answer.status_code in (302, 403)
    assert not is_suspended(row)


def test_roles_are_given_to_several(tenant: Tenant) -> None:
    """REL-1190: within one's own power; the last owner stays, and so does whoever acts."""
    rows = some_members(tenant, 2)
    admin, owner = tenant.client("admin"), tenant.client("owner")
    assert notices(act(admin, MEMBERS, "make_admin", *rows)) == ["2 people are admins now."]
    own = member_of(tenant, "owner")
    page = act(admin, MEMBERS, "make_member", own)
    assert "That role is above your own." in notices(page)[0]
    assert notices(act(admin, MEMBERS, "make_owner", rows[0])) == ["No action selected."]
    assert notices(act(owner, MEMBERS, "make_owner", rows[0])) == ["1 person is an owner now."]
    page = act(owner, MEMBERS, "make_member", own, *rows)
    assert notices(page)[0] == "2 people are members now."
    assert "Your own role stays as it is." in notices(page)[1]
    roles = Membership.objects.for_workspace(tenant.workspace).in_bulk([own.pk, rows[0].pk])
    assert {row.role for row in roles.values()} == {"owner", "member"}


def test_the_last_owner_is_kept_whoever_acts(root: Tenant) -> None:
    """REL-1190: the platform's owner is told that a workspace needs one."""
    other = make_tenant("other")
    client = root.client("owner")
    client.get(f"/w/{other.workspace.slug}/admin/")
    rows = [member_of(other, "owner"), member_of(other, "admin")]
    for action, done in (("suspend", "1 member suspended."), ("make_member", "1 person is")):
        texts = notices(act(client, MEMBERS, action, *rows))
        assert texts[0].startswith(done)
        assert "A workspace needs an owner." in texts[1]
    rows[0].refresh_from_db()
    assert (rows[0].role, rows[0].suspended_at) == ("owner", None)


def test_the_right_to_audit_is_the_owners_to_give(tenant: Tenant) -> None:
    """REL-1190, SEC-580."""
    [row] = some_members(tenant, 1)
    assert notices(act(tenant.client("admin"), MEMBERS, "let_audit", row)) == [
        "No action selected."
    ]
    row.refresh_from_db()
    assert not row.is_auditor
    owner = tenant.client("owner")
    for action, is_auditor in (("let_audit", True), ("no_longer_audit", False)):
        page = act(owner, MEMBERS, action, row)
        assert notices(page)[0].startswith("1 person may")
        row.refresh_from_db()
        assert (row.is_auditor, row.role) == (is_auditor, "member")


def test_members_are_signed_out_and_whoever_acts_is_not(tenant: Tenant) -> None:
    """REL-1190: the browser in which it is done stays signed in."""
    member, admin = tenant.client("member"), tenant.client("admin")
    home = reverse("chat:home", args=[tenant.workspace.slug])
    assert member.get(home).status_code == 200
    assert admin.get(home).status_code == 200
    rows = [member_of(tenant, "member"), member_of(tenant, "admin")]
    texts = notices(act(admin, MEMBERS, "sign_out", *rows))
    assert texts[0] == "1 member is signed out."
    assert "Your own sessions go on." in texts[1]
    assert member.get(home).status_code == 302
    assert admin.get(home).status_code == 200


def invite(tenant: Tenant, number: int) -> list[Invitation]:
    return [
        make_invitation(
            workspace=tenant.workspace,
            email=f"new{place}@example.org",
            role=Role.MEMBER,
            is_auditor=False,
            actor=tenant.actor(),
        )[0]
        for place in range(number)
    ]


def test_invitations_are_sent_again(transactional_db: None, tenant: Tenant, settings: Any) -> None:
    """REL-1190: each has a new link by mail; the earlier ones end."""
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"email_host": "smtp.example.org"})
    rows = invite(tenant, 2)
    Invitation.objects.for_workspace(tenant.workspace).filter(pk=rows[1].pk).update(
        accepted_at=timezone.now()
    )
    page = act(tenant.client(), INVITATIONS, "send_again", *rows, confirmed=False)
    assert notices(page) == [
        "1 invitation sent again. Its earlier link no longer works.",
        f"{rows[1]}: This invitation was accepted already.",
    ]
    assert [one.to for one in mail.outbox] == [["new0@example.org"]]
    rows[0].refresh_from_db()
    assert rows[0].revoked_at is not None


def test_an_invitation_that_is_not_mailed_counts_as_refused(
    transactional_db: None, tenant: Tenant, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1190, REL-47: with the reason; no transaction is open while the mail server is spoken with."""
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"email_host": "smtp.example.org"})
    were_open: list[bool] = []

    def refuse(_mail: object) -> None:
        were_open.append(connection.in_atomic_block)
        raise ConnectionRefusedError

    monkeypatch.setattr(mail.EmailMultiAlternatives, "send", refuse)
    rows = invite(tenant, 2)
    [text] = notices(act(tenant.client(), INVITATIONS, "send_again", *rows))
    assert "new0@example.org" in text
    assert "new1@example.org" in text
    assert "The mail server did not take the invitation." in text
    assert were_open == [False, False]


def test_invitations_are_revoked_once(tenant: Tenant) -> None:
    """REL-1190, REL-1191, REL-1195."""
    rows = invite(tenant, 3)
    client = tenant.client()
    page = act(client, INVITATIONS, "revoke", *rows, confirmed=False)
    assert "Revoke 3 invitations?" in page.content.decode()
    assert notices(act(client, INVITATIONS, "revoke", rows[0])) == ["1 invitation revoked."]
    rows[0].refresh_from_db()
    first = rows[0].revoked_at
    texts = notices(act(client, INVITATIONS, "revoke", *rows))
    assert texts == [
        "2 invitations revoked.",
        f"{rows[0]}: This invitation is revoked already.",
    ]
    rows[0].refresh_from_db()
    assert rows[0].revoked_at == first
    rows[1].accepted_at = timezone.now()
    with pytest.raises(Conflict):
        revoke_invitation(invitation=rows[1], actor=tenant.actor())


def a_token(tenant: Tenant, role: str = "member") -> ApiToken:
    return issue_token(
        workspace=tenant.workspace,
        user=tenant.people[role],
        name="CI",
        scopes=["chat"],
        expires_at=timezone.now() + timedelta(days=2),
        actor=tenant.actor(role),
    )[0]


def test_tokens_are_revoked(tenant: Tenant) -> None:
    """REL-1190, REL-1191: the page says whose they are."""
    rows = [a_token(tenant), a_token(tenant, "auditor")]
    page = act(tenant.client(), TOKENS, "revoke", *rows, confirmed=False)
    assert "Revoke 2 tokens?" in page.content.decode()
    assert tenant.auditor.email in page.content.decode()
    assert notices(act(tenant.client(), TOKENS, "revoke", *rows)) == ["2 tokens revoked."]
    assert not ApiToken.objects.for_workspace(tenant.workspace).exists()


def test_a_token_is_shown_in_words_and_its_list_after_it_is_deleted(tenant: Tenant) -> None:
    """REL-3340: its scopes were JSON, and whoever deleted it was led to the overview."""
    token = a_token(tenant)
    client = tenant.client()
    page = client.get(f"{TOKENS}{token.pk}/change/").content.decode()
    assert "Use buds: conversations and messages" in page
    assert "&quot;chat&quot;" not in page
    answer = client.post(f"{TOKENS}{token.pk}/delete/", {"post": "yes"}, follow=True)
    assert answer.redirect_chain == [(TOKENS, 302)]
    assert "was deleted successfully" in answer.content.decode()


def test_nobody_ends_the_token_of_somebody_else(tenant: Tenant) -> None:
    """SEC-581: but those who manage members, and each person their own."""
    token = a_token(tenant)
    with pytest.raises(PermissionDenied):
        revoke_token(token=token, actor=tenant.actor("auditor"))
    other = make_tenant("other")
    with pytest.raises(PermissionDenied):
        revoke_token(token=token, actor=other.actor("owner"))
    revoke_token(token=token, actor=tenant.actor("member"))
    revoke_token(token=a_token(tenant), actor=tenant.actor("admin"))


def test_accounts_are_switched_off_and_on(root: Tenant) -> None:
    """REL-1194: not one's own, and each is told why if it is refused."""
    people = [UserFactory.create(), UserFactory.create()]
    UserFactory.create(is_superuser=True)
    client = root.client("owner")
    page = act(client, USERS, "switch_off", *people, confirmed=False)
    assert "Switch off 2 accounts?" in page.content.decode()
    assert notices(act(client, USERS, "switch_off", root.owner, *people)) == [
        "2 accounts switched off.",
        f"{root.owner}: You cannot switch yourself off. Another owner of the platform can.",
    ]
    assert User.objects.filter(is_active=False).count() == 2
    assert notices(act(client, USERS, "switch_on", people[0], root.owner)) == [
        "1 account switched on.",
        f"{root.owner}: {root.owner.email} is active.",
    ]


def test_workspaces_are_suspended_and_opened(root: Tenant) -> None:
    """REL-1194: with a page that names them."""
    rows = [WorkspaceFactory.create(), WorkspaceFactory.create()]
    client = root.client("owner")
    text = act(client, WORKSPACES, "suspend", *rows, confirmed=False).content.decode()
    assert "Suspend 2 workspaces?" in text
    assert rows[0].name in text
    assert notices(act(client, WORKSPACES, "suspend", *rows)) == ["2 workspaces suspended."]
    assert Workspace.objects.filter(is_active=False).count() == 2
    texts = notices(act(client, WORKSPACES, "open_again", rows[0], root.workspace))
    assert texts[0] == "1 workspace is open again."
    assert "is not suspended" in texts[1]


@pytest.mark.parametrize("role", ["owner", "admin"])
def test_only_the_platforms_owner_acts_on_accounts_and_workspaces(
    tenant: Tenant, role: str
) -> None:
    """REL-1194, SEC-580."""
    client = tenant.client(role)
    for url, action, row in (
        (USERS, "switch_off", tenant.member),
        (WORKSPACES, "suspend", tenant.workspace),
    ):
        body = {"action": action, "_selected_action": [str(row.pk)], "confirmed": "yes"}
        assert client.post(url, body).status_code in (302, 403)
        row.refresh_from_db()
        assert row.is_active


def test_the_list_takes_as_many_statements_for_many_rows(tenant: Tenant) -> None:
    """REL-1190: and so does the page that asks."""
    client, counts = tenant.client(), []
    rows: list[Membership] = []
    for _ in range(3):
        rows += some_members(tenant, 2)
        for ask in (False, True):
            with CaptureQueriesContext(connection) as captured:
                if ask:
                    act(client, MEMBERS, "suspend", *rows, confirmed=False)
                else:
                    client.get(MEMBERS)
            counts.append(len(captured))
    assert counts[2:4] == counts[4:6]


def test_a_form_that_suspends_a_workspace_asks_first(root: Tenant) -> None:
    """REL-1784: as the action of the list does, and says what it does. To open it again asks nothing."""
    other = WorkspaceFactory.create(name="Orchard", slug="orchard")
    page, client = f"{WORKSPACES}{other.pk}/change/", root.client("owner")
    open_values = client.get(page).context["adminform"].form.initial
    values = {name: value for name, value in open_values.items() if value not in (None, False)}
    closed = {name: value for name, value in values.items() if name != "is_active"}
    asked = client.post(page, {**closed, "name": "Orchards", "_save": "Save"})
    text = asked.content.decode()
    assert asked.status_code == 200
    assert "Suspend 1 workspace?" in text
    for word in ("Orchard<", "Running answers stop", "Schedules", "API tokens"):
        assert word in text
    other.refresh_from_db()
    assert (other.is_active, other.name) == (True, "Orchard")
    assert client.post(page, dict(asked.context["hidden"])).status_code == 302
    other.refresh_from_db()
    assert (other.is_active, other.name) == (False, "Orchards")
    assert client.post(page, {**values, "name": "Orchard"}).status_code == 302
    other.refresh_from_db()
    assert (other.is_active, other.name) == (True, "Orchard")


@pytest.mark.parametrize("name", ["is_active", "is_superuser"])
def test_a_form_that_shuts_an_account_out_or_gives_it_everything_asks_first(
    root: Tenant, name: str
) -> None:
    """REL-1784: its other changes wait for the answer, too."""
    person = root.member
    values = {"email": person.email, "name": "Renamed", "is_active": "on"}
    if name == "is_active":
        del values["is_active"]
    else:
        values["is_superuser"] = "on"
    page, client = f"{USERS}{person.pk}/change/", root.client("owner")
    asked = client.post(page, values)
    person.refresh_from_db()
    assert (person.is_active, person.is_superuser, person.name == "Renamed") == (True, False, False)
    assert person.email in asked.content.decode()
    assert client.post(page, dict(asked.context["hidden"])).status_code == 302
    person.refresh_from_db()
    assert (person.is_active, person.is_superuser) == (name != "is_active", name == "is_superuser")
    assert person.name == "Renamed"


@pytest.mark.parametrize("role", ["member", "admin", "owner"])
def test_a_form_that_changes_a_role_asks_first(tenant: Tenant, role: str) -> None:
    """REL-1822: with the words of the list's action. To give the right to audit asks nothing."""
    row = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    row.role = "member" if role != "member" else "admin"
    row.save()
    page, client = f"{MEMBERS}{row.pk}/change/", tenant.client("owner")
    asked = client.post(page, {"role": role, "is_auditor": "on"})
    text = asked.content.decode()
    assert f"Change the role of 1 person to {role}?" in text
    assert tenant.member.email in text
    row.refresh_from_db()
    assert (row.role == role, row.is_auditor) == (False, False)
    assert client.post(page, dict(asked.context["hidden"])).status_code == 302
    row.refresh_from_db()
    assert (row.role, row.is_auditor) == (role, True)
    assert client.post(page, {"role": role}).status_code == 302
    row.refresh_from_db()
    assert (row.role, row.is_auditor) == (role, False)
