"""Sessions are seen where they were used, and ended from there."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse

from audit.models import AuditEntry
from tests.factories import Tenant, TwoTenants
from workspaces.errors import PermissionDenied
from workspaces.models import Membership, WorkspaceSession
from workspaces.visits import device, end_sessions

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
    assert admin.get(f"{path}sessions/", headers=head).json() == []
    foreign = WorkspaceSession.objects.for_workspace(b.workspace).get(user=a.member)
    for body, status in (({}, 200), ({"session": str(foreign.pk)}, 422)):
        answer = admin.post(
            f"{path}sign-out/", json.dumps(body), content_type="application/json", headers=head
        )
        assert answer.status_code == status
    assert elsewhere.get(f"/w/{b.workspace.slug}/").status_code == 200
    enter(a, "member")
    shown = admin.get(f"{path}sessions/", headers=head).json()
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
    assert 'id="member-fault" role="alert">There is no filter “rol”.</p>' in page
    assert 'aria-describedby="member-fault"' in page
    assert "member-fault" not in client.get(f"{url}?q=admin").content.decode()
