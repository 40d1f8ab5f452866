"""A keyed mark on each entry: `record()` makes it under a key that no database holds, and only marked entries are sealed."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db import DataError
from django.db.models import Exists, OuterRef, QuerySet

from audit.actions import Action
from audit.bodies import is_body_whole
from audit.errors import OtherLogKey
from audit.models import AuditBody, AuditCheckpoint, AuditEntry, AuditSeal
from audit.proof.records import moment, record_of
from audit.proof.signing import find_key
from audit.proof.trellis_verify import canonical, is_signed

GRACE: Final = timedelta(hours=1)
"""How long after an upgrade processes of a version without marks may still write."""
_PURPOSE: Final = b"trellis audit entry mark 1"
_CHECKING: Final = b"trellis audit key check 1"
_LOOKS: Final = 20
"""Checkpoints that are looked at for what they say."""
_ENDS: Final = 3
"""Entries at each end of the log: one of them may have been altered, which is another matter."""

OTHER_KEY: Final = "entries of the log were written under another TRELLIS_AUDIT_KEY"
PUT_BACK: Final = (
    "Put the log's key back and restart. Under any other key, its entries look as if Trellis had not written them."
    " If it is lost for good, run: python3 manage.py declare_keys_lost (“Lost keys” in docs/operations.md)."
)


def mark_of(entry: AuditEntry, record: dict[str, Any] | None = None) -> str:
    """HMAC-SHA256 of what is sealed of an entry; hexadecimal.

    Args:
        record: what is sealed, where the caller has it already.
    """
    record = record_of(entry) if record is None else record
    if "ip_address" in record:  # of which databases have forms of their own
        with suppress(ValueError):
            record = {**record, "ip_address": _one_form(record["ip_address"])}
    key = _key(settings.TRELLIS.audit_key_bytes)
    return hmac.new(key, canonical(record), hashlib.sha256).hexdigest()


def is_marked(
    entry: AuditEntry, record: dict[str, Any] | None = None, *, is_demanded: bool
) -> bool:
    """Whether an entry was written by `record()`; where no mark is demanded, one without passes, one with a wrong one not."""
    if not entry.mark:
        return not is_demanded
    try:
        wanted = mark_of(entry, record)
    except (ValueError, TypeError, RecursionError):
        return False  # it holds what Trellis cannot have written
    return hmac.compare_digest(str(entry.mark).encode(), wanted.encode())


def demanded_from(now: datetime) -> str:
    """From when on no entry without a mark is sealed, for the next checkpoint to say.

    At once in a new log; in one that is older than marks, after the grace.
    """
    newest = _newest()
    date = _date_in_checkpoints(newest, is_trusted=is_ours)
    if date is None:
        is_older = newest is not None and is_ours(newest)
        date = moment(now + GRACE if is_older else now)
    return date


def are_demanded(now: datetime) -> bool:
    """Whether an entry without a mark must not be sealed any more: unless what we signed says otherwise."""
    newest = _newest()
    if newest is None or not is_ours(newest):
        return True
    date = _date_in_checkpoints(newest, is_trusted=is_ours)
    return date is not None and datetime.fromisoformat(date) <= now


def stated_date() -> str | None:
    """From when on checkpoints say that marks are demanded, whoever signed them; None: none says so."""
    return _date_in_checkpoints(_newest(), is_trusted=lambda _: True)


def first_demanding() -> int | None:
    """The number of the checkpoint after which every entry has a mark; 0: all have. None: there is none yet.

    Reads what checkpoints say without their signatures, which verification checks anyway.
    """
    newest = _newest()
    if newest is None:
        return 0
    date = stated_date()
    if date is None:
        return None
    since = AuditCheckpoint.objects.filter(made_at__gte=datetime.fromisoformat(date))
    first = since.order_by("number").values_list("number", flat=True).first()
    return 0 if first == 1 else first


def key_check() -> str:
    """What tells TRELLIS_AUDIT_KEY from another one, and tells nobody what it is."""
    audit_key = settings.TRELLIS.audit_key_bytes
    return HKDF(algorithm=SHA256(), length=16, salt=None, info=_CHECKING).derive(audit_key).hex()


def stated_key_check(checkpoint: AuditCheckpoint) -> str | None:
    """Of which TRELLIS_AUDIT_KEY a checkpoint says that it is the log's; None: of none. Its signature is not looked at."""
    try:
        statement = json.loads(checkpoint.statement)
        is_older_one = statement["number"] != checkpoint.number
        stated = None if is_older_one else statement.get("audit_key")
    except (ValueError, KeyError, TypeError):
        return None
    return stated if isinstance(stated, str) else None


def states_other_key() -> bool:
    """Whether the newest checkpoint says that the log's TRELLIS_AUDIT_KEY is another than that of this process.

    Its signature is not looked at: a process with a wrong key may not know the key that signed.
    """
    newest = _newest()
    stated = stated_key_check(newest) if newest is not None else None
    return stated is not None and stated != key_check()


def refuse_other_key() -> None:
    """Let no process seal or verify under a key that is not the log's.

    Raises:
        OtherLogKey: the newest checkpoint states another one.
    """
    if states_other_key():
        raise OtherLogKey


def key_check_to_state() -> str | None:
    """What the next checkpoint says of the log's TRELLIS_AUDIT_KEY; None: nothing.

    It stays what it was, whatever key the process has that signs. Only a declared loss changes it. So a process with a
    wrong key does not make the right one look lost. The first statement needs a sealed entry that fits the key.
    """
    newest = _newest()
    if newest is not None and is_ours(newest) and (stated := stated_key_check(newest)):
        return stated
    sealed = _marked().filter(Exists(AuditSeal.objects.filter(entry_id=OuterRef("pk"))))
    try:
        is_known = _fits_one(sealed.order_by("-pk")[:_ENDS])
        return None if not is_known or is_key_other() or _are_contents_other() else key_check()
    except (ValueError, TypeError, OverflowError, RecursionError, DataError):
        return None  # an entry holds what Trellis cannot have written, as verification says


def is_key_other() -> bool:
    """Whether the log was written under another TRELLIS_AUDIT_KEY: no mark at one of its ends fits.

    Where a person has declared that a key is lost, the log of the key of now begins with the newest declaration.
    Entries without a mark tell nothing: a version without marks wrote them.
    """
    rows = _marked()
    declared = list(rows.filter(action=Action.LOG_KEY_LOST.value).order_by("-pk")[:_ENDS])
    ends = [list(rows.order_by("-pk")[:_ENDS]), declared or list(rows.order_by("pk")[:_ENDS])]
    return any(some and not _fits_one(some) for some in ends)


def _marked() -> QuerySet[AuditEntry]:
    return AuditEntry.objects.across_workspaces().filter(mark__gt="")


def _fits_one(entries: Iterable[AuditEntry]) -> bool:
    return any(is_marked(one, is_demanded=True) for one in entries)


def _are_contents_other() -> bool:
    """Whether entries of a version without marks have arguments and results, and none of these fit the key."""
    if key_loss_declared_at() is not None:
        return False  # they were written under the lost one
    rows = AuditEntry.objects.across_workspaces().filter(mark=None).exclude(body_commitment="")
    entries = rows.exclude(arguments_preview="", result_preview="").order_by("-pk")[:_LOOKS]
    bodies = AuditBody.objects.across_workspaces().in_bulk([one.pk for one in entries])
    fits = [is_body_whole(one, bodies.get(one.pk)) for one in entries]
    return bool(fits) and not any(fits)


def key_loss_declared_at() -> datetime | None:
    """When somebody declared last, under the key of now, that a key of the log is lost; None: never."""
    rows = AuditEntry.objects.across_workspaces().filter(action=Action.LOG_KEY_LOST.value)
    for one in rows.order_by("-pk")[:_ENDS]:
        if is_marked(one, is_demanded=True):
            return one.created_at
    return None


def _newest() -> AuditCheckpoint | None:
    return AuditCheckpoint.objects.order_by("-number").first()


def _date_in_checkpoints(
    newest: AuditCheckpoint | None, *, is_trusted: Callable[[AuditCheckpoint], bool]
) -> str | None:
    """What the checkpoints say; a process of a version without marks may have made the newest."""
    if newest is None:
        return None
    date = _read(newest) if is_trusted(newest) else None
    if date is not None:
        return date
    saying = AuditCheckpoint.objects.filter(statement__contains='"marks_from":').order_by("number")
    return next((date for one in saying[:_LOOKS] if is_trusted(one) and (date := _read(one))), None)


def _read(checkpoint: AuditCheckpoint) -> str | None:
    try:
        date: str | None = json.loads(checkpoint.statement).get("marks_from")
        if date is not None:
            datetime.fromisoformat(date)
        return date
    except (ValueError, AttributeError, TypeError):
        return None  # it was altered, as verification says


def is_ours(checkpoint: AuditCheckpoint) -> bool:
    """Whether one of this installation's keys signed it; a row by itself proves nothing."""
    try:
        key = find_key(json.loads(checkpoint.statement)["key"]["id"])
    except (ValueError, KeyError, TypeError):
        return False
    return key is not None and is_signed(checkpoint.statement, checkpoint.signature, key.public)


@lru_cache(maxsize=1024)
def _one_form(address: str) -> str:
    return str(ip_address(address))


@lru_cache(maxsize=8)
def _key(audit_key: bytes) -> bytes:
    # Of its own: commitments to what people send are made with the audit key itself.
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(audit_key)
