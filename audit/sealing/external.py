"""The newest checkpoint in a file outside the database: by it a cut tail and a restored old copy are found."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from audit.verification.trellis_verify import EXTERNAL_FORMAT, is_signed
from workspaces.models import Installation

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class External:
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


def read(path: Path | None = None) -> External | None:
    """What a file says; None: there is none, or none that can be read."""
    source = path or file_path()
    try:
        content: dict[str, Any] = json.loads(source.read_text())
        statement = json.loads(content["statement"])
        key = statement["key"]
        is_whole = statement["format"] == EXTERNAL_FORMAT and is_signed(
            content["statement"], content["signature"], key["public"]
        )
        if not is_whole:
            raise ValueError("not signed")
        return External(
            statement=content["statement"],
            signature=content["signature"],
            number=int(statement["number"]),
            checkpoint=statement["checkpoint"],
            installation=statement["installation"],
            key_id=key["id"],
            after=int(content.get("after", 0)),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        logger.warning("audit_checkpoint_file_unreadable", extra={"path": str(source)})
        return None


def write(statement: str, signature: str) -> None:
    """Put a new one in the file's place, whole or not at all.

    Raises:
        OSError: the old one is still there.
    """
    _write(file_path(), {"statement": statement, "signature": signature})


def keep_aside(found: External, *, after: int) -> Path:
    """Keep a file that knows more than the database, under a name of its own.

    Raises:
        OSError: it is still in its place.
    """
    path = file_path()
    aside = path.with_name(f"{path.name}.before-restore-{found.number}")
    _write(aside, {**found.as_record, "after": after})
    path.unlink(missing_ok=True)
    return aside


def kept_aside() -> list[Path]:
    """Files that know of more than a restored database does, and that no statement explains yet."""
    path = file_path()
    found = path.parent.glob(f"{path.name}.before-restore-*")
    return sorted(aside for aside in found if not aside.name.endswith(".explained"))


def explain(aside: Path) -> None:
    """A signed statement speaks of it now."""
    aside.replace(aside.with_name(f"{aside.name}.explained"))


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with new.open("w") as file:
        file.write(json.dumps(content))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
