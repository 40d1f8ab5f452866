"""The form of a backup: a compressed tar whose first member names, with digests, everything that follows."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

from django.conf import settings
from django.core.files.storage import FileSystemStorage, storages
from pydantic import BaseModel, ConfigDict, Field

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
MANIFEST_BYTES: Final = 256 * 1024**2
"""Some hundred bytes for each file of a conversation, so this is far above what exists."""
SCRATCH: Final = (".restore-", ".trellis-backup-")
"""How the names of folders begin that hold a database while a backup is made or brought back."""
_MARKER: Final = ".trellis-temporary"
"""A file in each of these folders; people may give folders of their own such names."""
_BLOCK: Final = 1024**2
STORAGES: Final = ("artifacts", "audit_reports")
"""Whose contents go along if they are folders here; others, such as a bucket, have backups of their own."""
_MADE: Final = re.compile(
    rf"backup|database\.(sqlite3(-wal|-shm|-journal)?|pgdump)|{'|'.join(STORAGES)}"
)
"""All that stands in such a folder, by name."""
_OLD_SECONDS: Final = 24 * 3600
"""A folder without the marker counts as left behind after so long. It may be one that is being made."""


class BackupError(Exception):
    """A backup cannot be made, read or brought back; the text is for people."""


class ArchiveMember(BaseModel):
    """One file of a backup."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(ge=0)


class Manifest(BaseModel):
    """What a backup holds, and of which installation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = FORMAT
    made_at: str
    engine: Literal["sqlite", "postgresql"]
    installation: str
    """The installation's id, as 32 hexadecimal digits; empty if it never ran."""
    epoch: int
    """The number that the database had reached; see `workspaces.restore_detection`."""
    migrations: dict[str, list[str]]
    """App → names of the migrations that the database has."""
    members: dict[str, ArchiveMember]
    """Path inside the backup → digest and size."""


def default_folder() -> Path:
    """Where a backup goes that is given no place."""
    return Path(settings.TRELLIS.data_dir / "backups")


Progress = Callable[[str], object]
"""Says to a person what is done now."""


def no_progress(step: str) -> None:
    """Say it to nobody."""


def digest_of(path: Path) -> ArchiveMember:
    """Read a file once, in blocks."""
    found, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
            size += len(block)
    return ArchiveMember(sha256=found.hexdigest(), size=size)


@contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder that goes with the block. Those that killed processes left, each with a whole database, go first."""
    for folder in {parent, settings.TRELLIS.data_dir}:
        for left in folder.glob(".*-????????"):
            if left.name.startswith(SCRATCH):
                with suppress(OSError), _lock(left):
                    if _is_left_behind(left):
                        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(dir=parent, prefix=prefix) as name, ExitStack() as held:
        with suppress(OSError):  # a share that knows no locks lets nobody delete it either
            held.enter_context(_lock(Path(name)))
        (Path(name) / _MARKER).touch()
        yield Path(name)


def _is_left_behind(folder: Path) -> bool:
    """Whether a backup or restore made it: it says so, or it is old and holds nothing but what those make."""
    if (folder / _MARKER).exists():
        return True
    if folder.name[-8:].isdecimal():
        return False  # names that Python makes up have letters; this may be somebody's own date
    is_old = folder.lstat().st_mtime < time.time() - _OLD_SECONDS
    return is_old and all(_MADE.fullmatch(inside.name) for inside in folder.iterdir())


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def kept_folders() -> dict[str, Path]:
    """The storages that are folders on this machine, by name."""
    found = {}
    for name in STORAGES:
        storage = storages[name]
        if isinstance(storage, FileSystemStorage):
            found[name] = Path(storage.location)
    return found


def files_below(folder: Path) -> Iterator[Path]:
    """Every file, in a steady order. A folder that does not exist has none."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path
