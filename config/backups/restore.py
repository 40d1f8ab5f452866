"""Bringing a backup back: everything is read and checked before the first thing is changed."""

from __future__ import annotations

import errno
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Final

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from pydantic import ValidationError

from config.backups.archive import (
    MANIFEST,
    MANIFEST_BYTES,
    STORAGES,
    BackupError,
    Manifest,
    Progress,
    default_folder,
    digest_of,
    kept_folders,
    no_progress,
    scratch_folder,
)
from config.backups.databases import (
    NAMES,
    check_dump,
    check_sqlite,
    drop_second_names,
    expect_direct_connection,
    is_empty,
    load_database,
    others_at_work,
)
from workspaces import restore_detection
from workspaces.database.migration_state import find_unknown
from workspaces.jobs.backup_notes import note_backup

_BLOCK: Final = 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """What was brought back."""

    made_at: str
    files: int
    old_database: Path | None
    """Where the SQLite database that was there is kept."""


def restore_backup(path: Path, *, replaces: bool, tell: Progress = no_progress) -> RestoreResult:
    """Put a backup in the place of what is there, then bring it to this version's tables.

    Files of conversations that are here stay; those of the backup are added.

    Args:
        path: a name alone is looked for where backups go, too.
        tell: is given each step that may take minutes.

    Raises:
        BackupError: the file is no backup, is damaged, is of another engine or a newer version; others use the database, or a
            pooler stands before it; or there is a database already and ``replaces`` is false. Nothing was changed, unless
            the text says so.
    """
    expect_direct_connection()
    data = settings.TRELLIS.data_dir
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with scratch_folder(data, ".restore-") as folder:
        drop_second_names()
        tell("Reading and checking the backup …")
        manifest = _unpack(_find(path), folder)
        database = folder / NAMES[manifest.engine]
        _check(manifest, database)
        if others := others_at_work():
            raise BackupError(
                "Trellis is still running: stop every server, worker and scheduler first."
                if connection.vendor == "sqlite"
                else f"{others} others use the database: stop every server, worker and scheduler first."
            )
        if not is_empty() and not replaces:
            raise BackupError(
                "There is a database already. Add --replace to put the backup in its place."
            )
        tell("Putting it in place …")
        # Files come first: while there is no room for them, the database is as it was.
        try:
            files = _place_files(manifest, folder)
            aside = load_database(database, replaces=replaces)
        except OSError as error:
            raise BackupError(
                f"The backup could not be put in place: {error.strerror or error}. The database that was here is unchanged, "
                "or beside its place as '….before-restore-…'."
            ) from None
    if manifest.installation:
        restore_detection.expect_at_least(manifest.installation, manifest.epoch + 1)
    tell("Bringing the tables to this version …")
    call_command("migrate", interactive=False, verbosity=0)
    note_backup(
        datetime.fromisoformat(manifest.made_at)
    )  # after what is in it, so that it does not know
    if manifest.installation:
        # Scheduled work that was missed begins with a worker, which may be there before anybody has compared numbers.
        restore_detection.note_restore()
    return RestoreResult(made_at=manifest.made_at, files=files, old_database=aside)


def _find(path: Path) -> Path:
    if path.exists():
        return path
    folder = default_folder()
    if path.name == str(path) and (folder / path).exists():
        return folder / path
    newest = sorted(folder.glob("*.tar.gz"), key=lambda found: found.stat().st_mtime)[-1:]
    hint = f" The newest backup in {folder} is {newest[0].name}." if newest else ""
    raise BackupError(f"There is no file {path}.{hint}")


def _unpack(path: Path, folder: Path) -> Manifest:
    """Write every member that the manifest names below the folder, and check each against its digest."""
    try:
        with tarfile.open(path, "r:gz") as tar:
            manifest = _read_manifest(tar)
            seen = set()
            while (info := tar.next()) is not None:
                if info.name not in manifest.members or info.name in seen or not info.isreg():
                    raise BackupError(f"{path} holds '{info.name}', which its list does not name.")
                seen.add(info.name)
                _write_member(tar, info, folder)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}:
            raise BackupError(
                f"There is no room for the contents of {path} in {folder.parent}: {error.strerror}. Nothing was changed."
            ) from None
        raise BackupError(f"{path} cannot be read as a backup: {error}.") from None
    missing = manifest.members.keys() - seen
    if missing:
        raise BackupError(f"{path} is not whole: '{sorted(missing)[0]}' is missing.")
    for name, member in manifest.members.items():
        if digest_of(folder / name) != member:
            raise BackupError(f"{path} is damaged: '{name}' is not what was put in.")
    return manifest


def _read_manifest(tar: tarfile.TarFile) -> Manifest:
    first = tar.next()
    content = tar.extractfile(first) if first and first.name == MANIFEST and first.isreg() else None
    if first is None or content is None or first.size > MANIFEST_BYTES:
        raise BackupError("This is no backup of Trellis: its list of contents is missing.")
    try:
        manifest = Manifest.model_validate_json(content.read())
    except ValidationError:
        raise BackupError(
            "This version cannot read the backup's list of contents. Use the version that made it, or a newer one."
        ) from None
    for name in manifest.members:
        _check_name(name, manifest.engine)
    return manifest


def _check_name(name: str, engine: str) -> None:
    """Raise BackupError for a path that leads elsewhere."""
    parts = PurePosixPath(name).parts
    is_file = len(parts) > 1 and parts[0] in STORAGES and ".." not in parts
    if not is_file and name != NAMES[engine]:
        raise BackupError(f"The backup names '{name}', which is no place of a backup.")


def _write_member(tar: tarfile.TarFile, info: tarfile.TarInfo, folder: Path) -> None:
    target = folder / info.name
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = tar.extractfile(info)
    assert content is not None, "a regular file has content"
    with content, target.open("xb") as file:
        target.chmod(0o600)
        shutil.copyfileobj(content, file, _BLOCK)


def _check(manifest: Manifest, database: Path) -> None:
    if manifest.engine != connection.vendor:
        raise BackupError(
            f"The backup is of {_ENGINES[manifest.engine]}, and this installation uses {_ENGINES[connection.vendor]}."
            " It comes back only to its own kind of database: "
            + ("unset" if manifest.engine == "sqlite" else "set")
            + " DATABASE_URL for that."
        )
    if database.name not in manifest.members:
        raise BackupError("The backup holds no database.")
    newer = find_unknown(
        (app, name) for app, names in manifest.migrations.items() for name in names
    )
    if newer:
        raise BackupError(
            f"The backup was made by a newer version ({newer[-1]}). Install that version, or a newer one."
        )
    (check_sqlite if manifest.engine == "sqlite" else check_dump)(database)


_ENGINES: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def _place_files(manifest: Manifest, folder: Path) -> int:
    """Move files where their storages look for them. A name belongs to one content, so what is there stays."""
    count = 0
    for storage, root in kept_folders().items():
        for name in manifest.members:
            inside = name.removeprefix(f"{storage}/")
            if inside == name:
                continue
            count += 1
            target = root / inside
            if not target.exists():
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                draft = target.with_name(".restoring")  # short, however long the file's own name is
                shutil.move(folder / name, draft)  # on another disk this takes a while
                draft.rename(target)
    return count
