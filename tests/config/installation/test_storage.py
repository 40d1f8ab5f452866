"""What the platform's owner reads of storage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from audit.models import AuditTombstone
from chat.models import DataCopy, DataCopyPart
from config.installation import sqlite_looks, storage, tables
from config.installation.sqlite_looks import FileLook
from config.installation.storage import Disk, read_storage
from config.installation.tables import TableSize, parts_of, read_database
from tests.engines import ENDLESS
from tests.factories import Tenant, UserFactory, WorkspaceFactory
from tests.platform_api import Api
from workspaces.database.time_limits import TookTooLong, at_most
from workspaces.models import Workspace

pytestmark = [pytest.mark.django_db, pytest.mark.both_engines]

URL = "/platform/state/storage/"


def keep(workspace: Workspace, size: int, number: int = 1) -> None:
    copy = DataCopy.objects.create(workspace=workspace, owner=UserFactory.create())
    for position in range(number):
        DataCopyPart.objects.create(
            workspace=workspace,
            copy=copy,
            number=position,
            path=f"{copy.pk}/{position}",
            size=size,
            sha256="0" * 64,
        )


def removed(tenant: Tenant, last: int) -> None:
    AuditTombstone.objects.create(
        chain_id=tenant.workspace.pk,
        kind=AuditTombstone.Kind.ENTRIES,
        first_seq=1,
        last_seq=last,
        reason="retention",
        made_at=timezone.now(),
        statement="{}",
        key_id="k",
        signature="s",
    )


def test_the_database_is_told_in_words(tenant: Tenant) -> None:
    """REL-1204: its size, and what of; indexes are counted with their tables."""
    found = read_database()
    assert found.engine == ("PostgreSQL" if connection.vendor == "postgresql" else "SQLite")
    assert found.size > 100_000
    assert found.is_counted
    sizes = [one.size or 0 for one in found.parts]
    of_tables = sizes[: tables.MOST_PARTS]
    assert of_tables == sorted(of_tables, reverse=True)
    assert 0 < sum(sizes) <= found.size
    is_beside = connection.vendor == "sqlite" and found.parts[-2].what.startswith("Latest changes")
    assert len(found.parts) == tables.MOST_PARTS + 1 + is_beside
    assert found.parts[-1].what == "Everything else"
    named = [name for one in found.parts for name in one.tables]
    assert len(named) == len(set(named))
    assert {"audit_auditentry", "chat_message", "workspaces_user"} <= set(named)


def test_tables_are_put_together_to_what_people_know() -> None:
    """REL-1204: the longest name that fits counts, and rows are those of the main table."""
    found = parts_of(
        {
            "chat_message": TableSize(50, 10),
            "chat_message_words_data": TableSize(500, 3),
            "chat_beside": TableSize(40, 2),
            "audit_auditentry": TableSize(300, 90),
            "audit_auditseal": TableSize(100, 90),
            "workspaces_user": TableSize(7, 1),
        }
    )
    assert [(one.what, one.size, one.rows) for one in found] == [
        ("Search index of chats", 540, None),
        ("Log entries", 400, 90),
        ("Messages", 50, 10),
        ("Everything else", 7, None),
    ]
    # Where sizes are not known, those with the most rows stand first.
    rows = parts_of({"chat_message": TableSize(None, 10), "chat_turn": TableSize(None, 30)})
    assert [(one.what, one.size, one.rows) for one in rows] == [
        ("Answers", None, 30),
        ("Messages", None, 10),
    ]
    many = parts_of({start: TableSize(1, None) for _what, (start, *_) in tables._PARTS})
    assert len(many) == tables.MOST_PARTS + 1


def test_what_takes_too_long_is_broken_off(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, root: Api
) -> None:
    """REL-1205: the statement itself, and the page says what it does not know."""
    with connection.cursor() as cursor:
        with pytest.raises(TookTooLong), at_most(0.05):
            cursor.execute(ENDLESS[connection.vendor])
        cursor.execute("SELECT 1")  # the connection and its transaction go on
        if connection.vendor == "postgresql":
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("0",)

    def break_off(seconds: float) -> None:
        raise TookTooLong

    keep(tenant.workspace, 10)
    monkeypatch.setattr(storage, "at_most", break_off)
    monkeypatch.setattr(tables, "at_most", break_off)
    monkeypatch.setattr(sqlite_looks, "pages", FileLook("pages", lambda raw: None))
    found = read_storage()
    assert not found.are_files_counted
    assert not found.database.is_counted
    assert found.database.size > 0
    assert found.workspaces == []
    text = root.client.get(URL).content.decode()
    assert "not counted" in text
    assert "could not say in time" in text
    assert root.get("storage/").json()["files"][0]["size"] is None


def test_files_are_counted_by_kind_and_workspace(tenant: Tenant) -> None:
    """REL-1204: from the rows that name them, without a look into folders that may be large."""
    other = WorkspaceFactory.create(name="Small")
    keep(tenant.workspace, 1_000, number=3)
    keep(other, 50)
    found = read_storage()
    copies = next(one for one in found.files if one.what == "Copies of people's data")
    assert (copies.number, copies.size) == (4, 3_050)
    assert [(one.name, one.number, one.size) for one in found.workspaces] == [
        (tenant.workspace.name, 3, 3_000),
        ("Small", 1, 50),
    ]
    assert found.files_size >= 3_050


def test_folders_are_looked_into_up_to_a_bound(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1204, REL-1205: backups with when the newest was made; links are not followed."""
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"data_dir": tmp_path})
    backups = tmp_path / "backups"

    def backups_there() -> storage.Files:
        return next(one for one in read_storage().files if one.what == "Backups")

    assert (backups_there().number, backups_there().size, backups_there().newest_at) == (0, 0, None)
    backups.mkdir()
    for name, size in (("a.tar.gz", 10), ("b.tar.gz", 20)):
        (backups / name).write_bytes(b"x" * size)
    os.utime(backups / "a.tar.gz", (0, 1_000_000_000))
    (backups / "link").symlink_to("/etc/hosts")
    assert (backups_there().number, backups_there().size, backups_there().is_partial) == (
        2,
        30,
        False,
    )
    newest = backups_there().newest_at
    assert newest is not None
    assert newest.year > 2001
    monkeypatch.setattr(storage, "MOST_FILES", 1)
    assert (backups_there().number, backups_there().is_partial) == (1, True)


def test_disks_say_how_much_room_is_left() -> None:
    """REL-1204: each one once, whatever is on it."""
    (*disks,) = read_storage().disks
    assert disks
    assert all(0 < one.free <= one.total for one in disks)
    full = Disk(holds="data folder", total=100 * 1024**3, free=1024**3)
    assert (full.is_low, full.used_percent) == (True, 99)
    assert not Disk(holds="data folder", total=8 * 1024**3, free=4 * 1024**3).is_low
    assert not Disk(holds="data folder", total=1000 * 1024**3, free=50 * 1024**3).is_low


def test_what_retention_removed_last_is_told(tenant: Tenant, root: Api) -> None:
    """REL-1204: with the workspace and how much."""
    assert "Retention has removed nothing yet." in root.client.get(URL).content.decode()
    removed(tenant, 1_234)
    text = root.client.get(URL).content.decode()
    assert f"Retention last removed 1,234 entries of {tenant.workspace.name}" in text
    assert root.get("storage/").json()["removal"]["entries"] == 1_234


def test_it_takes_as_many_statements_however_much_there_is(tenant: Tenant) -> None:
    """REL-1205: and names ten workspaces at most."""
    keep(tenant.workspace, 1)
    removed(tenant, 1)
    with CaptureQueriesContext(connection) as few:
        read_storage()
    for number in range(15):
        keep(WorkspaceFactory.create(), number + 2, number=2)
    with CaptureQueriesContext(connection) as many:
        found = read_storage()
    assert len(many) == len(few)
    assert len(found.workspaces) == storage.MOST_WORKSPACES
    assert found.workspaces[0].size == 32


def test_the_owner_reads_the_page(root: Api, tenant: Tenant) -> None:
    """REL-1204: with a way to each large workspace's retention, and what to do in words."""
    empty = root.client.get(URL).content.decode()
    assert "No workspace keeps files." in empty
    keep(tenant.workspace, 2 * 1024**2)
    text = root.client.get(URL).content.decode()
    assert f"/w/{tenant.workspace.slug}/audit/settings/" in text
    for words in ("Log entries", "Backups", "TRELLIS_IDLE_CONVERSATION_DAYS", "2\xa0MB"):
        assert words in text
    assert root.client.get(f"/w/{tenant.workspace.slug}/audit/settings/").status_code == 200


def test_rest_has_what_the_page_shows(root: Api, tenant: Tenant) -> None:
    """REL-1209: in bytes."""
    keep(tenant.workspace, 7)
    shown = root.get("storage/").json()
    assert shown["workspaces"][0]["size"] == 7
    assert shown["database"]["engine"] in {"SQLite", "PostgreSQL"}
    assert [one["what"] for one in shown["database"]["parts"]][-1] == "Everything else"
    assert shown["disks"][0]["free"] > 0
    assert shown["removal"] is None
