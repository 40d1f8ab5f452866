"""Copies of a person's data once they are made: told, downloaded, kept for some days, and erased."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.test import AsyncRequestFactory, TestCase
from pytest_django.fixtures import Settings

from audit.models import AuditEntry, Notice
from chat.artifacts import serving, storage
from chat.artifacts.cleaning_up import sweep
from chat.artifacts.storage import artifact_storage
from chat.models import DataCopy
from chat.services.copy_downloads import give_part
from chat.services.copy_making import make_due
from chat.services.data_copies import erase_copy, erase_old, record_download, request_copy
from chat.services.person_jobs import FORGOTTEN_DAYS
from tests.chat.importing.copies import a_chat, ask, make, parts_of
from tests.factories import Tenant, TwoTenants
from workspaces.database import database_now, in_database
from workspaces.errors import PermissionDenied
from workspaces.models import Membership
from workspaces.people.services import remove_member


def test_a_ready_copy_is_told_kept_for_days_and_erased(acme: Tenant, settings: Settings) -> None:
    """REL-1071: a line in the bell, the sweep that erases it, and no content that nobody names."""
    a_chat(acme)
    row = make(acme)
    notice = Notice.objects.for_workspace(acme.workspace).get()
    assert (notice.title, notice.url) == (
        "Your copy of your data is ready",
        "/w/acme/your-data/",
    )
    days = settings.TRELLIS.data_copy_days
    assert row.finished_at is not None
    assert row.expires_at == row.finished_at + timedelta(days=days)
    assert erase_old() == 0
    path = parts_of(row)[0].path
    DataCopy.objects.for_workspace(acme.workspace).update(expires_at=database_now())
    with TestCase.captureOnCommitCallbacks(execute=True):
        assert erase_old() == 1
    row = DataCopy.objects.for_workspace(acme.workspace).get()
    assert (row.status, row.expires_at) == ("erased", None)
    assert not artifact_storage().exists(path)
    DataCopy.objects.for_workspace(acme.workspace).update(
        updated_at=database_now() - timedelta(days=FORGOTTEN_DAYS + 1)
    )
    erase_old()
    assert not DataCopy.objects.for_workspace(acme.workspace).exists()


def test_contents_of_copies_are_no_orphans(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1071: the sweep of contents leaves a copy alone as long as its row is there."""
    a_chat(acme)
    row = make(acme)
    monkeypatch.setattr("chat.artifacts.cleaning_up.ORPHAN_HOURS", -1)
    path = parts_of(row)[0].path
    sweep()
    assert artifact_storage().exists(path)
    DataCopy.objects.for_workspace(acme.workspace).delete()
    sweep()
    assert not artifact_storage().exists(path)


def test_each_step_is_in_the_log_without_words(acme: Tenant) -> None:
    """SEC-512: who asked, that it was made, downloaded and erased, with counts."""
    a_chat(acme)
    row = make(acme)
    client = acme.client("member")
    client.get(f"/w/acme/your-data/{row.pk}/1/")
    erase_copy(row=row, actor=acme.actor("member"))
    entries = AuditEntry.objects.for_workspace(acme.workspace).filter(
        action__startswith="data_copy."
    )
    assert [one.action for one in entries.order_by("created_at")] == [
        "data_copy.requested",
        "data_copy.finished",
        "data_copy.downloaded",
        "data_copy.erased",
    ]
    for one in entries:
        assert one.actor_label == acme.member.email
        assert "Radish" not in str(one.details)


def test_only_the_person_can_download_a_copy(two_workspaces: TwoTenants) -> None:
    """SEC-511: no administrator, owner, superuser or other tenant, by page or REST, and not its parts by number."""
    mine, other = two_workspaces.a, two_workspaces.b
    a_chat(mine)
    row = make(mine)
    page = f"/w/{mine.workspace.slug}/your-data/"
    part = f"{page}{row.pk}/1/"
    for role in ("admin", "owner", "auditor"):
        client = mine.client(role)
        assert client.get(part).status_code == 404
        assert client.post(f"{page}{row.pk}/erase/").status_code == 404
        assert str(row.pk) not in client.get(page).content.decode()
    assert other.client("member").get(part).status_code in (403, 404)
    mine.admin.is_superuser = True
    mine.admin.save()
    assert mine.client("admin").get(part).status_code == 404
    with pytest.raises(PermissionDenied):
        record_download(0, 1, part=parts_of(row)[0], actor=mine.actor("admin"))
    with pytest.raises(PermissionDenied):
        erase_copy(row=row, actor=mine.actor("owner"))
    with pytest.raises(PermissionDenied):
        request_copy(workspace=mine.workspace, owner=mine.member, actor=mine.actor("admin"))
    given = mine.client("member").get(part)
    assert given.status_code == 200
    assert "no-store" in given["Cache-Control"]
    assert mine.client("member").get(f"{page}{row.pk}/2/").status_code == 404


def test_a_download_goes_on_where_it_stopped(acme: Tenant) -> None:
    """REL-1074: by ranges, which give the same bytes."""
    a_chat(acme)
    row = make(acme)
    (part,) = parts_of(row)
    url = f"/w/acme/your-data/{row.pk}/1/"
    client = acme.client("member")
    whole = b"".join(client.get(url))
    assert whole == storage.read(part.path)
    assert client.head(url)["Content-Length"] == str(part.size)
    rest = client.get(url, headers={"range": "bytes=100-"})
    assert rest.status_code == 206
    assert rest["Content-Range"] == f"bytes 100-{part.size - 1}/{part.size}"
    assert b"".join(rest) == whole[100:]
    assert client.get(url, headers={"range": f"bytes={part.size}-"}).status_code == 416


def test_the_log_says_what_was_given_of_a_copy(acme: Tenant) -> None:
    """REL-2093: one entry for each answer with bytes, with how many and from where; none for an answer without."""
    a_chat(acme)
    row = make(acme)
    (part,) = parts_of(row)
    url = f"/w/acme/your-data/{row.pk}/1/"
    client = acme.client("member")
    etag = client.get(url)["ETag"]
    head = client.head(url, headers={"range": "bytes=100-"})
    assert (head.status_code, head["Content-Length"]) == (200, str(part.size))
    assert "Content-Range" not in head
    for headers, status in (
        ({"range": "bytes=100-", "if-range": etag}, 206),
        ({"range": "bytes=100-", "if-range": '"other"'}, 200),
        ({"range": "bytes=0-9"}, 206),
        ({"range": f"bytes={part.size}-"}, 416),
        ({"if-none-match": etag}, 304),
        ({"if-match": '"other"'}, 412),
    ):
        assert client.get(url, headers=headers).status_code == status, headers
    rows = AuditEntry.objects.for_workspace(acme.workspace).filter(action="data_copy.downloaded")
    given = [(one.details["bytes"], one.details.get("offset")) for one in rows.order_by("pk")]
    size = part.size
    assert given == [(size, None), (size - 100, 100), (size, None), (10, None)]


def test_the_log_says_of_no_download_whose_content_is_missing(acme: Tenant) -> None:
    """REL-2093: nothing was given then."""
    a_chat(acme)
    row = make(acme)
    (part,) = parts_of(row)
    storage.drop([part.path])
    client = acme.client("member", raise_request_exception=False)
    assert client.get(f"/w/acme/your-data/{row.pk}/1/").status_code >= 400
    rows = AuditEntry.objects.for_workspace(acme.workspace)
    assert not rows.filter(action="data_copy.downloaded").exists()


def test_leaving_and_suspension_erase_copies(acme: Tenant) -> None:
    """SEC-513: what is ready is erased, and what is being made is not made."""
    from workspaces.people.suspending import suspend_member

    a_chat(acme)
    for end in (suspend_member, remove_member):
        row = make(acme)
        path = parts_of(row)[0].path
        later = ask(acme)
        membership = Membership.objects.for_workspace(acme.workspace).get(user=acme.member)
        with TestCase.captureOnCommitCallbacks(execute=True):
            end(membership=membership, actor=acme.actor("owner"))
        row.refresh_from_db()
        later.refresh_from_db()
        assert (row.status, later.status) == ("erased", "cancelled")
        assert not artifact_storage().exists(path)
        assert make_due() == 0
        Membership.objects.also_suspended(acme.workspace.pk).filter(user=acme.member).update(
            suspended_at=None
        )


@pytest.mark.django_db(transaction=True)
async def test_a_download_ends_when_the_copy_is_erased(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-1214: in the middle of it, as when its person leaves. Nothing more is given, and the download fails."""
    monkeypatch.setattr(serving, "_PIECE", 100)
    monkeypatch.setattr(serving, "CHECK_SECONDS", 0.0)

    def begin() -> Any:
        a_chat(acme)
        request = AsyncRequestFactory().get("/")
        return give_part(request, make(acme), 1, actor=acme.actor("member"))

    def leave() -> None:
        membership = Membership.objects.for_workspace(acme.workspace).get(user=acme.member)
        remove_member(membership=membership, actor=acme.actor("owner"))

    pieces = aiter(await in_database(begin))
    assert len(await anext(pieces)) == len(await anext(pieces)) == 100
    await in_database(leave)
    with pytest.raises(PermissionDenied):
        await anext(pieces)


def test_deleting_the_person_erases_their_copies(acme: Tenant) -> None:
    """SEC-513: the rows go with the person, and the sweep removes what no row names."""
    a_chat(acme)
    kept = parts_of(make(acme))[0].path
    acme.member.delete()
    with patch("chat.artifacts.cleaning_up.ORPHAN_HOURS", -1):
        sweep()
    assert not artifact_storage().exists(kept)


def test_the_page_and_rest_tell_how_far_it_is(acme: Tenant) -> None:
    """REL-1074: nothing yet, being made, ready with its parts; and what is wrong."""
    client, page = acme.client("member"), "/w/acme/your-data/"
    assert "You have not asked for a copy yet." in client.get(page).content.decode()
    a_chat(acme)
    assert client.post(page).status_code == 302
    shown = client.get(page).content.decode()
    assert "Waiting to be made." in shown
    assert "A copy of your data is being made" in client.post(page, follow=True).content.decode()
    row = DataCopy.objects.for_workspace(acme.workspace).get()
    header = {"x-workspace": "acme"}
    copy_row = client.get("/api/data-copies/", headers=header).json()["results"][0]
    assert (copy_row["status"], copy_row["parts"]) == ("queued", [])
    make_due(600)
    copy_row = client.get(f"/api/data-copies/{row.pk}/", headers=header).json()
    assert (copy_row["status"], copy_row["position"], copy_row["parts"][0]["number"]) == (
        "ready",
        1,
        1,
    )
    given = client.get(f"/api/data-copies/{row.pk}/parts/1/", headers=header)
    assert given.status_code == 200, given.content
    assert b"".join(given)[:2] == b"PK"
    assert "Download (" in client.get(page).content.decode()
    assert client.post(f"/api/data-copies/{row.pk}/erase/", headers=header).status_code == 200
    assert client.post(f"/api/data-copies/{row.pk}/cancel/", headers=header).status_code == 409
