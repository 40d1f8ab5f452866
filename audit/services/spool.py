"""Where entries wait that the database could not take: a synced file of this machine, entered in order later.

For what has happened already and can no longer be refused: how a call ended, and that one was refused because the
log could not be written. Each line carries a keyed digest; one that was torn or altered is not entered, and its loss
is declared by an entry of its own.
"""

from __future__ import annotations

import base64
import fcntl
import json
import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from typing import Any, Final, TypeVar

from django.conf import settings
from django.db import DatabaseError, models, transaction
from uuid_utils.compat import uuid7

from audit.actions import Action
from audit.bodies.commitments import commit_to
from audit.models import AuditBody, AuditEntry
from audit.policies import DEFAULT, last_policy_of
from audit.proof.marks import states_other_key
from audit.services.recording import EntryDraft, drafted, is_call_open, record, was_recorded, write
from workspaces.actors import Actor, Source
from workspaces.database import is_unavailable
from workspaces.process.durable import sync
from workspaces.secrets import EncryptedTextField, Secret

logger = logging.getLogger(__name__)

FOLDER: Final = "audit-spool"
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of all files together; what comes on top is lost, and said to be."""
_BATCH: Final = 200

_Row = TypeVar("_Row", bound=models.Model)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolSize:
    """What waits to be entered, of all processes that share the folder."""

    files: int
    size_bytes: int


def spool(draft: EntryDraft) -> bool:
    """Keep an entry for later; it is on the disk when this returns. Whether it could be kept."""
    entry, body = drafted(draft, last_policy_of(draft.workspace_id) or DEFAULT)
    line = _line_of(entry, body)
    kept = _own.append(line)
    if kept:
        logger.warning("audit_entry_spooled", extra={"action": draft.action.value})
    else:
        logger.error("audit_entry_lost", extra={"action": draft.action.value})
    return kept


def spool_size() -> SpoolSize:
    """How much waits."""
    sizes = [_size(path) for path in _files()]
    return SpoolSize(files=len(sizes), size_bytes=sum(sizes))


def replay() -> int:
    """Enter what waits, oldest file first; gives how many entries were written.

    Files that another process is writing are its own to enter. May be repeated after a crash: an entry that is there
    already is not written twice, and the end of a call that has ended is not either.

    A process with another TRELLIS_AUDIT_KEY enters nothing: to it, what others kept looks altered.

    Raises:
        DatabaseError: it is still away; what was not entered stays.
    """
    paths = list(_files())
    if paths and states_other_key():
        return 0
    _own.hand_over()
    number = 0
    for path in paths:
        try:
            number += _replay_file(path)
        except FileNotFoundError:
            continue  # another process was first
        except OSError:
            logger.exception("a file of the spool cannot be read", extra={"file": path.name})
    _own.declare_lost()
    return number


def _replay_file(path: Path) -> int:
    with path.open("rb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        if os.fstat(file.fileno()).st_nlink == 0:
            return 0
        number = _enter_all(file.read())
        path.unlink(missing_ok=True)
    return number


def _folder() -> Path:
    folder: Path = settings.TRELLIS.data_dir / FOLDER
    return folder


def _files() -> Iterator[Path]:
    folder = _folder()
    return iter(sorted(folder.glob("*.jsonl"))) if folder.is_dir() else iter(())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # entered meanwhile
        return 0


class _OwnFile:
    """This process's file: made at the first entry, locked as long as it lives, gone when all is entered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handle: int | None = None
        self.lost = 0

    def append(self, line: bytes) -> bool:
        with self._lock:
            try:
                self._append(line)
            except OSError:
                logger.exception("the spool cannot be written")
                self.lost += 1
                return False
        return True

    def _append(self, line: bytes) -> None:
        if spool_size().size_bytes + len(line) > MOST_BYTES:
            raise OSError("the spool is full")
        handle = self._opened()
        end = os.lseek(handle, 0, os.SEEK_END)
        try:
            written = os.write(handle, line)
            if written != len(line):
                raise OSError("the disk is full")
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, end)  # half a line would be declared as lost a second time
            raise

    def _opened(self) -> int:
        if self._handle is None:
            folder = _folder()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = str(uuid7())
            draft = folder / f".{name}"  # nobody enters it before it is locked
            handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX)
            draft.rename(folder / f"{name}.jsonl")
            sync(folder)
            self._handle = handle
        return self._handle

    def hand_over(self) -> None:
        """Let go of the file; what comes next goes into another. Nobody who appends waits for the database."""
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def declare_lost(self) -> None:
        """Say in the log what could not be kept."""
        with self._lock:
            lost, self.lost = self.lost, 0
        if lost:
            try:
                _declare_loss({"entries": lost, "reason": "the spool was full or the disk was"})
            except BaseException:
                with self._lock:
                    self.lost += lost
                raise


_own = _OwnFile()


def _enter_all(raw: bytes) -> int:
    number, torn, refused = 0, 0, 0
    lines = [line for line in raw.split(b"\n") if line]
    for first in range(0, len(lines), _BATCH):
        with transaction.atomic():
            for line in lines[first : first + _BATCH]:
                rows = _rows_of(line)
                if rows is None:
                    torn += len(line)
                    continue
                try:
                    with transaction.atomic():
                        number += _enter(*rows)
                except DatabaseError as error:
                    if is_unavailable(error):
                        raise
                    logger.exception("an entry of the spool is refused by the database")
                    _set_aside(line)
                    refused += 1
            if first + _BATCH >= len(lines):
                if torn:
                    _declare_loss(
                        {"bytes": torn, "reason": "lines of the spool were torn or altered"}
                    )
                if refused:
                    _declare_loss({"entries": refused, "reason": "the database does not take them"})
    return number


def _set_aside(line: bytes) -> None:
    """Keep what the database does not take, for people."""
    with (_folder() / "refused.lines").open("ab") as file:
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _enter(entry: AuditEntry, body: AuditBody | None) -> int:
    if AuditEntry.unscoped.filter(pk=entry.pk).exists():
        return 0
    is_end = entry.action == Action.TOOL_CALL_FINISHED.value
    if is_end and not _is_open(entry):
        entry.action = Action.TOOL_CALL_LEARNED.value  # somebody recorded another end meanwhile
    if not is_end and _has_ended(entry):
        return 0
    write(entry, body)
    return 1


def _has_ended(entry: AuditEntry) -> bool:
    """Whether the end of this read was recorded by a commit that only seemed to fail."""
    if not entry.action.endswith(".finished") or entry.workspace_id is None:
        return False
    if entry.call_id is None:
        return False
    return was_recorded(entry.workspace_id, entry.call_id, Action(entry.action))


def _is_open(entry: AuditEntry) -> bool:
    if entry.workspace_id is None or entry.call_id is None:
        return True
    return is_call_open(entry.workspace_id, entry.call_id)


def _declare_loss(details: dict[str, Any]) -> None:
    record(
        EntryDraft(
            action=Action.LOG_LOSS,
            actor=Actor.system(label="audit log", source=Source.TASK, workspace_id=None),
            workspace_id=None,
            details=details,
        )
    )


def _line_of(entry: AuditEntry, body: AuditBody | None) -> bytes:
    if body is not None:
        AuditBody._meta.get_field("key").pre_save(
            body, add=True
        )  # no key is on the disk in the clear
    entry.details = {**entry.details, "spooled": True}
    text = json.dumps({"entry": _as_json(entry), "body": _as_json(body) if body else None})
    return f"{commit_to(text.encode())} {text}\n".encode()


def _as_json(row: models.Model) -> dict[str, Any]:
    return {
        field.attname: _plain(getattr(row, field.attname)) for field in row._meta.concrete_fields
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Secret):
        return value.sealed
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if value is None or isinstance(value, bool | int | float | str | list | dict):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _rows_of(line: bytes) -> tuple[AuditEntry, AuditBody | None] | None:
    """The rows of a line, or None if it is not whole."""
    digest, _, text = line.partition(b" ")
    if not compare_digest(digest.decode("ascii", "replace"), commit_to(text)):
        return None
    values = json.loads(text)
    body = values["body"]
    return _row_from(AuditEntry, values["entry"]), _row_from(AuditBody, body) if body else None


def _row_from(model: type[_Row], values: dict[str, Any]) -> _Row:
    row = model()
    for field in model._meta.concrete_fields:
        if field.attname in values:
            setattr(row, field.attname, _read(field, values[field.attname]))
    return row


def _read(field: models.Field[Any, Any], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(field, models.BinaryField):
        return base64.b64decode(value)
    if isinstance(field, EncryptedTextField):
        return Secret(sealed=value)
    return field.to_python(value)
