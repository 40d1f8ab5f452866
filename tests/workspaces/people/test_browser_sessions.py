"""Sessions are seen where they were used, and ended from there."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.models import AuditEntry
from tests.factories import Tenant, TwoTenants
from tests.paging import rows_of_all_pages
from workspaces.errors import PermissionDenied
from workspaces.models import ApiToken, Membership, User, WorkspaceSession
from workspaces.people.browser_sessions import device, end_sessions

pytestmark = pytest.mark.django_db
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def enter(tenant: Tenant, who: str, agent: str = FIREFOX) -> Client:
    client = tenant.client(who, headers={"user-agent": agent})
    assert client.get(f"/w/{tenant.workspace.slug}/").status_code == 200
    return client


def of(tenant: Tenant, who: str) -> Membership:
    return Membership.objects.for_workspace(tenant.workspace).get(user=tenant.people[who])


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (FIREFOX, "Firefox on Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit Chrome/142.0 Safari/537 Edg/142.0",
            "Edge on Windows",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18 Safari/604",
            "Safari on iOS",
        ),
        ("Mozilla/5.0 (Linux; Android 16) Chrome/142.0 Mobile Safari/537", "Chrome on Android"),
        ("curl/8", "Unknown device"),
        ("", "Unknown device"),
    ],
)
def test_a_browser_is_told_in_words(agent: str, words: str) -> None:
    """REL-523."""
    assert device(agent) == words


def test_an_administrator_sees_sessions_and_signs_a_person_out(tenant: Tenant) -> None:
    """REL-523: one of them, then all; others stay."""
    first, second = enter(tenant, "member"), enter(tenant, "member", "curl/8")
    admin = enter(tenant, "admin")
    path = f"/w/{tenant.workspace.slug}/people/{of(tenant, 'member').pk}/"
    page = admin.get(path)
    assert [name for _, name in page.context["sessions"]] == ["Unknown device", "Firefox on Linux"]
    rows = WorkspaceSession.objects.for_workspace(tenant.workspace)
    chosen = rows.get(user=tenant.member, user_agent=FIREFOX)
    admin.post(f"{path}sign-out/", {"session": str(chosen.pk)})
    assert first.get(f"/w/{tenant.workspace.slug}/").status_code == 302
    assert second.get(f"/w/{tenant.workspace.slug}/").status_code == 200
    admin.post(f"{path}sign-out/")
    assert second.get(f"/w/{tenant.workspace.slug}/").status_code == 302
    assert admin.get(path).context["sessions"] == []
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    assert entries.count() == 2  # of the member alone
    assert chosen.session_id not in str(list(entries.values()))
    assert admin.post(f"{path}sign-out/", {"session": "nonsense"}).status_code == 404


def test_sessions_are_those_of_the_workspace(two_workspaces: TwoTenants) -> None:
    """SEC-387: what was used elsewhere is neither seen nor ended here, and members end their own alone."""
    a, b = two_workspaces.a, two_workspaces.b
    Membership.objects.create(workspace=b.workspace, user=a.member, role="member")
    elsewhere = a.client("member")
    assert elsewhere.get(f"/w/{b.workspace.slug}/").status_code == 200
    head = {"X-Workspace": a.workspace.slug}
    path = f"/api/members/{of(a, 'member').pk}/"
    admin = a.client("admin")
    assert admin.get(f"{path}sessions/", headers=head).json()["results"] == []
    foreign = WorkspaceSession.objects.for_workspace(b.workspace).get(user=a.member)
    for body, status in (({}, 200), ({"session": str(foreign.pk)}, 422)):
        answer = admin.post(
            f"{path}sign-out/", json.dumps(body), content_type="application/json", headers=head
        )
        assert answer.status_code == status
    assert elsewhere.get(f"/w/{b.workspace.slug}/").status_code == 200
    enter(a, "member")
    shown = admin.get(f"{path}sessions/", headers=head).json()["results"]
    assert [one["device"] for one in shown] == ["Firefox on Linux"]
    with pytest.raises(PermissionDenied):
        end_sessions(membership=of(a, "owner"), actor=a.actor("admin"))
    with pytest.raises(PermissionDenied):
        end_sessions(membership=of(a, "admin"), actor=a.actor("member"))
    assert end_sessions(membership=of(a, "member"), actor=a.actor("member")) == 1


def test_people_see_and_end_their_own_sessions(tenant: Tenant) -> None:
    """REL-530: one of them or all others, and never the one that they use."""
    here, there = enter(tenant, "member"), enter(tenant, "member", "curl/8")
    mark = [
        (name, is_this) for _, name, is_this in here.get("/account/sessions/").context["sessions"]
    ]
    assert mark == [("Unknown device", False), ("Firefox on Linux", True)]
    rows = WorkspaceSession.objects.for_workspace(tenant.workspace)
    own = rows.get(user_agent=FIREFOX)
    others = enter(tenant, "admin")
    foreign = rows.get(user=tenant.admin)
    for kept in (own, foreign):
        here.post("/account/sessions/", {"session": str(kept.pk)})
    assert rows.count() == 3
    here.post("/account/sessions/")
    assert there.get(f"/w/{tenant.workspace.slug}/").status_code == 302
    for client in (here, others):
        assert client.get(f"/w/{tenant.workspace.slug}/").status_code == 200
    assert here.post("/account/sessions/", {"session": "nonsense"}).status_code == 404


def test_settings_have_a_page_for_each_section(tenant: Tenant) -> None:
    """REL-530: each with an address of its own, and all of them on each."""
    client = tenant.client("member")
    slug = tenant.workspace.slug
    sections = [
        *(
            "/account/",
            "/account/appearance/",
            "/account/formats/",
            "/account/shortcuts/",
            "/accounts/email/",
            "/accounts/password/change/",
            "/account/sessions/",
        ),
        *("/account/tokens/", f"/w/{slug}/connections/", f"/w/{slug}/activity/"),
        reverse("chat:reminders", args=[slug]),
    ]
    for path in sections:
        page = client.get(path).content.decode()
        assert all(f'href="{other}"' in page for other in sections), path
    client.post("/account/", {"name": " Ada "})
    tenant.member.refresh_from_db()
    assert tenant.member.name == "Ada"
    assert client.post("/account/", {"name": "x" * 151}).status_code == 422


def test_a_session_is_noted_once_in_ten_minutes(tenant: Tenant) -> None:
    """REL-523: pages in between cost nothing."""
    client = enter(tenant, "member")
    seen = WorkspaceSession.objects.for_workspace(tenant.workspace).get().last_seen_at
    client.get(f"/w/{tenant.workspace.slug}/")
    row = WorkspaceSession.objects.for_workspace(tenant.workspace).get()
    assert row.last_seen_at == seen
    session = client.session
    session["noted"] = [session["noted"][0], session["noted"][1] - 601]
    session.save()
    client.get(f"/w/{tenant.workspace.slug}/")
    row.refresh_from_db()
    assert row.last_seen_at > seen


def test_a_filter_of_the_members_with_a_typo_is_told_at_the_field(tenant: Tenant) -> None:
    """REL-766."""
    client, url = tenant.client("admin"), f"/w/{tenant.workspace.slug}/people/"
    page = client.get(f"{url}?rol=admin").content.decode()
    assert 'id="list-query-fault" role="alert">There is no filter “rol”.</p>' in page
    assert 'aria-describedby="list-query-fault"' in page
    assert "list-query-fault" not in client.get(f"{url}?q=admin").content.decode()


def many_sessions(tenant: Tenant, who: str, number: int) -> None:
    """Sessions of a person that were last used one minute after another, some at the same moment."""
    now = timezone.now()
    keys = [f"{who}-{index:04}" for index in range(number)]
    later = now + timedelta(days=1)
    Session.objects.bulk_create(Session(session_key=key, expire_date=later) for key in keys)
    WorkspaceSession.objects.bulk_create(
        WorkspaceSession(
            workspace=tenant.workspace,
            user=tenant.people[who],
            session_id=key,
            last_seen_at=now - timedelta(minutes=1 + index // 3),
        )
        for index, key in enumerate(keys)
    )


def many_tokens(tenant: Tenant, who: str, number: int) -> None:
    """Tokens of a person, of which some have the same name."""
    ApiToken.objects.bulk_create(
        ApiToken(
            workspace=tenant.workspace,
            user=tenant.people[who],
            name=f"token {index // 3:04}",
            token_hash=f"{who}-{index}",
            expires_at=timezone.now() + timedelta(days=1),
        )
        for index in range(number)
    )


def test_all_sessions_of_a_person_are_shown_page_by_page(tenant: Tenant) -> None:
    """REL-824: on their own page and on the administrators' page of them; none is left out or comes twice."""
    many_sessions(tenant, "member", 250)
    member, admin = enter(tenant, "member"), enter(tenant, "admin")
    stored = set(
        WorkspaceSession.objects.for_workspace(tenant.workspace)
        .filter(user=tenant.member)
        .values_list("pk", flat=True)
    )
    path = f"/w/{tenant.workspace.slug}/people/{of(tenant, 'member').pk}/"
    for client, where, ways in (
        (member, "/account/sessions/", "ways"),
        (admin, path, "session_ways"),
    ):
        shown = [row for row, *_ in rows_of_all_pages(client, where, "sessions", ways)]
        assert len(shown) == len(stored) == 251
        assert {row.pk for row in shown} == stored
        times = [row.last_seen_at for row in shown]
        assert times == sorted(times, reverse=True)
    rest = f"/api/members/{of(tenant, 'member').pk}/sessions/"
    over_rest: list[str] = []
    url: str | None = rest
    while url:
        answer = admin.get(url).json()
        over_rest += [one["id"] for one in answer["results"]]
        url = answer["next"]
    assert over_rest == [str(row.pk) for row in shown]
    assert admin.get(f"{rest}?cursor=nonsense").status_code == 400


def test_all_tokens_of_a_person_are_shown_page_by_page(tenant: Tenant) -> None:
    """REL-824."""
    many_tokens(tenant, "member", 250)
    path = f"/w/{tenant.workspace.slug}/people/{of(tenant, 'member').pk}/"
    own = rows_of_all_pages(tenant.client("member"), reverse("workspaces:tokens"), "tokens", "ways")
    shown = rows_of_all_pages(tenant.client("admin"), path, "tokens", "token_ways")
    assert len(own) == len({row.pk for row in own}) == 250
    assert len(shown) == len({row.pk for row in shown}) == 250
    assert [row.name for row in shown] == sorted(row.name for row in shown)


def test_signing_out_everywhere_ends_the_sessions_of_all_pages(tenant: Tenant) -> None:
    """REL-824: the person's own form leaves the one that sends it."""
    many_sessions(tenant, "member", 230)
    member, admin = enter(tenant, "member"), enter(tenant, "admin")
    rows = WorkspaceSession.objects.for_workspace(tenant.workspace).filter(user=tenant.member)
    member.post("/account/sessions/")
    assert [row.user_agent for row in rows] == [FIREFOX]
    many_sessions(tenant, "member", 230)
    last = rows.order_by("last_seen_at")[0]
    member.post("/account/sessions/", {"session": str(last.pk)})
    assert rows.all().count() == 230
    admin.post(f"/w/{tenant.workspace.slug}/people/{of(tenant, 'member').pk}/sign-out/")
    assert not rows.all().exists()


def test_a_page_that_does_not_exist_is_told_and_leads_to_the_first_one(tenant: Tenant) -> None:
    """REL-824: also where the rows after a mark have gone."""
    many_tokens(tenant, "member", 120)
    client = tenant.client("member")
    path = reverse("workspaces:tokens")
    for mark in ("nonsense", "W10=", "WyJ4IiwgInkiXQ==", "%00"):
        page = client.get(f"{path}?after={mark}")
        assert page.context["faults"] == ["This page does not exist. The first one is shown."], mark
        assert len(page.context["tokens"]) == 100
    following = client.get(path).context["ways"].following
    newest = ApiToken.objects.for_workspace(tenant.workspace).order_by("-created_at", "-id")[:100]
    ApiToken.objects.for_workspace(tenant.workspace).exclude(
        pk__in=list(newest.values_list("pk", flat=True))
    ).delete()
    assert len(client.get(f"{path}{following}").context["tokens"]) == 100
    person = f"/w/{tenant.workspace.slug}/people/{of(tenant, 'member').pk}/"
    page = tenant.client("admin").get(f"{person}?sessions_after=nonsense&other=1")
    assert page.context["address_faults"] == [
        "There is no filter “other”. The list is shown without it.",
        "This page does not exist. The first one is shown.",
    ]


def test_signing_out_everywhere_else_ends_sessions_of_other_workspaces(
    two_workspaces: TwoTenants,
) -> None:
    """SEC-450: a browser that was used in another workspace alone is none to keep; each has its entry there."""
    a, b = two_workspaces.a, two_workspaces.b
    Membership.objects.create(workspace=b.workspace, user=a.member, role="admin")
    elsewhere, others = a.client("member"), enter(b, "member")
    assert elsewhere.get(f"/w/{b.workspace.slug}/").status_code == 200
    here = enter(a, "member")
    page = here.post("/account/sessions/", follow=True).content.decode()
    assert "Signed out of 1 other browser." in page
    assert elsewhere.get(f"/w/{b.workspace.slug}/").status_code == 302
    for client, tenant in ((here, a), (others, b)):
        assert client.get(f"/w/{tenant.workspace.slug}/").status_code == 200
    entry = AuditEntry.objects.for_workspace(b.workspace).filter(actor_id=a.member.pk).latest("id")
    assert (entry.action, entry.details["kind"]) == ("config.changed", "browser session")


def test_signing_out_everywhere_else_ends_sessions_that_were_used_in_no_workspace(
    two_workspaces: TwoTenants, superuser: User
) -> None:
    """SEC-461: the platform's owner, who is a member nowhere; and a browser that was only ever at the settings."""
    tenant = two_workspaces.a
    for person, path in ((superuser, "/admin/"), (tenant.member, "/account/")):
        here, elsewhere, new = Client(), Client(), Client()
        for client in (here, elsewhere):
            client.force_login(person)
            assert client.get(path).status_code == 200
        page = here.post("/account/sessions/", follow=True).content.decode()
        assert "Signed out everywhere else." in page
        assert elsewhere.get(path).status_code == 302
        assert here.get(path).status_code == 200
        person.refresh_from_db()
        new.force_login(person)
        assert [one.get(path).status_code for one in (new, here)] == [200, 200]
        entry = AuditEntry.objects.across_workspaces().filter(workspace_id=None).latest("id")
        assert entry.actor_id == person.pk
        assert [*entry.details["after"]] == ["others_signed_out_at"]


def test_who_is_in_no_workspace_can_sign_out_everywhere_else() -> None:
    """SEC-461: their page lists no browser, and says why."""
    person = User.objects.create_user(email="nowhere@trellis.example", password=None)
    here, elsewhere = Client(), Client()
    for client in (here, elsewhere):
        client.force_login(person)
    page = here.get("/account/sessions/")
    assert "You are in no workspace, so no browser is listed here." in page.content.decode()
    assert here.post("/account/sessions/", {"session": str(person.pk)}).status_code == 404
    html = here.post("/account/sessions/", follow=True).content.decode()
    assert "Signed out everywhere else." in html
    statuses = [one.get("/account/sessions/").status_code for one in (here, elsewhere)]
    assert statuses == [200, 302]


def test_the_platforms_owner_sees_and_ends_their_sessions_in_any_workspace(
    tenant: Tenant, superuser: User
) -> None:
    """SEC-461: also where they are no member; nobody of the workspace is shown them."""
    here, elsewhere = Client(), Client()
    path = f"/w/{tenant.workspace.slug}/people/"
    for client in (here, elsewhere):
        client.force_login(superuser)
        client.get(path, headers={"User-Agent": FIREFOX})
    shown = here.get("/account/sessions/").context["sessions"]
    [other] = [row for row, _, is_this in shown if not is_this]
    assert len(shown) == 2
    assert superuser.email not in tenant.client("owner").get(path).content.decode()
    tenant.client("member").post("/account/sessions/", {"session": str(other.pk)})
    assert elsewhere.get(path).status_code == 200
    here.post("/account/sessions/", {"session": str(other.pk)})
    assert elsewhere.get(path).status_code == 302
