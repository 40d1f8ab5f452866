"""Batches of entries as bytes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from audit.exports.columns import COLUMNS, as_json, as_text, neutral

if TYPE_CHECKING:
    from audit.models import AuditEntry

Encode = Callable[["Sequence[AuditEntry]", bool], bytes]
"""Turns a batch into bytes; the flag is true for the first one."""


def as_csv(batch: Sequence[AuditEntry], is_first: bool) -> bytes:
    """Write rows that spreadsheet programs show as text and never run."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    if is_first:
        out.write("\ufeff")  # otherwise Excel reads UTF-8 as something else
        writer.writerow(COLUMNS)
    for entry in batch:
        writer.writerow([neutral(as_text(getattr(entry, name))) for name in COLUMNS])
    return out.getvalue().encode()


def as_jsonl(batch: Sequence[AuditEntry], is_first: bool) -> bytes:
    """Write one JSON object a line, values as they are."""
    return b"".join(
        json.dumps(as_json(entry), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        for entry in batch
    )


FORMATS: dict[str, tuple[str, str, Encode]] = {
    "csv": ("CSV, for spreadsheets", "text/csv; charset=utf-8", as_csv),
    "jsonl": ("JSON lines, for programs", "application/x-ndjson", as_jsonl),
}
"""Extension → label, media type, how a batch is written."""
