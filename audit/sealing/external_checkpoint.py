"""The newest checkpoint in a file outside the database: by it a cut tail and a restored old copy are found."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop as _

from audit.proof.trellis_verify import EXTERNAL_FORMAT, fingerprint_of, is_signed
from workspaces.models import Installation
from workspaces.process.durable import sync

logger = logging.getLogger(__name__)


class CheckpointFileUnreadable(ValueError):
    """A file is there, but says nothing that can be believed."""


@dataclass(frozen=True, slots=True)
class ExternalCheckpoint:
    """What the file says."""

    statement: str
    signature: str
    number: int
    checkpoint: str
    """Hash of the checkpoint's statement."""
    installation: str
    key_id: str
    after: int = 0
    """Of a file kept aside: the newest checkpoint that the restored database had."""
    confirmation: dict[str, Any] = field(default_factory=dict)
    """Of a file kept aside: who confirmed the restore; to be checked before it is believed."""

    @property
    def as_record(self) -> dict[str, str]:
        """As the verifier takes it."""
        return {"statement": self.statement, "signature": self.signature}


def file_path() -> Path:
    """Where the file is."""
    config = settings.TRELLIS
    return Path(config.audit_checkpoint_file or config.data_dir / "audit-checkpoint.json")


def installation() -> str:
    """Which installation the database is; empty before its first start."""
    row = Installation.objects.first()
    return row.pk.hex if row is not None else ""


def is_foreign(found: ExternalCheckpoint) -> bool:
    """Whether a file is of another installation than the database says it is; the row that says so proves nothing."""
    mine = installation()
    return bool(found.installation and mine and found.installation != mine)


def read(path: Path | None = None) -> ExternalCheckpoint | None:
    """What a file says; None: there is none, or none that can be read."""
    try:
        return read_strictly(path)
    except CheckpointFileUnreadable:
        logger.warning("audit_checkpoint_file_unreadable", extra={"path": str(path or file_path())})
        return None


def read_strictly(path: Path | None = None) -> ExternalCheckpoint | None:
    """What a file says; None: there is none.

    Raises:
        CheckpointFileUnreadable: there is one, but it cannot be read, or its signature does not hold.
    """
    source = path or file_path()
    try:
        content: dict[str, Any] = json.loads(source.read_text())
        statement = json.loads(content["statement"])
        key = statement["key"]
        is_whole = (
            statement["format"] == EXTERNAL_FORMAT
            and fingerprint_of(base64.b64decode(key["public"], validate=True))[:16] == key["id"]
            and is_signed(content["statement"], content["signature"], key["public"])
        )
        if not is_whole:
            raise CheckpointFileUnreadable(_("not signed"))
        return ExternalCheckpoint(
            statement=content["statement"],
            signature=content["signature"],
            number=int(statement["number"]),
            checkpoint=statement["checkpoint"],
            installation=str(statement["installation"]),
            key_id=key["id"],
            after=int(content.get("after", 0)),
            confirmation=dict(content.get("confirmed") or {}),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointFileUnreadable(str(source)) from error


def write(statement: str, signature: str) -> None:
    """Put a new one in the file's place, whole or not at all.

    Raises:
        OSError: the old one is still there.
    """
    _write(file_path(), {"statement": statement, "signature": signature})


def keep_aside(found: ExternalCheckpoint, *, after: int) -> Path:
    """Keep a file that knows more than the database, under a name of its own.

    Raises:
        OSError: it is still in its place.
    """
    aside = _free(f"before-restore-{found.number}", found)
    if not aside.exists():
        _write(aside, {**found.as_record, "after": after})
    _take_away(found)
    return aside


def keep_other(found: ExternalCheckpoint) -> Path:
    """Keep a file of an installation with other keys.

    Raises:
        OSError: it is still in its place.
    """
    aside = _free(f"of-another-{found.number}", found)
    _write(aside, found.as_record)
    _take_away(found)
    return aside


def mark(aside: Path, lost: ExternalCheckpoint, confirmation: dict[str, str]) -> None:
    """Put a person's confirmation into a file kept aside.

    Raises:
        OSError: it is as it was.
    """
    _write(aside, {**lost.as_record, "after": lost.after, "confirmed": confirmation})


def _free(ending: str, found: ExternalCheckpoint) -> Path:
    """A name for a file kept aside under which no other one lies."""
    path = file_path()
    aside = path.with_name(f"{path.name}.{ending}")
    for taken in (aside, _explained(aside)):
        with contextlib.suppress(CheckpointFileUnreadable):
            other = read_strictly(taken)
            if other is None or other.statement == found.statement:
                continue
        digest = hashlib.sha256(found.statement.encode()).hexdigest()
        return path.with_name(f"{path.name}.{ending}-{digest[:16]}")
    return aside


def _take_away(found: ExternalCheckpoint) -> None:
    """Unless another process has put a new one in its place by now."""
    present = read()
    if present is not None and present.statement == found.statement:
        file_path().unlink(missing_ok=True)


def kept_aside() -> list[Path]:
    """Files that know of more than a restored database does, and that no statement explains yet."""
    path = file_path()
    found = path.parent.glob(f"{path.name}.before-restore-*")
    return sorted(aside for aside in found if not aside.name.endswith(".explained"))


def explain(aside: Path) -> None:
    """A signed statement speaks of it now."""
    with contextlib.suppress(FileNotFoundError):  # another process was first
        aside.replace(_explained(aside))


def _explained(aside: Path) -> Path:
    return aside.with_name(f"{aside.name}.explained")


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with new.open("w") as file:
        file.write(json.dumps(content))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync(path.parent)
