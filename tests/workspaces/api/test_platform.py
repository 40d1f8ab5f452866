"""Who may call what belongs to the whole installation, and its workspaces and accounts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.models import AuditEntry
from tests.factories import PASSWORD, Tenant, UserFactory, WorkspaceFactory, signed_in
from tests.platform_api import Api, faults, in_browser, issue, with_token
from workspaces.actors import Source
from workspaces.errors import InvalidInput, PermissionDenied
from workspaces.middleware import actor_for
from workspaces.models import ApiToken, IdempotentRequest, User, Workspace
from workspaces.people.platform import save_account
from workspaces.people.tokens import PLATFORM_READ, PLATFORM_WRITE, issue_token
from workspaces.roles import Role

pytestmark = pytest.mark.django_db

MISSING = "00000000-0000-7000-8000-000000000000"
"""An id of nothing. Each process of the tests has to give them the same names."""
LISTS = (
    *("state/", "jobs/", "storage/", "versions/"),
    *("workspaces/", "accounts/", "programs/", "programs/known/", "servers/"),
    *("environment-provider/", "environment-provider/usage/", "providers/"),
    *("audit/", "audit-workspaces/", "audit-entries/", "audit-streams/"),
)


@pytest.fixture
def program(superuser: User, tenant: Tenant) -> Api:
    """A program with both scopes."""
    return with_token(superuser, tenant.workspace, PLATFORM_READ, PLATFORM_WRITE)


def entries_about(workspace_id: Any, kind: str) -> list[dict[str, Any]]:
    """What the log says of changes of one kind, oldest first."""
    rows = AuditEntry.objects.across_workspaces().filter(workspace_id=workspace_id)
    rows = rows.filter(action="config.changed", details__kind=kind).order_by("pk")
    return [{**row.details, "by": row.actor_label, "sign_in": row.sign_in} for row in rows]


# Who may call ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LISTS)
def test_the_owner_reads_in_a_browser_and_with_a_token(root: Api, program: Api, path: str) -> None:
    """REL-1060: also where they are in no workspace."""
    for api in (root, program):
        answer = api.get(path)
        assert answer.status_code == 200, answer.content


@pytest.mark.parametrize("role", ["owner", "admin", "member", "auditor"])
def test_nobody_else_finds_anything(tenant: Tenant, role: str) -> None:
    """SEC-500: 404 alike for lists, rows that exist and rows that do not, for changes, and with every token."""
    api = in_browser(tenant.people[role])
    token = issue(tenant.people[role], tenant.workspace, "chat")
    holder = Api(Client(), {"Authorization": f"Bearer {token}"})
    answers = set()
    for one in (api, holder):
        answers |= {one.get(path).content for path in LISTS}
        for pk in (tenant.workspace.pk, uuid7()):
            answers.add(one.get(f"workspaces/{pk}/").content)
            answers.add(one.post(f"workspaces/{pk}/suspend/", {}).content)
            answers.add(one.patch(f"accounts/{tenant.owner.pk}/", {"is_superuser": True}).content)
        assert one.get("workspaces/").status_code == 404
    assert len(answers) == 1
    assert Client().get("/api/platform/state/").status_code == 401


def test_a_browser_needs_csrf_proof(superuser: User) -> None:
    """SEC-500: as everywhere."""
    client = signed_in(superuser, enforce_csrf_checks=True)
    assert Api(client).post("workspaces/", {"name": "x", "slug": "x"}).status_code == 403


def test_a_token_needs_the_scope(superuser: User, tenant: Tenant) -> None:
    """SEC-501: reading and changing are two scopes, and no other one opens anything."""
    reader = with_token(superuser, tenant.workspace, PLATFORM_READ)
    writer = with_token(superuser, tenant.workspace, PLATFORM_WRITE)
    other = with_token(superuser, tenant.workspace, "chat", "workspace:write", "audit:read")
    new = {"name": "New", "slug": "new"}
    assert reader.get("workspaces/").status_code == 200
    assert writer.post("workspaces/", new).status_code == 201
    for api, method in ((reader, "POST"), (writer, "GET"), (other, "GET"), (other, "POST")):
        answer = api.call(method, "workspaces/", new if method == "POST" else None)
        assert answer.status_code == 403
        assert "platform:" in answer.json()["errors"][0]["detail"]


def test_a_token_ends_with_the_right_of_its_person(
    superuser: User, program: Api, tenant: Tenant
) -> None:
    """SEC-501: at the next request, and its answer tells nothing."""
    assert program.get("workspaces/").status_code == 200
    User.objects.filter(pk=superuser.pk).update(is_superuser=False)
    assert program.get("workspaces/").status_code == 404
    assert program.get("workspaces/").content == in_browser(tenant.member).get("state/").content
    User.objects.filter(pk=superuser.pk).update(is_superuser=True, is_active=False)
    assert program.get("workspaces/").status_code == 401


def test_a_token_for_the_platform_makes_nobody_an_owner_of_workspaces(
    superuser: User, tenant: Tenant
) -> None:
    """SEC-501: in its workspace it may what its person's role there allows, and no more."""
    scopes = ("members:write", "workspace:write", "audit:read", PLATFORM_READ, PLATFORM_WRITE)
    api = with_token(superuser, tenant.workspace, *scopes)
    for path in ("/api/members/", "/api/config/", "/api/audit-entries/", "/api/invitations/"):
        assert api.client.get(path, headers=api.headers).status_code == 403, path


def test_only_an_owner_gives_the_scopes_and_only_to_themselves(
    superuser: User, tenant: Tenant
) -> None:
    """SEC-501: to everybody else they are unknown; a token makes no token; and they end within 90 days."""
    for role in tenant.people:
        with pytest.raises(InvalidInput, match="Unknown scope"):
            issue(tenant.people[role], tenant.workspace, PLATFORM_READ)
    with pytest.raises(InvalidInput, match="Unknown scope"):
        issue(superuser, tenant.workspace, PLATFORM_READ)  # no member, so it would never work
    with_token(superuser, tenant.workspace, "chat")
    actor = actor_for(superuser, tenant.workspace, source=Source.WEB)
    day = timezone.now() + timedelta(days=1)
    with pytest.raises(InvalidInput, match="Unknown scope"):
        issue_token(
            workspace=tenant.workspace,
            user=tenant.member,
            name="for another one",
            scopes=[PLATFORM_READ],
            expires_at=day,
            actor=actor,
        )
    with pytest.raises(InvalidInput, match="90 days"):
        issue(superuser, tenant.workspace, "chat", PLATFORM_READ, days=91)
    token = ApiToken.objects.for_workspace(tenant.workspace).get(user=superuser)
    by_token = actor_for(superuser, tenant.workspace, source=Source.API, token=token)
    with pytest.raises(PermissionDenied):
        issue_token(
            workspace=tenant.workspace,
            user=superuser,
            name="more",
            scopes=["chat"],
            expires_at=day,
            actor=by_token,
        )


def test_the_page_of_tokens_offers_the_scopes_to_owners_alone(
    superuser: User, tenant: Tenant
) -> None:
    """SEC-501: and says what they open, and how long they last."""
    address = reverse("workspaces:tokens")
    for role in tenant.people:
        assert "platform:" not in tenant.client(role).get(address).content.decode()
    with_token(superuser, tenant.workspace, "chat")
    client = in_browser(superuser).client
    page = client.get(address).content.decode()
    assert "platform:read" in page
    assert "whole installation" in page
    assert "90 days" in page
    made = {"name": "x", "days": "90", "scopes": [PLATFORM_READ]}
    assert "trl_" in client.post(address, made).content.decode()
    refused = client.post(address, {**made, "days": "365"}).content.decode()
    assert "ends within 90 days" in refused


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "accounts/"),
        ("POST", "programs/"),
        ("PATCH", f"programs/{MISSING}/"),
        ("DELETE", f"programs/{MISSING}/"),
        ("POST", f"programs/{MISSING}/accept/"),
        ("POST", "audit-streams/"),
        ("PATCH", f"audit-streams/{MISSING}/"),
        ("DELETE", f"audit-streams/{MISSING}/"),
        ("POST", f"audit-streams/{MISSING}/restart/"),
        ("POST", f"audit-streams/{MISSING}/renew-secret/"),
        ("POST", "state/confirm-restore/"),
    ],
)
def test_what_gives_a_program_more_than_it_has_takes_a_person(
    root: Api, program: Api, method: str, path: str
) -> None:
    """SEC-502: no token does it, whatever its scopes."""
    answer = program.call(method, path, {})
    assert answer.status_code == 403
    assert "No token can do this" in answer.json()["errors"][0]["detail"]
    assert root.call(method, path, {}).status_code in {200, 400, 404}


# Workspaces -----------------------------------------------------------------------------------------------------------


def test_workspaces_are_made_changed_suspended_and_opened_again(
    root: Api, superuser: User, tenant: Tenant
) -> None:
    """REL-1060, SEC-503: suspending takes the workspace's name. The log of the workspace says who did it."""
    made = root.post("workspaces/", {"name": "New", "slug": "new", "allows_public_links": True})
    assert made.status_code == 201
    path = f"workspaces/{made.json()['id']}/"
    assert root.get(path).json() == made.json()
    assert made.json()["allows_public_links"] is True
    changed = root.patch(path, {"name": "Newer"}).json()
    assert (changed["name"], changed["slug"], changed["allows_public_links"]) == (
        "Newer",
        "new",
        True,
    )
    for typed in ("", "New"):
        refused = root.post(f"{path}suspend/", {"confirmation": typed})
        assert refused.status_code == (422 if typed else 400)
        assert set(faults(refused)) == {"confirmation"}
    assert root.post(f"{path}resume/").status_code == 409
    assert root.post(f"{path}suspend/", {"confirmation": "Newer"}).json()["is_active"] is False
    assert root.post(f"{path}suspend/", {"confirmation": "Newer"}).status_code == 409
    assert root.post(f"{path}resume/").json()["is_active"] is True
    log = entries_about(made.json()["id"], "workspace")
    assert [one["verb"] for one in log] == ["created", "changed", "changed", "changed"]
    assert log[2]["after"] == {"is_active": False}
    assert {one["by"] for one in log} == {superuser.email}


def test_a_suspended_workspace_is_closed_to_its_people(program: Api, tenant: Tenant) -> None:
    """REL-1060, SEC-1021: a token may do it, too, and the log says that it was one. Its own rests with its workspace."""
    other = WorkspaceFactory.create(name="Other")
    body = {"confirmation": "Other"}
    assert program.post(f"workspaces/{other.pk}/suspend/", body).status_code == 200
    assert entries_about(other.pk, "workspace")[-1]["sign_in"] == "token"
    body = {"confirmation": tenant.workspace.name}
    assert program.post(f"workspaces/{tenant.workspace.pk}/suspend/", body).status_code == 200
    assert tenant.client("owner").get(f"/w/{tenant.workspace.slug}/").status_code == 403
    refused = program.get("workspaces/")
    assert refused.status_code == 403
    assert "is suspended" in refused.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("body", "status", "fields"),
    [
        ({}, 400, {"name", "slug"}),
        ({"name": "x", "slug": ""}, 400, {"slug"}),
        ({"name": "x", "slug": "not a slug"}, 400, {"slug"}),
        ({"name": "x", "slug": "a"}, 422, {"slug"}),
        ({"name": "x" * 101, "slug": "x"}, 400, {"name"}),
        (
            {"name": "x", "slug": "x", "allows_public_links": "perhaps"},
            400,
            {"allows_public_links"},
        ),
        ([], 400, {""}),
    ],
)
def test_a_faulty_workspace_is_told_at_its_field(
    root: Api, tenant: Tenant, body: Any, status: int, fields: set[str]
) -> None:
    """REL-1060."""
    answer = root.post("workspaces/", body)
    assert (answer.status_code, set(faults(answer))) == (status, fields)
    assert Workspace.objects.count() == 1


def test_lists_come_in_pages_and_know_their_filters(root: Api) -> None:
    """REL-1061, REL-1062: with as many statements for many rows as for a few."""
    WorkspaceFactory.create()
    WorkspaceFactory.create(name="Garden", slug="garden", is_active=False)
    lists = ("workspaces/", "audit-workspaces/", "accounts/", "audit-entries/", "providers/")
    few = [root.statements(path) for path in lists]
    WorkspaceFactory.create_batch(25)
    UserFactory.create_batch(25)
    assert [root.statements(path) for path in lists] == few
    assert max(few) <= 8
    found, url = [], "workspaces/?page_size=10"
    while url:
        page = root.get(url).json()
        found += [one["name"] for one in page["results"]]
        url = page["next"].partition("/api/platform/")[2] if page["next"] else ""
    assert found == sorted(found)
    assert len(found) == Workspace.objects.count()
    for query, number in (("q=GARD", 1), ("is_active=false", 1), ("q=nothing", 0)):
        assert len(root.get(f"workspaces/?{query}").json()["results"]) == number
    for query in ("q2=x", "page_size=0", "cursor=x", "ordering=slug", "is_active=maybe"):
        assert root.get(f"workspaces/?{query}").status_code == 400, query
    assert root.get(f"workspaces/{uuid7()}/").status_code == 404
    assert root.get("workspaces/none/").status_code == 404


def test_a_repeated_request_does_nothing_twice(root: Api, superuser: User) -> None:
    """REL-1061: also where there is no workspace yet. A key is one person's, and not one workspace's."""
    body = {"name": "First", "slug": "first"}
    first, second = (
        root.post("workspaces/", body, **{"Idempotency-Key": "once"}) for _ in range(2)
    )
    assert (first.status_code, second.status_code) == (201, 201)
    assert second["Idempotency-Replayed"] == "true"
    assert second.json() == first.json()
    other = root.post("workspaces/", {**body, "slug": "2"}, **{"Idempotency-Key": "once"})
    assert other.status_code == 422
    assert Workspace.objects.count() == 1
    kept = IdempotentRequest.objects.across_workspaces().get()
    assert (kept.workspace_id, kept.user_id) == (None, superuser.pk)


# Accounts -------------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_accounts_are_made_and_changed(root: Api, superuser: User) -> None:
    """REL-1060: the new address gets its mail, and the password is told nowhere."""
    new = {"email": "New@Example.org", "name": "New", "password": PASSWORD}
    made = root.post("accounts/", new)
    assert made.status_code == 201
    assert (made.json()["email"], made.json()["is_address_confirmed"]) == ("new@example.org", False)
    assert "password" not in made.json()
    assert [one.to for one in mail.outbox] == [["new@example.org"]]
    person = User.objects.get(email="new@example.org")
    assert person.check_password(PASSWORD)
    path = f"accounts/{person.pk}/"
    assert root.patch(path, {"name": "Newer"}).json()["name"] == "Newer"
    moved = root.patch(path, {"email": "moved@example.org", "is_superuser": True}).json()
    assert (moved["email"], moved["is_superuser"]) == ("moved@example.org", True)
    assert mail.outbox[-1].to == ["moved@example.org"]
    log = entries_about(None, "user")
    assert [one["verb"] for one in log] == ["created", "changed", "changed"]
    assert log[2]["after"] == {"email": "moved@example.org", "is_superuser": True}
    assert PASSWORD not in str(log)
    refused = root.patch(path, {"password": "x"})
    assert (refused.status_code, faults(refused)) == (400, {"password": "unknown_field"})
    person.refresh_from_db()
    assert person.check_password(PASSWORD)


def test_names_of_accounts_hold_what_people_see(root: Api) -> None:
    """REL-2037: also those that the platform's owner gives."""
    new = {"email": "new@example.org", "name": "\u202eNew\u200b", "password": PASSWORD}
    made = root.post("accounts/", new).json()
    assert made["name"] == "New"
    assert root.patch(f"accounts/{made['id']}/", {"name": "New\ufeffer"}).json()["name"] == "Newer"


@pytest.mark.parametrize(
    ("changes", "status", "fields"),
    [
        ({"email": "no address"}, 400, {"email"}),
        ({"email": "ROOT@platform.example.org"}, 422, {"email"}),
        ({"password": "short"}, 422, {"password"}),
        ({"password": "short", "email": "root@platform.example.org"}, 422, {"email", "password"}),
    ],
)
def test_a_faulty_account_is_told_at_its_field(
    root: Api, changes: dict[str, Any], status: int, fields: set[str]
) -> None:
    """REL-1060."""
    body = {"email": "new@example.org", "password": PASSWORD, **changes}
    answer = root.post("accounts/", body)
    assert (answer.status_code, set(faults(answer))) == (status, fields)
    assert User.objects.count() == 1
    assert not mail.outbox


def test_a_person_who_is_switched_off_is_out(program: Api, tenant: Tenant) -> None:
    """REL-1060: a token may do that, as when somebody leaves."""
    client = tenant.client("member")
    path = f"accounts/{tenant.member.pk}/"
    assert client.get(f"/w/{tenant.workspace.slug}/").status_code == 200
    assert program.patch(path, {"is_active": False}).json()["is_active"] is False
    assert client.get(f"/w/{tenant.workspace.slug}/").status_code == 302
    assert program.patch(path, {"is_active": True}).json()["is_active"] is True


def test_a_token_changes_no_rights_no_address_and_no_owner(
    program: Api, superuser: User, tenant: Tenant
) -> None:
    """SEC-502: with one of these it could take an account over."""
    other = UserFactory.create(is_superuser=True)
    member = f"accounts/{tenant.member.pk}/"
    for path, change in (
        (member, {"is_superuser": True}),
        (member, {"email": "mine@example.org"}),
        (f"accounts/{other.pk}/", {"is_active": False}),
        (f"accounts/{superuser.pk}/", {"name": "x"}),
    ):
        assert program.patch(path, change).status_code == 403, change
    assert User.objects.filter(is_superuser=True, is_active=True).count() == 2


@pytest.mark.parametrize("change", [{"is_superuser": False}, {"is_active": False}])
def test_the_last_owner_of_the_platform_stays_one(
    root: Api, superuser: User, change: dict[str, bool]
) -> None:
    """REL-1063: over REST and on the page; one who cannot sign in does not count."""
    UserFactory.create(is_superuser=True, is_active=False)
    path = f"accounts/{superuser.pk}/"
    assert root.patch(path, change).status_code == 409
    page = f"/admin/workspaces/user/{superuser.pk}/change/"
    form = {"email": superuser.email, "name": "Root", "is_active": "on", "is_superuser": "on"}
    form = {name: value for name, value in form.items() if name not in change}
    shown = root.client.post(page, form, follow=True)
    shown = root.client.post(page, dict(shown.context["hidden"]), follow=True)  # it asks first
    assert "The platform needs an owner" in shown.content.decode()
    superuser.refresh_from_db()
    assert superuser.is_superuser
    assert superuser.is_active
    other = UserFactory.create(is_superuser=True)
    assert root.patch(f"accounts/{other.pk}/", change).status_code == 200


def test_nobody_switches_their_own_account_off(root: Api, superuser: User) -> None:
    """REL-3330: over REST and by the form, as in the list; with their sessions, nobody undoes it themselves."""
    UserFactory.create(is_superuser=True)
    fault = "You cannot switch yourself off. Another owner of the platform can."
    answer = root.patch(f"accounts/{superuser.pk}/", {"is_active": False})
    assert answer.status_code == 409
    assert fault in answer.content.decode()
    page = f"/admin/workspaces/user/{superuser.pk}/change/"
    form = {"email": superuser.email, "name": "Root", "is_superuser": "on"}
    asked = root.client.post(page, form)
    shown = root.client.post(page, dict(asked.context["hidden"]), follow=True)
    assert fault in shown.content.decode()
    superuser.refresh_from_db()
    assert superuser.is_active


def test_nobody_but_the_owner_saves_an_account(tenant: Tenant) -> None:
    """SEC-500: the service itself asks."""
    tenant.member.is_superuser = True
    with pytest.raises(PermissionDenied):
        save_account(account=tenant.member, actor=tenant.actor("owner"))
    assert Role.OWNER
