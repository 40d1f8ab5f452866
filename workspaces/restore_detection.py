"""Finding out that the database is older than what was done with it: it was restored from a backup.

A number in the database grows every minute, and a file outside of it keeps a copy. If the file is ahead, the database
has gone back in time; then whatever would be done by itself might be done a second time.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import transaction

from workspaces.database import commit_durably, database_now, lock_until_commit
from workspaces.models import Installation

logger = logging.getLogger(__name__)

_MAKING: Final = 0x7469_6E73
BEAT_SECONDS = 60.0
"""How often the number grows: a backup has to be so much older than what is restored over to be noticed."""


@dataclass(frozen=True, slots=True)
class DetectedRestore:
    """By how much the database has gone back."""

    database_epoch: int
    known_epoch: int


def beat() -> DetectedRestore | None:
    """Let the number grow, or find that the database was restored, and note that in its row.

    It is found at each beat until `mark_settled`: a process that stops in between leaves it to the next.

    Raises:
        OSError: the file cannot be written; the number has grown all the same.
    """
    with transaction.atomic(durable=True):
        commit_durably()
        row = held_installation()
        known = _read(row.pk.hex)
        if known > row.epoch:
            row.restored_at = database_now()
            row.save()
            return DetectedRestore(row.epoch, known)
        row.epoch += 1
        row.save()
    _write(row.pk.hex, row.epoch)
    return None


def mark_settled(found: DetectedRestore) -> bool:
    """Let the number grow past what was known, in the caller's transaction; whether nobody else has."""
    row = held_installation()
    if row.epoch != found.database_epoch:
        return False
    row.epoch = found.known_epoch + 1
    row.save(update_fields=["epoch"])
    return True


def held_installation() -> Installation:
    """The one row about the installation, made where there is none; in the caller's transaction, which holds it.

    At the first start many processes look for it at one moment.
    """
    rows = Installation.objects.select_for_update()
    found = rows.first()
    if found is None:
        lock_until_commit(_MAKING)
        found = rows.first() or Installation.objects.create()
    return found


def expect_at_least(installation: str, epoch: int) -> None:
    """Note that this installation had got so far, so that a database that is older is noticed at the next start.

    Raises:
        OSError: the file cannot be written.
    """
    _write(installation, max(_read(installation), epoch))


def is_unconfirmed() -> bool:
    """Whether the database was restored, and nobody has looked at what came of it yet."""
    return restored_at() is not None


def restored_at() -> datetime | None:
    """Say when the database was found restored; None if nobody has to look."""
    return Installation.objects.values_list("restored_at", flat=True).first()


def note_restore() -> None:
    """Note that somebody else found the database restored."""
    Installation.objects.filter(restored_at__isnull=True).update(restored_at=database_now())


def confirm() -> bool:
    """Let everything go on by itself again; whether there was something to confirm."""
    return bool(Installation.objects.filter(restored_at__isnull=False).update(restored_at=None))


def _path() -> Path:
    config = settings.TRELLIS
    return Path(config.epoch_file or config.data_dir / "epoch.json")


def _read(installation: str) -> int:
    """The number that this installation had reached; 0 if the file knows another one, or none."""
    try:
        kept = json.loads(_path().read_text())
        return int(kept["epoch"]) if kept["installation"] == installation else 0
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, KeyError, TypeError):
        logger.warning("epoch_file_unreadable", exc_info=True)
        return 0


def _write(installation: str, epoch: int) -> None:
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with new.open("w") as file:
        file.write(json.dumps({"installation": installation, "epoch": epoch}))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
