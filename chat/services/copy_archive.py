"""The ZIPs of a copy: each grows on this machine's disk, and is whole whenever the storage keeps it.

A part that is not full yet is fetched from the storage, goes on, and is kept under a new name. Of a process that dies
nothing is left but what was kept before.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from django.conf import settings
from django.core.files.base import File

from chat.artifacts import storage
from chat.importing.trellis_zip import MOST_ENTRIES, MOST_UNPACKED_BYTES
from chat.models import DataCopyPart

_PIECE: Final = 1024 * 1024
_PACKED_ALREADY: Final = ("image/", "video/", "audio/", "application/zip", "application/pdf")
_FIRST_YEAR: Final = 1980
_LAST_YEAR: Final = 2107


def part_bytes() -> int:
    """How large a part gets: less than an import takes, since texts are only measured before they are packed."""
    most: int = settings.TRELLIS.import_max_bytes
    return most * 9 // 10


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPart:
    """A ZIP that is in the storage, and in no row yet."""

    number: int
    stored: storage.StoredContent
    chats: int
    entries: int


class ArchivePart:
    """One ZIP that is written."""

    def __init__(self, number: int, row: DataCopyPart | None) -> None:
        """Begin it, or go on with what is kept of it.

        Raises:
            ContentMissing: the storage does not have it.
        """
        self.number = number
        self.chats = row.chats if row else 0
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  `close` does
        if row is not None:
            with storage.open_content(row.path) as kept:
                shutil.copyfileobj(kept, self._file, _PIECE)
        # Without the form for larger ones, which imports do not read.
        self._packed = zipfile.ZipFile(
            self._file, "a" if row else "w", zipfile.ZIP_DEFLATED, allowZip64=False
        )
        self._unpacked = sum(one.file_size for one in self._packed.infolist())

    @property
    def entries(self) -> int:
        """How many files are in it."""
        return len(self._packed.infolist())

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._file.tell()

    def has_room(self, size: int, entries: int = 1) -> bool:
        """Whether this much more fits, unless it is empty."""
        return (
            self.size + size <= part_bytes()
            and self._unpacked + size <= MOST_UNPACKED_BYTES // 2
            and self.entries + entries <= MOST_ENTRIES * 4 // 5
        )

    def add_text(self, name: str, pieces: Iterable[str], at: datetime) -> None:
        """Add a text that is made while it is written."""
        with self._packed.open(self._entry(name, at), "w") as entry:
            for piece in pieces:
                content = piece.encode(errors="replace")
                self._unpacked += len(content)
                entry.write(content)

    def add_json(self, name: str, value: object, at: datetime) -> None:
        """Add values, for people and programs to read."""
        self.add_text(name, [json.dumps(value, ensure_ascii=False, indent=2)], at)

    def add_content(self, name: str, content: File[bytes], content_type: str, at: datetime) -> None:
        """Add a file as it is."""
        entry = self._entry(name, at)
        if content_type.startswith(_PACKED_ALREADY):
            entry.compress_type = zipfile.ZIP_STORED
        with self._packed.open(entry, "w") as target:
            while piece := content.read(_PIECE):
                self._unpacked += len(piece)
                target.write(piece)

    def keep(self, workspace_id: UUID) -> KeptPart:
        """Have the storage keep it as it is.

        Raises:
            StorageUnavailable: the disk is full, or the storage out of reach.
        """
        entries = self.entries
        self._packed.close()
        self._file.seek(0)
        stored = storage.store_file(workspace_id, File(self._file))
        return KeptPart(number=self.number, stored=stored, chats=self.chats, entries=entries)

    def close(self) -> None:
        """Drop what is on this machine's disk."""
        self._file.close()

    @staticmethod
    def _entry(name: str, at: datetime) -> zipfile.ZipInfo:
        year = min(max(at.year, _FIRST_YEAR), _LAST_YEAR)
        when = (year, at.month, at.day, at.hour, at.minute, at.second)
        entry = zipfile.ZipInfo(name, when)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        return entry


class ArchiveParts:
    """The part that is written, and those that were filled before it in this round."""

    def __init__(
        self, workspace_id: UUID, last: DataCopyPart | None, begin: Callable[[ArchivePart], None]
    ) -> None:
        """Go on with the last part that is kept.

        Args:
            begin: writes what each new part begins with.
        """
        self.kept: list[KeptPart] = []
        self._workspace_id = workspace_id
        self._begin = begin
        self._open = ExitStack()
        self.current = self._part(last.number if last else 1, last)
        if last is None:
            begin(self.current)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()
        if error is not None:
            self.drop()

    def make_room(self, size: int, entries: int) -> None:
        """Begin the next part, if a chat of this size does not fit and the part has others."""
        if self.current.chats and not self.current.has_room(size, entries):
            self.begin_next()

    def begin_next(self) -> None:
        """Keep the part, and go on with a new one."""
        self.keep()
        self._open.close()
        self.current = self._part(self.current.number + 1, None)
        self._begin(self.current)

    def keep(self) -> None:
        """Have the storage keep the part that is written; nothing is added to it any more."""
        self.kept.append(self.current.keep(self._workspace_id))

    def drop(self) -> None:
        """Remove what was kept: no row will name it."""
        storage.drop(one.stored.path for one in self.kept)
        self.kept = []

    def _part(self, number: int, row: DataCopyPart | None) -> ArchivePart:
        part = ArchivePart(number, row)
        self._open.callback(part.close)
        return part
