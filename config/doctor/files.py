"""What the doctor sees of the storages that files are kept in."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Final

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage, storages

from chat.artifacts.storage import artifact_storage
from chat.models import ArtifactVersion
from config.doctor.findings import DoctorFinding, failed, look, ok

_WHAT: Final = {
    "artifacts": ("files of chats", "TRELLIS_ARTIFACT_STORAGE"),
    "audit_reports": ("scheduled files of the log", "TRELLIS_AUDIT_REPORT_STORAGE"),
}
_NEWEST: Final = 20
"""Files of chats that are looked for. Where the storage is another one, or was not restored, it lacks these as well."""


def check_files(part: str, *, is_patient: bool = True) -> DoctorFinding:
    """Write a file into each storage that is no folder of this machine, read it, and remove it. Look for the newest files.

    Args:
        is_patient: false for pages, which do not wait for a storage elsewhere.
    """
    elsewhere = {
        name: storages[name] for name in _WHAT if not isinstance(storages[name], FileSystemStorage)
    }
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
    if is_patient and (missing := _missing()):
        return look(
            part,
            f"the storage for files of chats lacks {missing} of the newest {_NEWEST}",
            "Look whether TRELLIS_ARTIFACT_STORAGE and its options are those that the files were stored with. "
            "Bring back what is lost from a backup of that storage.",
        )
    kinds = dict.fromkeys(type(storage).__name__ for storage in elsewhere.values())
    return ok(part, f"in {' and '.join(kinds)}" if kinds else "in folders of this machine")


def _missing() -> int:
    """How many of the newest files of chats have a row, and no content."""
    rows = ArtifactVersion.objects.across_workspaces()
    newest = rows.order_by("-pk").values_list("pk", "path")[:_NEWEST]
    storage = artifact_storage()
    missing = [pk for pk, path in newest if not storage.exists(path)]
    return rows.filter(pk__in=missing).count()  # some may have been erased meanwhile


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
