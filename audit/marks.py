"""A keyed mark on each entry: `record()` makes it under a key that no database holds, and only marked entries are sealed."""

from __future__ import annotations

import hashlib
import hmac
import json
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from audit.models import AuditCheckpoint, AuditEntry
from audit.sealing.records import moment, record_of
from audit.verification.trellis_verify import canonical

GRACE: Final = timedelta(hours=1)
"""How long after an upgrade processes of a version without marks may still write."""
_PURPOSE: Final = b"trellis audit entry mark 1"


def mark_of(entry: AuditEntry, record: dict[str, Any] | None = None) -> str:
    """HMAC-SHA256 of what is sealed of an entry; hexadecimal.

    Args:
        record: what is sealed, where the caller has it already.
    """
    record = record_of(entry) if record is None else record
    if "ip_address" in record:  # of which databases have forms of their own
        with suppress(ValueError):
            record = {**record, "ip_address": str(ip_address(record["ip_address"]))}
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
    newest = AuditCheckpoint.objects.order_by("-number").first()
    said = _said(newest)
    if said is not None:
        return said
    return moment(now if newest is None else now + GRACE)


def are_demanded(now: datetime) -> bool:
    """Whether an entry without a mark must not be sealed any more. Signed statements say so, and nothing else."""
    newest = AuditCheckpoint.objects.order_by("-number").first()
    if newest is None:
        return True
    said = _said(newest)
    return said is not None and datetime.fromisoformat(said) <= now


def first_demanding() -> int | None:
    """The number of the checkpoint after which every entry has a mark; 0: all have. None: there is none yet."""
    newest = AuditCheckpoint.objects.order_by("-number").first()
    if newest is None:
        return 0
    said = _said(newest)
    if said is None:
        return None
    since = AuditCheckpoint.objects.filter(made_at__gte=datetime.fromisoformat(said))
    first = since.order_by("number").values_list("number", flat=True).first()
    return 0 if first == 1 else first


def _said(newest: AuditCheckpoint | None) -> str | None:
    """What the checkpoints say; a process of a version without marks may have made the newest."""
    if newest is None:
        return None
    said = _read(newest)
    if said is None:
        saying = AuditCheckpoint.objects.filter(statement__contains='"marks_from":')
        first = saying.order_by("number").first()
        said = _read(first) if first is not None else None
    return said


def _read(checkpoint: AuditCheckpoint) -> str | None:
    try:
        said = json.loads(checkpoint.statement).get("marks_from")
        return said if said and datetime.fromisoformat(said) else None
    except (ValueError, AttributeError, TypeError):
        return None  # it was altered, as verification says


@lru_cache(maxsize=8)
def _key(audit_key: bytes) -> bytes:
    # Of its own: commitments to what people send are made with the audit key itself.
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(audit_key)
