"""What people see of their own, and the platform's owner of all workspaces."""

from __future__ import annotations

import re

import pytest

from audit.actions import Action, RefusedBy
from audit.models import AuditEntry
from audit.services import EntryDraft, Ref, record
from tests.audit.reports.filling import filled
from tests.audit.views.log_pages import SECRET_ARGUMENT, a_call, url
from tests.factories import Tenant, TwoTenants, UserFactory
from workspaces.changes import tracked_change

pytestmark = pytest.mark.django_db


def test_members_see_their_own_entries_and_bodies(tenant: Tenant) -> None:
    """Ours: and nobody else's."""
    mine = a_call(tenant)
    others = record(
        EntryDraft(
            action=Action.TOOL_CALL_REFUSED,
            actor=tenant.actor("admin"),
            workspace_id=tenant.workspace.pk,
            refused_by=RefusedBy.POLICY,
            tool=Ref(id=None, name="of-the-admin"),
        )
    )
    client = tenant.client("member")
    home = f"/w/{tenant.workspace.slug}/activity/"
    page = client.get(home)
    assert {entry.actor_id for entry in page.context["entries"]} == {tenant.member.pk}
    assert b"of-the-admin" not in page.content
    assert SECRET_ARGUMENT.encode() in client.get(f"{home}{mine.pk}/").content
    assert client.get(f"{home}{others.pk}/").status_code == 404
    assert home.encode() in client.get(home).content


def test_what_changed_is_in_words(tenant: Tenant) -> None:
    """REL-3032: columns and values of a changed setting, as people call them; the column's own name is beside."""
    with tracked_change(tenant.workspace, actor=tenant.actor("owner")):
        tenant.workspace.allows_public_links = not tenant.workspace.allows_public_links
        tenant.workspace.save()
    rows = AuditEntry.objects.for_workspace(tenant.workspace)
    entry = rows.get(action=Action.CONFIG_CHANGED, actor_id=tenant.owner.pk)
    page = tenant.client("owner").get(f"/w/{tenant.workspace.slug}/activity/{entry.pk}/")
    (change,) = page.context["changes"]
    assert change.field == "Members can share chats with anyone who has the link"
    assert {change.before, change.after} == {"yes", "no"}
    assert b'title="allows_public_links"' in page.content


def test_the_platforms_page_is_its_owners_and_holds_no_bodies(two_workspaces: TwoTenants) -> None:
    """REL-721: metadata of all workspaces, bodies of none; each number leads to its entries."""
    tenant = two_workspaces.a
    for kind in (Action.TOOL_CALL_REFUSED, Action.RESOURCE_READ_REFUSED):
        draft = EntryDraft(
            action=kind,
            actor=tenant.actor("admin"),
            workspace_id=tenant.workspace.pk,
            refused_by=RefusedBy.POLICY,
        )
        record(draft)
    filled(tenant)
    for role in ("owner", "admin", "auditor"):
        assert two_workspaces.a.client(role).get("/platform/audit/").status_code == 404
    owner = UserFactory.create(email="root@example.org", is_superuser=True)
    client = two_workspaces.a.client("owner")
    client.force_login(owner, backend="allauth.account.auth_backends.AuthenticationBackend")
    page = client.get("/platform/audit/")
    assert page.status_code == 200
    assert two_workspaces.b.workspace.name in page.content.decode()
    assert SECRET_ARGUMENT.encode() not in page.content
    links = re.findall(r'class="figure-link" href="([^"]+)">(\d+)<', page.content.decode())
    log = url(two_workspaces.a)
    chosen = ("", "outcome=ended", "outcome=failed", "action=tool_call.refused")
    assert [link for link, _ in links] == [
        f"{log}?range=7d{f'&amp;{one}' if one else ''}" for one in chosen
    ]
    for link, count in links:  # of sealed entries, and the log has newer ones
        listed = client.get(link.replace("&amp;", "&"))
        assert listed.context["overview"].entries >= int(count) > 0
    entry = AuditEntry.objects.for_workspace(two_workspaces.a.workspace).exclude(
        arguments_size=None
    )[0]
    seen = client.get(url(two_workspaces.a, f"{entry.pk}/"))
    assert seen.status_code == 200
    assert SECRET_ARGUMENT.encode() not in seen.content
