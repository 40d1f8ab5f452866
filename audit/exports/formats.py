"""Batches of entries as bytes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_noop

from audit.exports.cef import as_cef
from audit.exports.columns import COLUMNS, as_json, cells_of
from audit.exports.ocsf import event_of
from audit.exports.streams import (
    Check,
    Encode,
    batches,
    batches_async,
    first_batch,
    go_on,
    stream,
    stream_async,
)
from audit.exports.workbook import MEDIA_TYPE, write_workbook, write_workbook_async

if TYPE_CHECKING:
    from audit.models import AuditEntry
    from workspaces.scoping import WorkspaceQuerySet


def as_csv(batch: Sequence[AuditEntry], is_first: bool) -> bytes:
    """Write rows that spreadsheet programs show as text and never run."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    if is_first:
        out.write("\ufeff")  # otherwise Excel reads UTF-8 as something else
        writer.writerow(COLUMNS)
    for entry in batch:
        writer.writerow(cells_of(entry))
    return out.getvalue().encode()


def json_lines(object_of: Callable[[AuditEntry], Mapping[str, Any]]) -> Encode:
    """Write one JSON object a line, values as they are."""

    def encode(batch: Sequence[AuditEntry], is_first: bool) -> bytes:
        return b"".join(
            json.dumps(object_of(entry), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            for entry in batch
        )

    return encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The first entries of a file as they stand in it: as rows under a head, or as lines."""

    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = ()
    size: int | None = None
    """Of these entries in bytes, where the size of a file follows from it."""
    head_size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of file."""

    label: str
    media_type: str
    encode: Encode | None
    """How a batch is written; None: in a workbook, where batches follow from each other."""

    def stream(
        self, *parts: WorkspaceQuerySet[AuditEntry], check: Check = go_on
    ) -> Iterator[bytes]:
        """Give the file piece by piece, for a synchronous server; one part follows the other."""
        found = batches(*parts, check=check)
        return stream(found, self.encode) if self.encode else write_workbook(found)

    def sample(self, rows: WorkspaceQuerySet[AuditEntry], number: int) -> Sample:
        """Give the first entries of the file."""
        batch = first_batch(rows, number)
        written = self.encode(batch, True) if self.encode else b""
        size = len(self.encode(batch, False)) if self.encode else None
        head_size = len(written) - (size or 0)
        if self.encode in {None, as_csv}:
            return Sample(
                head=COLUMNS,
                rows=[cells_of(entry) for entry in batch],
                size=size,
                head_size=head_size,
            )
        return Sample(lines=written.decode().split("\n")[:-1], size=size, head_size=head_size)

    def stream_async(
        self, *parts: WorkspaceQuerySet[AuditEntry], check: Check = go_on
    ) -> AsyncIterator[bytes]:
        """Give the same for an asynchronous one."""
        found = batches_async(*parts, check=check)
        return stream_async(found, self.encode) if self.encode else write_workbook_async(found)


FORMATS: Mapping[str, Format] = {
    "csv": Format(
        label=gettext_noop("CSV, for spreadsheets"),
        media_type="text/csv; charset=utf-8",
        encode=as_csv,
    ),
    "xlsx": Format(label=gettext_noop("XLSX, for Excel"), media_type=MEDIA_TYPE, encode=None),
    "jsonl": Format(
        label=gettext_noop("JSON lines, for programs"),
        media_type="application/x-ndjson",
        encode=json_lines(as_json),
    ),
    "ocsf.jsonl": Format(
        label=gettext_noop("OCSF 1.3, for a SIEM"),
        media_type="application/x-ndjson",
        encode=json_lines(event_of),
    ),
    "cef": Format(
        label=gettext_noop("CEF, for a SIEM"), media_type="text/plain; charset=utf-8", encode=as_cef
    ),
}
"""By extension."""
