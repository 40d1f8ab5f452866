"""Making a backup while people work: first the database, then the files that its rows name."""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Final, Literal, cast

from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from audit.services.spool import spool_size
from config.backups.archive import (
    MANIFEST,
    STORAGES,
    ArchiveMember,
    BackupError,
    Manifest,
    Progress,
    digest_of,
    files_below,
    kept_folders,
    no_progress,
    scratch_folder,
)
from config.backups.databases import (
    NAMES,
    database_file,
    drop_second_names,
    dump_database,
    expect_direct_connection,
)
from workspaces.jobs.backup_notes import note_backup
from workspaces.models import Installation
from workspaces.process.durable import sync
from workspaces.words.formats import file_size

_ELSEWHERE: Final = {
    "artifacts": "The files of chats (TRELLIS_ARTIFACT_STORAGE)",
    "audit_reports": "Scheduled files of the log (TRELLIS_AUDIT_REPORT_STORAGE)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupResult:
    """A backup that was made."""

    path: Path
    size: int
    files: int
    """Files of conversations and reports in it."""
    left_out: tuple[str, ...]
    """What somebody may expect in it and has to keep elsewhere, as sentences."""


def make_backup(path: Path, tell: Progress = no_progress) -> BackupResult:
    """Write a backup to a new file, readable by its owner only. The file appears whole or not at all.

    Args:
        tell: is given each step that may take minutes.

    Raises:
        BackupError: there is such a file already, something could not be copied or written, or a pooler stands before
            the database.
    """
    expect_direct_connection()
    if path.exists():
        raise BackupError(f"{path} exists already. Name a new file.")
    began_at = timezone.now()
    try:
        made = _make(path, tell)
    except OSError as error:
        raise BackupError(
            f"The backup could not be written to {path.parent}: {error.strerror or error}. Nothing is left there."
        ) from None
    note_backup(began_at)
    return made


def _make(path: Path, tell: Progress) -> BackupResult:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with scratch_folder(path.parent, ".trellis-backup-") as folder:
        drop_second_names()
        _check_room(path.parent)
        database = folder / NAMES[connection.vendor]
        tell("Copying the database …")
        dump_database(database)
        tell("Writing the file …")
        sources = {database.name: database}
        for storage, root in kept_folders().items():
            for file in files_below(root):
                sources[f"{storage}/{file.relative_to(root).as_posix()}"] = file
        draft = folder / "backup"
        files = _write(draft, sources, database.name)
        _publish(draft, path)
    sync(path.parent)
    return BackupResult(path=path, size=path.stat().st_size, files=files, left_out=_left_out())


def _check_room(folder: Path) -> None:
    """Say at once that the copy finds no room: SQLite only tells of an error of the disk, after minutes."""
    if connection.vendor != "sqlite":
        return
    needed, free = database_file().stat().st_size, shutil.disk_usage(folder).free
    if needed > free:
        raise BackupError(
            f"There is no room for the backup in {folder}. The database alone has {file_size(needed)}, and "
            f"{file_size(free)} are free there. Make room, or name a file on another disk."
        )


def _publish(draft: Path, path: Path) -> None:
    """Give the finished file its name, and overwrite nothing."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise BackupError(f"{path} exists already. Name a new file.") from None
    except OSError:
        # Network shares and USB disks often know no hard links.
        if path.exists():
            raise BackupError(f"{path} exists already. Name a new file.") from None
        draft.rename(path)


def _write(draft: Path, sources: dict[str, Path], database: str) -> int:
    """Write the tar; gives the number of files beside the database."""
    members: dict[str, ArchiveMember] = {}
    for name, source in sources.items():
        try:
            members[name] = digest_of(source)
        except FileNotFoundError:
            continue  # its conversation was deleted after the database was copied
    manifest = Manifest(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        engine=cast("Literal['sqlite', 'postgresql']", connection.vendor),
        members=members,
        migrations=_migrations(),
        **_installation(),
    )
    with (
        os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
        tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as tar,
    ):
        body = manifest.model_dump_json(indent=1).encode()
        info = tarfile.TarInfo(MANIFEST)
        info.size = len(body)
        tar.addfile(info, BytesIO(body))
        for name, member in members.items():
            _add(tar, name, sources[name], member)
        tar.close()
        file.flush()
        os.fsync(file.fileno())
    return len(members) - (database in members)


def _add(tar: tarfile.TarFile, name: str, source: Path, member: ArchiveMember) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = member.size, 0o600
    try:
        with source.open("rb") as content:
            tar.addfile(info, content)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise  # that is the disk of the backup
        raise BackupError(
            f"{name} went away or changed while it was copied. Make the backup again. ({error.strerror})"
        ) from None


def _installation() -> dict[str, str | int]:
    row = Installation.objects.first()
    return {
        "installation": row.pk.hex if row else "",
        "epoch": row.epoch if row else 0,
    }


def _migrations() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for app, name in sorted(MigrationRecorder(connection).applied_migrations()):
        found.setdefault(app, []).append(name)
    return found


def _left_out() -> tuple[str, ...]:
    parts = [
        "The keys. Keep them in another place: without them no stored password or token can be read.",
        "The audit log's checkpoint file. Copy it to where the database's administrators cannot write.",
    ]
    parts += [
        f"{_ELSEWHERE[name]}. Their storage is no folder of this machine and needs backups of its own."
        for name in sorted(set(STORAGES) - kept_folders().keys())
    ]
    if number := spool_size().files:
        parts.append(
            f"{number} files in audit-spool, which wait to be entered into the log. Make another backup once they are."
        )
    return tuple(parts)
