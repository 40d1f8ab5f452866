"""Files of a conversation: names, types, versions, limits, storage, and what is left when something goes."""

from __future__ import annotations

import base64
import errno
import io
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.core.files.storage import FileSystemStorage, Storage
from django.test import override_settings
from django.utils import timezone
from hypothesis import example, given
from hypothesis import strategies as st

from chat.artifacts import cleaning_up, rows, services, storage
from chat.artifacts.errors import ContentMissing, FileTooLarge, StorageUnavailable
from chat.artifacts.services import WhenTaken
from chat.files.kinds import BINARY, FileKind, find_type, kind_of
from chat.files.names import MOST_BYTES, clean_name, download_name, numbered
from chat.models import Artifact, ArtifactVersion, Conversation
from chat.services.conversations import create_conversation, erase_conversation
from chat.snapshots import read_snapshot
from chat.tasks import sweep_artifacts
from chat.values import ArtifactOrigin
from tests import factories
from tests.chat.artifacts.pictures import picture
from tests.factories import Tenant
from workspaces import restore_detection
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput, NotFound
from workspaces.models import Installation


def archive() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("x", "x")
    return out.getvalue()


PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer<<>>\n%%EOF\n"


# Names and types -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("../../x", "x"),
        ("..\\..\\evil.exe", "evil.exe"),
        ("/etc/passwd", "passwd"),
        ("a\r\nSet-Cookie: b=c", "a__Set-Cookie_ b=c"),
        ("invoice\u202egpj.exe", "invoicegpj.exe"),
        ("no\u200bte.md", "note.md"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        (".htaccess", "htaccess"),
        ("...", "file"),
        ("", "file"),
        (" note . ", "note"),
        ('a:b*?"<>|.md', "a_b______.md"),
        ("x" * 300 + ".md", "x" * 117 + ".md"),
        ("Größe 1.md", "Größe 1.md"),
    ],
)
def test_names_are_only_names(raw: str, clean: str) -> None:
    """SEC-89: paths, line breaks, hidden marks, reserved names, leading dots and length are cleaned away."""
    assert clean_name(raw) == clean


@given(st.text(max_size=400))
@example("ab" * 49 + "c d")
def test_any_name_is_safe_and_stays_what_it_is(raw: str) -> None:
    """SEC-89: whatever is given, the name fits on disks and into headers, and cleaning it again changes nothing."""
    name = clean_name(raw)
    assert 0 < len(name.encode()) <= MOST_BYTES
    assert not set(name) & set('/\\\r\n\0<>:"|?*')
    assert not name.startswith((".", " "))
    assert clean_name(name) == name
    assert clean_name(numbered(name, 12)) == numbered(name, 12)


@pytest.mark.parametrize(
    ("name", "content", "content_type", "kind"),
    [
        ("a.md", b"# Hi", "text/markdown", FileKind.MARKDOWN),
        ("a.html", b"<p>x", "text/html", FileKind.HTML),
        ("a.svg", b'<?xml version="1.0"?><svg xmlns="x"/>', "image/svg+xml", FileKind.SVG),
        ("a.svg", b"no picture", "text/plain", FileKind.TEXT),
        ("a.csv", b"a,b\n1,2", "text/csv", FileKind.CSV),
        ("a.json", b'{"a": 1}', "application/json", FileKind.JSON),
        ("a.json", b"{broken", "text/plain", FileKind.TEXT),
        ("a.py", b"print(1)", "text/plain", FileKind.CODE),
        ("a", "Grüße".encode(), "text/plain", FileKind.TEXT),
        ("a.png", b"<script>alert(1)</script>", "text/plain", FileKind.TEXT),
        ("a.html", picture(), "image/png", FileKind.IMAGE),
        ("a.jpg", picture("JPEG"), "image/jpeg", FileKind.IMAGE),
        ("a.gif", picture("GIF"), "image/gif", FileKind.IMAGE),
        ("a.webp", picture("WEBP"), "image/webp", FileKind.IMAGE),
        ("a.pdf", PDF, "application/pdf", FileKind.PDF),
        ("a.txt", b"nul\0", BINARY, FileKind.BINARY),
        ("a.txt", "Grüße".encode("utf-16"), "text/plain", FileKind.TEXT),
        ("a.csv", "Größe;Straße".encode("cp1252"), "text/csv", FileKind.CSV),
        ("a.txt", b"x" * 100_000 + "Größe".encode("cp1252"), "text/plain", FileKind.TEXT),
        ("a.txt", ("これは日本語です。" * 9_000).encode("cp932"), "text/plain", FileKind.TEXT),
        ("a.txt", "nul\0".encode("utf-16"), BINARY, FileKind.BINARY),
        ("a.txt", "Grüße".encode("utf-16-le"), BINARY, FileKind.BINARY),
        ("a.txt", b"\xff\xfeodd", BINARY, FileKind.BINARY),
        ("a.zip", archive(), BINARY, FileKind.BINARY),
        # What is two things at once is none of them.
        ("a.png", picture() + archive(), BINARY, FileKind.BINARY),
        ("a.png", picture() + b"<script>alert(1)</script>", BINARY, FileKind.BINARY),
        ("a.jpg", picture("JPEG")[:-2] + archive() + b"\xff\xd9", BINARY, FileKind.BINARY),
        ("a.gif", b"GIF89a/*<script>*/=1;", BINARY, FileKind.BINARY),
        ("a.webp", picture("WEBP") + b"<html>", BINARY, FileKind.BINARY),
        ("a.pdf", PDF + archive(), BINARY, FileKind.BINARY),
        ("a.pdf", b"%PDF-<html><script></script>%%EOF", BINARY, FileKind.BINARY),
        ("a.png", b"\x89PNG\r\n\x1a\nbroken" + picture()[-12:], BINARY, FileKind.BINARY),
    ],
)
def test_types_come_from_the_content(
    name: str, content: bytes, content_type: str, kind: FileKind
) -> None:
    """SEC-78: the name decides only among texts; what is two kinds at once is for downloading alone."""
    assert find_type(content, name) == content_type
    assert kind_of(content_type, name) is kind


@pytest.mark.parametrize(
    ("name", "content_type", "saved_as"),
    [
        ("a.html", "image/png", "a.html.png"),
        ("a.jpeg", "image/jpeg", "a.jpeg"),
        ("a.exe", "application/pdf", "a.exe.pdf"),
        ("a.html", BINARY, "a.html.bin"),
        ("a.zip", BINARY, "a.zip"),
        ("a.html", "text/html", "a.html"),
    ],
)
def test_a_saved_file_is_named_for_what_it_is(name: str, content_type: str, saved_as: str) -> None:
    """SEC-85: nothing that was found to be a picture or unknown is saved under the name of a document or program."""
    assert download_name(name, content_type) == saved_as


# Services ------------------------------------------------------------------------------------------------------------


tenant = factories.tenant


def make(tenant: Tenant, conversation: Conversation, **changes: Any) -> services.SavedFile:
    values: dict[str, Any] = {
        "name": "note.md",
        "content": b"one",
        "origin": ArtifactOrigin.EDIT,
        "actor": tenant.actor("member"),
        **changes,
    }
    return services.create_artifact(conversation=conversation, **values)


def stored_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_versions_follow_each_other_and_old_ones_come_back(
    tenant: Tenant, conversation: Conversation
) -> None:
    """Ours: each save is a version of its own; restoring makes another, and nothing is overwritten."""
    actor = tenant.actor("member")
    made = make(tenant, conversation)
    assert (made.version.number, made.version.content_type) == (1, "text/markdown")
    second = services.add_version(
        artifact=made.artifact, content=b"two", actor=actor, origin=ArtifactOrigin.EDIT, base=1
    )
    assert second.version.number == 2
    with pytest.raises(Conflict, match="version 2 in the meantime"):
        services.add_version(
            artifact=made.artifact, content=b"x", actor=actor, origin=ArtifactOrigin.EDIT, base=1
        )
    back = services.restore_version(artifact=made.artifact, number=1, actor=actor)
    assert (back.version.number, back.version.origin) == (3, "restore")
    assert [storage.read(rows.version_of(back.artifact, number).path) for number in (1, 2, 3)] == [
        b"one",
        b"two",
        b"one",
    ]
    with pytest.raises(NotFound):
        services.restore_version(artifact=made.artifact, number=9, actor=actor)


def test_each_change_is_an_event_and_the_snapshot_agrees(
    tenant: Tenant, conversation: Conversation
) -> None:
    """REL-14: a tab that heard of every change shows what a fresh snapshot holds."""
    actor = tenant.actor("member")
    values: dict[str, Any] = {}

    def hear(_conversation: Any, events: list[Any]) -> None:
        for event in events:
            row = event.as_json()["artifact"]
            values.pop(row["id"], None)
            if not row["is_deleted"]:
                values[row["id"]] = row

    with (
        patch("chat.live.recording.hub.publish", hear),
        patch("django.db.transaction.on_commit", lambda work: work()),
    ):
        first = make(tenant, conversation).artifact
        second = make(tenant, conversation, name="b.csv", content=b"a,b").artifact
        services.add_version(
            artifact=first, content=b"two", actor=actor, origin=ArtifactOrigin.EDIT
        )
        services.rename_artifact(artifact=first, name="renamed.txt", actor=actor)
        services.delete_artifact(artifact=second, actor=actor)
    snapshot = read_snapshot(conversation).artifacts
    assert snapshot == list(values.values())
    assert [(row["name"], row["version"]["number"]) for row in snapshot] == [("renamed.txt", 2)]


def test_a_deleted_file_comes_back_and_gives_its_name_away_meanwhile(
    tenant: Tenant, conversation: Conversation
) -> None:
    """Ours: delete has an undo; a name is free while its file is deleted, and numbered when both are there."""
    actor = tenant.actor("member")
    old = make(tenant, conversation).artifact
    services.delete_artifact(artifact=old, actor=actor)
    with pytest.raises(Conflict, match="deleted"):
        services.add_version(artifact=old, content=b"x", actor=actor, origin=ArtifactOrigin.EDIT)
    make(tenant, conversation)
    assert services.undelete_artifact(artifact=old, actor=actor).name == "note (2).md"
    with pytest.raises(Conflict, match="already"):
        services.rename_artifact(artifact=old, name="note.md", actor=actor)
    for name in ("  ", "notes/old.md", "notes\\old.md"):
        with pytest.raises(InvalidInput, match="name"):
            services.rename_artifact(artifact=old, name=name, actor=actor)
    renamed = services.rename_artifact(artifact=old, name="page.html", actor=actor)
    assert rows.newest_of(renamed).content_type == "text/html"


def test_a_taken_name_is_refused_numbered_or_gets_a_version(
    tenant: Tenant, conversation: Conversation
) -> None:
    """Ours: which of the three is the caller's word."""
    make(tenant, conversation)
    with pytest.raises(Conflict, match="already"):
        make(tenant, conversation, name="x/note.md")
    other = make(tenant, conversation, when_taken=WhenTaken.NUMBER)
    assert other.artifact.name == "note (2).md"
    same = make(tenant, conversation, content=b"2", when_taken=WhenTaken.ADD_VERSION)
    assert (same.artifact.name, same.version.number) == ("note.md", 2)


def test_sizes_are_limited_and_nothing_of_what_is_refused_is_left(
    tenant: Tenant, conversation: Conversation, folder: Path, settings: Any
) -> None:
    """SEC-78: one file and all files together have a limit; a refused one leaves neither row nor content."""
    small = settings.TRELLIS.model_copy(
        update={"artifact_max_bytes": 10, "artifact_conversation_max_bytes": 12}
    )
    with override_settings(TRELLIS=small):
        with pytest.raises(FileTooLarge, match="at most"):
            make(tenant, conversation, content=b"x" * 11)
        made = make(tenant, conversation, content=b"x" * 8)
        with pytest.raises(FileTooLarge, match="together"):
            make(tenant, conversation, name="b.md", content=b"x" * 8)
        services.restore_version(artifact=made.artifact, number=1, actor=tenant.actor("member"))
    assert Artifact.objects.for_workspace(tenant.workspace).count() == 1
    assert len(stored_files(folder)) == 1


def test_a_full_disk_is_said_and_shows_no_half_version(
    tenant: Tenant, conversation: Conversation, folder: Path
) -> None:
    """Ours: the disk ends in the middle of a file: a typed error, no row, and what was written is gone."""
    whole: Any = FileSystemStorage._save  # type: ignore[attr-defined]  # private in the stubs

    def full(self: Any, name: str, content: Any) -> str:
        path = whole(self, name, content)
        Path(self.path(path)).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        patch.object(FileSystemStorage, "_save", full),
        pytest.raises(StorageUnavailable, match="full"),
    ):
        make(tenant, conversation)
    assert not Artifact.objects.for_workspace(tenant.workspace).exists()
    assert not stored_files(folder)
    make(tenant, conversation)


class _Away(Storage):
    """A bucket that does not answer."""

    asked = 0

    def _save(self, _name: str, _content: Any) -> str:
        type(self).asked += 1
        raise TimeoutError

    def exists(self, _name: str) -> bool:
        return False

    def delete(self, _name: str) -> None:
        type(self).asked += 1
        raise TimeoutError


def test_a_storage_that_is_away_is_waited_for_once(
    tenant: Tenant, conversation: Conversation, settings: Any
) -> None:
    """REL-3044: each request to a bucket is given up after most of a minute, and proxies wait no longer than one."""
    away = {"artifacts": {"BACKEND": f"{__name__}._Away"}}
    with (
        override_settings(STORAGES={**settings.STORAGES, **away}),
        pytest.raises(StorageUnavailable),
    ):
        make(tenant, conversation)
    assert _Away.asked == 1


def test_content_is_on_the_disk_before_its_row(
    tenant: Tenant, conversation: Conversation, folder: Path
) -> None:
    """REL-41: the file is written and synced first, so a crash leaves an orphan and never a row without content."""
    seen: list[bool] = []

    def note(*_: Any) -> None:
        seen.append(ArtifactVersion.objects.for_workspace(tenant.workspace).exists())

    with patch("os.fsync", side_effect=note):
        made = make(tenant, conversation)
    assert seen == [False] * 4  # the file, and each folder above it
    assert (folder / made.version.path).read_bytes() == b"one"
    (folder / made.version.path).unlink()
    with pytest.raises(ContentMissing):
        storage.read(made.version.path)


def test_deleting_a_conversation_removes_its_contents_and_no_others(
    tenant: Tenant,
    conversation: Conversation,
    folder: Path,
    django_capture_on_commit_callbacks: Any,
) -> None:
    """Ours: contents go with the conversation; those that a copy of it shares stay until that goes too."""
    actor = tenant.actor("member")
    made = make(tenant, conversation)
    alone = make(tenant, conversation, name="alone.md", content=b"alone")
    copy = create_conversation(bud=conversation.bud, owner=tenant.member, actor=actor)
    services.copy_artifacts(source=conversation, target=copy)
    [kept, other] = rows.artifacts_of(copy)
    assert (kept[0].name, other[0].name) == ("note.md", "alone.md")
    services.delete_artifact(artifact=alone.artifact, actor=actor)
    # The copy loses one of the two for good.
    Artifact.objects.for_workspace(tenant.workspace).filter(pk=other[0].pk).delete()
    with django_capture_on_commit_callbacks(execute=True):
        erase_conversation(conversation=conversation, actor=actor)
    assert [path.read_bytes() for path in stored_files(folder)] == [b"one"]
    assert storage.read(kept[1].path) == storage.read(made.version.path)
    with django_capture_on_commit_callbacks(execute=True):
        erase_conversation(conversation=copy, actor=actor)
    assert not stored_files(folder)


def test_orphans_are_swept_when_they_are_old(
    tenant: Tenant, conversation: Conversation, folder: Path
) -> None:
    """REL-41, REL-3181: content without a row goes after an hour; what has a row, or may be about to get one, stays.

    After a restore nothing goes: the backup may have no row yet for what a newer one has.
    """
    made = make(tenant, conversation)
    orphan = storage.store(tenant.workspace.pk, b"orphan")
    assert sweep_artifacts() == 0
    later = timezone.now() + timedelta(hours=2)
    Installation.objects.update_or_create(defaults={"restored_at": database_now()})
    with patch("chat.artifacts.cleaning_up.timezone.now", return_value=later):
        assert sweep_artifacts() == 0
        assert restore_detection.confirm()
        assert sweep_artifacts() == 1
    assert not (folder / orphan.path).exists()
    assert storage.read(made.version.path) == b"one"


def test_a_round_that_does_not_come_to_all_contents_leaves_no_orphan_for_good(
    tenant: Tenant, conversation: Conversation, folder: Path
) -> None:
    """REL-2682: what rows name takes up a round, and the next round begins elsewhere."""
    for number in range(6):
        make(tenant, conversation, name=f"{number}.md", content=str(number).encode())
    storage.store(tenant.workspace.pk, b"orphan")
    later = timezone.now() + timedelta(hours=2)
    with (
        patch("chat.artifacts.cleaning_up.timezone.now", return_value=later),
        patch("chat.artifacts.cleaning_up.MOST_LOOKED_AT", 2),
    ):
        rounds = (cleaning_up.sweep() for _ in range(1_000))
        assert next(found for found in rounds if found) == 1
    assert len(stored_files(folder)) == 6


def test_any_storage_of_djangos_kind_will_do(
    tenant: Tenant, conversation: Conversation, settings: Any
) -> None:
    """REL-41: another class by setting: whole and partial reading, sweeping and removal go the same way."""
    elsewhere = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    with override_settings(STORAGES={**settings.STORAGES, "artifacts": elsewhere}):
        made = make(tenant, conversation, content=b"0123456789")
        assert storage.read(made.version.path) == b"0123456789"
        assert storage.read(made.version.path, 3, 4) == b"3456"
        storage.store(tenant.workspace.pk, b"orphan")
        later = timezone.now() + timedelta(hours=2)
        with patch("chat.artifacts.cleaning_up.timezone.now", return_value=later):
            assert (cleaning_up.sweep(), cleaning_up.sweep()) == (1, 0)
        storage.drop([made.version.path])
        with pytest.raises(ContentMissing):
            storage.read(made.version.path)


def test_deleted_files_are_forgotten_after_some_days(
    tenant: Tenant, conversation: Conversation, folder: Path
) -> None:
    """Ours: the undo has an end; then rows and contents go."""
    made = make(tenant, conversation)
    services.delete_artifact(artifact=made.artifact, actor=tenant.actor("member"))
    assert cleaning_up.purge_deleted() == 0
    later = timezone.now() + timedelta(days=8)
    with patch("chat.artifacts.cleaning_up.timezone.now", return_value=later):
        assert cleaning_up.sweep() == 1
    assert not Artifact.objects.for_workspace(tenant.workspace).exists()
    assert not stored_files(folder)


def test_a_large_picture_costs_no_more_than_its_limit() -> None:
    """SEC-73: a picture that would need gigabytes is not decoded, and only ever downloaded."""
    header = picture(size=(4, 4))
    bomb = header[:16] + (30_000).to_bytes(4, "big") * 2 + header[24:]
    assert find_type(bomb, "a.png") == BINARY
    assert base64.b64encode(bomb)
