"""What the doctor sees of the storages that files are kept in."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Final

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage, storages

from config.doctor.findings import DoctorFinding, failed, ok

_WHAT: Final = {
    "artifacts": ("files of chats", "TRELLIS_ARTIFACT_STORAGE"),
    "audit_reports": ("scheduled files of the log", "TRELLIS_AUDIT_REPORT_STORAGE"),
}


def check_files(part: str, *, is_patient: bool = True) -> DoctorFinding:
    """Write a file into each storage that is no folder of this machine, read it, and remove it.

    Args:
        is_patient: false for pages, which do not wait for a storage elsewhere.
    """
    elsewhere = {
        name: storages[name] for name in _WHAT if not isinstance(storages[name], FileSystemStorage)
    }
    if not elsewhere:
        return ok(part, "in folders of this machine")
    for name, storage in elsewhere.items() if is_patient else ():
        what, setting = _WHAT[name]
        try:
            _write_and_read(storage)
        except Exception as error:  # noqa: BLE001  each backend has failures of its own
            return failed(
                part,
                f"the storage for {what} cannot be used ({type(error).__name__})",
                f"Look whether it runs and this machine reaches it, and correct {setting} and {setting}_OPTIONS.",
            )
    kinds = dict.fromkeys(type(storage).__name__ for storage in elsewhere.values())
    return ok(part, f"in {' and '.join(kinds)}")


def _write_and_read(storage: Storage) -> None:
    content = secrets.token_bytes(16)
    name = storage.save(f"write-proof-{content.hex()}", ContentFile(content))
    try:
        with storage.open(name) as file:
            if file.read() != content:
                raise OSError("another content was read than was written")
    except BaseException:
        with suppress(Exception):
            storage.delete(name)
        raise
    storage.delete(name)
