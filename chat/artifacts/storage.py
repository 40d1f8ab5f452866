"""Where contents are kept: behind Django's storage interface, on the disk by default.

Each content has a name of its own, `<workspace>/<first digits>/<SHA-256>.<random>`, so nothing is ever overwritten, and
what one conversation loses no other one misses.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, Storage, storages

from chat.artifacts.errors import ContentMissing, StorageUnavailable
from workspaces.process.durable import sync

logger = logging.getLogger(__name__)


class DiskStorage(FileSystemStorage):
    """Files that are on the disk, and not only in the system's memory, once they are saved."""

    def _save(self, name: str, content: Any) -> str:
        path = Path(self.path(name))
        try:
            saved: str = super()._save(name, content)  # type: ignore[misc]  # private in the stubs
            # The file, and the folders that may have been made for it.
            for one in (path, *list(path.parents)[: saved.count("/") + 1]):
                sync(one)
        except Exception:
            path.unlink(missing_ok=True)
            raise
        return saved


@dataclass(frozen=True, slots=True)
class StoredContent:
    """Content that is in the storage, and in no row yet."""

    path: str
    sha256: str
    size: int


def artifact_storage() -> Storage:
    """The storage of the settings."""
    return storages["artifacts"]


def store(workspace_id: UUID, content: bytes) -> StoredContent:
    """Write content down, under a new name.

    Raises:
        StorageUnavailable: the disk is full, or the storage out of reach.
    """
    return store_file(workspace_id, ContentFile(content))


def store_file(workspace_id: UUID, file: File[bytes]) -> StoredContent:
    """The same for a file of any size, which is read piece by piece.

    Raises:
        StorageUnavailable: the disk is full, or the storage out of reach. What a bucket kept of it is swept later: it
            would take as long again to find out that nothing can be removed either.
    """
    digest, size = _measured(file)
    name = f"{workspace_id}/{digest[:2]}/{digest}.{secrets.token_hex(8)}"
    storage = artifact_storage()
    try:
        path = storage.save(name, file)
    except Exception as error:
        # Each backend has failures of its own; what counts is that there is no row without content.
        logger.exception("artifact_not_stored", extra={"size": size})
        raise StorageUnavailable from error
    return StoredContent(path, digest, size)


def _measured(file: File[bytes]) -> tuple[str, int]:
    """The SHA-256 of a file, and its bytes."""
    digest, size = hashlib.sha256(), 0
    for piece in file.chunks():
        digest.update(piece)
        size += len(piece)
    file.seek(0)
    return digest.hexdigest(), size


def open_content(path: str) -> File[bytes]:
    """Open content to read it piece by piece; the caller closes it.

    Raises:
        ContentMissing: it is not there, or the storage is out of reach.
    """
    try:
        opened: File[bytes] = artifact_storage().open(path, "rb")
    except Exception as error:
        logger.exception("artifact_not_read")
        raise ContentMissing from error
    return opened


def read(path: str, start: int = 0, length: int | None = None) -> bytes:
    """Read content, or a part of it.

    Raises:
        ContentMissing: it is not there, or the storage is out of reach.
    """
    try:
        with artifact_storage().open(path, "rb") as file:
            if start:
                file.seek(start)
            content: bytes = file.read() if length is None else file.read(length)
            return content
    except Exception as error:
        logger.exception("artifact_not_read")
        raise ContentMissing from error


def drop(paths: Iterable[str]) -> None:
    """Remove contents that nothing names any more; what cannot be removed now is swept later."""
    storage = artifact_storage()
    for path in paths:
        try:
            storage.delete(path)
        except Exception:
            logger.warning("artifact_not_removed", exc_info=True)
