"""The bell: each person's own notices."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from audit.alerts import notices
from tests.factories import Tenant, TwoTenants

pytestmark = pytest.mark.django_db


def test_the_bell_shows_a_persons_own_lines(two_workspaces: TwoTenants) -> None:
    """SEC-01: nobody reads or clears somebody else's."""
    a, b = two_workspaces.a, two_workspaces.b
    for tenant in (a, b):
        notices.notify(
            workspace_id=tenant.workspace.pk,
            user_ids=[tenant.owner.pk, tenant.admin.pk],
            kind="alert.raised",
            title=f"<b>{tenant.workspace.slug}</b>",
            text="",
            url="/w/a/audit/alerts/",
        )
    client = a.client("owner")
    page = client.get("/w/a/audit/").content.decode()
    assert "1 unread" in page
    body = client.get("/w/a/notices/?format=json").json()
    assert body["unread"] == 1
    assert [line["title"] for line in body["notices"]] == ["<b>a</b>"]
    assert "&lt;b&gt;a" in client.get("/w/a/notices/").content.decode()
    assert client.post("/w/a/notices/read/").status_code == 200
    assert client.get("/w/a/notices/?format=json").json()["unread"] == 0
    assert a.client("admin").get("/w/a/notices/?format=json").json()["unread"] == 1
    assert client.get(f"/w/{b.workspace.slug}/notices/").status_code == 404
    assert notices.unread(b.workspace, b.owner) == 1


def test_open_pages_of_a_person_are_told_of_the_bell(tenant: Tenant) -> None:
    """Ours: only that person's, when a line comes and when all are read; and not when nothing changes."""
    with patch.object(notices, "announce") as announced:
        notices.notify(
            workspace_id=tenant.workspace.pk,
            user_ids=[tenant.owner.pk],
            kind="alert.raised",
            title="x",
            text="",
            url="",
        )
        notices.mark_read(tenant.workspace, tenant.owner)
        notices.mark_read(tenant.workspace, tenant.owner)
    nudges = [call.args[1] for call in announced.call_args_list]
    assert [nudge.kind for nudge in nudges] == ["notice.changed"] * 2
    assert {nudge.user_id for nudge in nudges} == {str(tenant.owner.pk)}


def test_opening_a_notice_marks_it_alone_as_read(two_workspaces: TwoTenants) -> None:
    """REL-916: and nobody reads somebody else's."""
    a = two_workspaces.a
    for person in (a.owner, a.admin):
        for title in ("one", "two"):
            notices.notify(
                workspace_id=a.workspace.pk,
                user_ids=[person.pk],
                kind="alert.raised",
                title=title,
                text="",
                url="",
            )
    newest, older = notices.notices_of(a.workspace, a.owner)
    client = a.client("owner")
    assert f'data-notice="{older.pk}"' in client.get("/w/a/notices/").content.decode()
    body = client.post("/w/a/notices/read/?format=json", {"notice": str(older.pk)}).json()
    assert body == {"unread": 1}
    older.refresh_from_db()
    newest.refresh_from_db()
    assert (older.read_at is not None, newest.read_at) == (True, None)
    theirs = notices.notices_of(a.workspace, a.admin)[0]
    for other in (str(theirs.pk), "nonsense"):
        client.post("/w/a/notices/read/?format=json", {"notice": other})
    assert notices.unread(a.workspace, a.admin) == 2
    assert notices.unread(a.workspace, a.owner) == 1
