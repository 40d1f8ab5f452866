"""What an installation keeps on disks, how much room is left, and which workspaces keep the most."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.core.files.storage import FileSystemStorage, storages
from django.db import connection
from django.db.models import Count, Sum
from django.utils.translation import gettext as _

from audit.models import AuditTombstone
from audit.retention.removing import REASON
from audit.services.spool import FOLDER, spool_size
from chat.models import ArtifactVersion, DataCopyPart, KnowledgeFile
from config.installation.tables import DatabaseSize, read_database
from workspaces.database.row_security import everywhere
from workspaces.database.time_limits import TookTooLong, at_most
from workspaces.models import Workspace

MOST_FILES: Final = 5_000
"""Files of one folder that are looked at; of more, it is said that there are more."""
MOST_WORKSPACES: Final = 10
SECONDS: Final = 2.0
"""How long the database may add up the files of each kind."""
LOW_SHARE: Final = 0.1
LOW_BYTES: Final = 5 * 1024**3
"""A disk with less room than both is nearly full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Files of one kind."""

    what: str
    number: int | None
    """None: they could not be counted in time."""
    size: int | None
    where: str
    is_partial: bool = False
    """There are more."""
    newest_at: datetime | None = None
    """Of backups: when the last one was made. None: there are none, or more files than are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """One disk of the machine that looks."""

    holds: str
    total: int
    free: int

    @property
    def is_low(self) -> bool:
        """Whether somebody should make room."""
        return self.free < LOW_BYTES and self.free < self.total * LOW_SHARE

    @property
    def used_percent(self) -> int:
        """How full it is."""
        return round(100 * (self.total - self.free) / self.total) if self.total else 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceFiles:
    """What one workspace keeps in files."""

    id: UUID
    name: str
    slug: str
    is_active: bool
    number: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The last time that retention removed something of a log."""

    at: datetime
    workspace: str
    """Its name; empty: it is gone, or the log is the platform's own."""
    kind: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageReport:
    """What one look found."""

    database: DatabaseSize
    disks: list[Disk]
    files: list[Files]
    workspaces: list[WorkspaceFiles]
    are_files_counted: bool
    removal: Removal | None

    @property
    def files_size(self) -> int:
        """Bytes of all files that could be counted."""
        return sum(one.size or 0 for one in self.files)


def read_storage() -> StorageReport:
    """Look once, within a few seconds at most however much there is."""
    with everywhere():
        sums = {model: _sums(model) for model in (ArtifactVersion, KnowledgeFile, DataCopyPart)}
        return StorageReport(
            database=read_database(),
            disks=_disks(),
            files=[*_files_of_rows(sums), *_files_of_folders()],
            workspaces=_workspaces(sums),
            are_files_counted=None not in sums.values(),
            removal=_removal(),
        )


_Sums = dict[UUID, tuple[int, int]]
"""Workspace → number of files and their bytes."""


def _sums(model: Any) -> _Sums | None:
    rows = model.objects.across_workspaces().order_by().values("workspace_id")
    try:
        with at_most(SECONDS):
            found = rows.annotate(number=Count("pk"), bytes=Sum("size"))
            return {one["workspace_id"]: (one["number"], one["bytes"] or 0) for one in found}
    except TookTooLong:
        return None


def _files_of_rows(sums: Mapping[Any, _Sums | None]) -> Iterator[Files]:
    names = {
        ArtifactVersion: _("Files of chats, with all their versions"),
        KnowledgeFile: _("Knowledge files of buds"),
        DataCopyPart: _("Copies of people's data"),
    }
    folder = _folder_of("artifacts")
    where = str(folder) if folder is not None else _("in the storage that the settings name")
    for model, what in names.items():
        found = sums[model]
        yield Files(
            what=what,
            number=sum(number for number, _size in found.values()) if found is not None else None,
            size=sum(size for _number, size in found.values()) if found is not None else None,
            where=where,
        )


def _files_of_folders() -> Iterator[Files]:
    """What no row names: few files, each looked at."""
    data = Path(settings.TRELLIS.data_dir)
    folders = {
        _("Scheduled exports of the log"): _folder_of("audit_reports"),
        _("Backups"): data / "backups",
    }
    if settings.TRELLIS.email_host is None:
        folders[_("Mails, written to files")] = Path(settings.EMAIL_FILE_PATH)
    for what, folder in folders.items():
        if folder is None:
            elsewhere = _("in the storage that the settings name")
            yield Files(what=what, number=None, size=None, where=elsewhere)
            continue
        number, size, newest, is_partial = _look_into(folder)
        is_backup = folder == data / "backups"
        yield Files(
            what=what,
            number=number,
            size=size,
            where=str(folder),
            is_partial=is_partial,
            newest_at=newest if is_backup and not is_partial else None,
        )
    spool = spool_size()
    yield Files(
        what=_("Log entries that wait for the database"),
        number=spool.files,
        size=spool.size_bytes,
        where=str(data / FOLDER),
    )


def _folder_of(storage: str) -> Path | None:
    """Where a storage keeps its files; None: not on this machine."""
    found = storages[storage]
    return Path(found.location) if isinstance(found, FileSystemStorage) else None


def _look_into(folder: Path) -> tuple[int, int, datetime | None, bool]:
    """Number and bytes of files below, when the newest was written, and whether there are more."""
    number, size, newest = 0, 0, 0.0
    for one in _entries(folder):
        if number == MOST_FILES:
            return number, size, _moment(newest), True
        number += 1
        size += one.st_size
        newest = max(newest, one.st_mtime)
    return number, size, _moment(newest), False


def _moment(seconds: float) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def _entries(folder: Path) -> Iterator[os.stat_result]:
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for one in found:
                    if one.is_dir(follow_symlinks=False):
                        waiting.append(Path(one.path))
                    elif one.is_file(follow_symlinks=False):
                        yield one.stat(follow_symlinks=False)
        except OSError:
            continue  # not made yet, gone meanwhile, or not ours to read


def _disks() -> list[Disk]:
    """Each disk once, with what is on it."""
    places = {
        _("data folder"): Path(settings.TRELLIS.data_dir),
        _("files of chats"): _folder_of("artifacts"),
        _("scheduled exports"): _folder_of("audit_reports"),
    }
    if connection.vendor == "sqlite":
        places = {_("database"): Path(str(connection.settings_dict["NAME"])).parent, **places}
    holds: dict[int, list[str]] = {}
    usage: dict[int, Any] = {}
    for what, folder in places.items():
        there = (
            next((one for one in (folder, *folder.parents) if one.exists()), None)
            if folder
            else None
        )
        if there is None:
            continue
        try:
            device = there.stat().st_dev
            usage.setdefault(device, shutil.disk_usage(there))
        except OSError:
            continue
        holds.setdefault(device, []).append(what)
    return [
        Disk(holds=", ".join(holds[device]), total=found.total, free=found.free)
        for device, found in usage.items()
    ]


def _workspaces(sums: Mapping[Any, _Sums | None]) -> list[WorkspaceFiles]:
    sizes: Counter[UUID] = Counter()
    numbers: Counter[UUID] = Counter()
    for found in sums.values():
        for pk, (number, size) in (found or {}).items():
            numbers[pk] += number
            sizes[pk] += size
    largest = sizes.most_common(MOST_WORKSPACES)
    rows = Workspace.objects.in_bulk([pk for pk, _size in largest])
    return [
        WorkspaceFiles(
            id=pk,
            name=rows[pk].name,
            slug=rows[pk].slug,
            is_active=rows[pk].is_active,
            number=numbers[pk],
            size=size,
        )
        for pk, size in largest
        if pk in rows and size
    ]


def _removal() -> Removal | None:
    stone = AuditTombstone.objects.filter(reason=REASON).order_by("-pk").first()
    if stone is None:
        return None
    workspace = Workspace.objects.filter(pk=stone.chain_id).first()
    return Removal(
        at=stone.made_at,
        workspace=workspace.name if workspace is not None else "",
        kind=stone.kind,
        entries=stone.last_seq - stone.first_seq + 1,
    )
