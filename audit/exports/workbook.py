"""Entries as an XLSX file: every cell a text, in constant memory, on as many sheets as it takes."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from audit.exports.columns import COLUMNS, cells_of
from audit.exports.streams import batches, batches_async
from workspaces.database import in_database

if TYPE_CHECKING:
    from audit.models import AuditEntry
    from workspaces.scoping import WorkspaceQuerySet

ROWS_OF_A_SHEET: Final = 1_000_000
"""A sheet holds 1,048,576."""
MEDIA_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_MOST_CHARACTERS = 32_767
_PIECE = 256 * 1024


class Workbook:
    """A file that grows by batches, in a folder of its own that goes with it."""

    def __init__(self) -> None:
        import xlsxwriter  # few processes ever make such a file, and it takes 2 MB

        self._folder = tempfile.TemporaryDirectory(prefix="trellis-export-")
        self.path = Path(self._folder.name) / "audit.xlsx"
        self._book = xlsxwriter.Workbook(
            str(self.path),
            {
                "constant_memory": True,
                "strings_to_formulas": False,
                "strings_to_urls": False,
                "strings_to_numbers": False,
                "tmpdir": self._folder.name,
            },
        )
        self._row = 0
        self._new_sheet()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._folder.cleanup()

    def add(self, batch: Sequence[AuditEntry]) -> None:
        """Write some rows."""
        for entry in batch:
            if self._row > ROWS_OF_A_SHEET:
                self._new_sheet()
            self._write(cells_of(entry))

    def close(self) -> None:
        """Put the file together; nothing can be added then."""
        self._book.close()

    def pieces(self) -> Iterator[bytes]:
        """Read the closed file."""
        with self.path.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece

    def _new_sheet(self) -> None:
        self._sheet = self._book.add_worksheet()
        self._row = 0
        self._write(COLUMNS)

    def _write(self, cells: Sequence[str]) -> None:
        for column, text in enumerate(cells):
            if text:
                self._sheet.write_string(self._row, column, text[:_MOST_CHARACTERS])
        self._row += 1


def stream_workbook(rows: WorkspaceQuerySet[AuditEntry]) -> Iterator[bytes]:
    """Make the file and give it, for a synchronous server."""
    with Workbook() as book:
        for batch in batches(rows):
            book.add(batch)
        book.close()
        yield from book.pieces()


async def stream_workbook_async(rows: WorkspaceQuerySet[AuditEntry]) -> AsyncIterator[bytes]:
    """The same off the event loop, batch by batch; a reader who leaves ends it at the next one.

    The first piece is empty: with it the headers go out. Nothing more comes until the file is whole, which takes minutes
    for a long log, and browsers give up on an answer that does not begin.
    """
    yield b""
    with Workbook() as book:
        async for batch in batches_async(rows):
            await in_database(book.add, batch)
        await in_database(book.close)
        pieces = book.pieces()
        while piece := await in_database(next, pieces, b""):
            yield piece
