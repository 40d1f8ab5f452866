"""Entries as an XLSX file, written as it is read: in constant memory, on as many sheets as it takes.

Every cell is a text, but for what Trellis has counted or measured: people add that up, and sort by it.

Source: ECMA-376 part 1, 18.3 (sheets, rows and cells) and 22.4.2.4 (characters that XML does not know); part 2 (the archive).
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Final, Self
from xml.sax.saxutils import escape

from audit.exports.columns import COLUMNS, NUMBERS, cells_of
from workspaces.database import in_database

if TYPE_CHECKING:
    from audit.models import AuditEntry

ROWS_OF_A_SHEET: Final = 1_000_000
"""A sheet holds 1,048,576."""
BYTES_OF_A_SHEET: Final = 2**30
"""Before it is compressed; a part of an archive of the old form, which every program reads, holds twice as much."""
MEDIA_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_MOST_CHARACTERS: Final = 32_767
_UNKNOWN = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
"""What XML does not know or keep, and what would be read as one of these."""

_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_FORMATS: Final = "http://schemas.openxmlformats.org"
_SHEETS: Final = f"{_FORMATS}/spreadsheetml/2006/main"
_LINKS: Final = f"{_FORMATS}/officeDocument/2006/relationships"
_KIND: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_TYPES: Final = f"""{_XML}<Types xmlns="{_FORMATS}/package/2006/content-types">\
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>\
<Default Extension="xml" ContentType="{_KIND}.worksheet+xml"/>\
<Override PartName="/xl/workbook.xml" ContentType="{_KIND}.sheet.main+xml"/></Types>"""
_HEAD_STAYS: Final = (
    '<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft"'
    ' state="frozen"/></sheetView></sheetViews>'
)
_BEGIN: Final = f'{_XML}<worksheet xmlns="{_SHEETS}">{_HEAD_STAYS}<sheetData>'
_END: Final = "</sheetData></worksheet>"


def _names() -> list[str]:
    letters = [chr(ord("A") + number) for number in range(26)]
    return [*letters, *(first + second for first in letters for second in letters)]


_NAMES: Final = _names()[: len(COLUMNS)]
"""Of the columns: A, B … AA, AB …"""
_ARE_NUMBERS: Final = [name in NUMBERS for name in COLUMNS]


class _Written:
    """Where the archive is written; it cannot go back, so it never has to."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """There is nothing to wait for."""

    def take(self) -> bytes:
        """Give what was written since the last time."""
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


class Workbook:
    """A file that grows by batches; each gives the next bytes of it."""

    def __init__(self) -> None:
        self._out = _Written()
        self._book = zipfile.ZipFile(self._out, "w", zipfile.ZIP_DEFLATED)  # type: ignore[call-overload]  # needs no more
        self._put("[Content_Types].xml", _TYPES)
        self._put("_rels/.rels", _links([("officeDocument", "xl/workbook.xml")]))
        self._sheets = 0
        self._begin_sheet()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._sheet.close()
        self._book.close()

    def add(self, batch: Sequence[AuditEntry]) -> bytes:
        """Write some rows."""
        for entry in batch:
            if self._row > ROWS_OF_A_SHEET or self._size > BYTES_OF_A_SHEET:
                self._end_sheet()
                self._begin_sheet()
            self._write(cells_of(entry))
        return self._out.take()

    def close(self) -> bytes:
        """Write what follows the rows; nothing can be added then."""
        self._end_sheet()
        numbers = range(1, self._sheets + 1)
        sheets = "".join(
            f'<sheet name="Sheet{number}" sheetId="{number}" r:id="rId{number}"/>'
            for number in numbers
        )
        self._put(
            "xl/workbook.xml",
            f'{_XML}<workbook xmlns="{_SHEETS}" xmlns:r="{_LINKS}"><sheets>{sheets}</sheets></workbook>',
        )
        links = [("worksheet", f"worksheets/sheet{number}.xml") for number in numbers]
        self._put("xl/_rels/workbook.xml.rels", _links(links))
        self._book.close()
        return self._out.take()

    def _put(self, name: str, text: str) -> None:
        self._book.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)

    def _begin_sheet(self) -> None:
        self._sheets += 1
        part = zipfile.ZipInfo(f"xl/worksheets/sheet{self._sheets}.xml")
        part.compress_type = zipfile.ZIP_DEFLATED
        self._sheet: IO[bytes] = self._book.open(part, "w")
        self._row = self._size = 0
        self._sheet.write(_BEGIN.encode())
        self._write(COLUMNS)

    def _end_sheet(self) -> None:
        self._sheet.write(_END.encode())
        self._sheet.close()

    def _write(self, cells: Sequence[str]) -> None:
        self._row += 1
        row = self._row
        row_cells = "".join(
            f'<c r="{name}{row}"><v>{text}</v></c>'
            if is_number and text.isdecimal()
            else f'<c r="{name}{row}" t="inlineStr"><is><t xml:space="preserve">{_plain(text)}</t></is></c>'
            for name, text, is_number in zip(_NAMES, cells, _ARE_NUMBERS, strict=True)
            if text
        )
        self._size += self._sheet.write(f'<row r="{row}">{row_cells}</row>'.encode())


def _links(parts: Iterable[tuple[str, str]]) -> str:
    links = "".join(
        f'<Relationship Id="rId{number}" Type="{_LINKS}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(parts, 1)
    )
    return f'{_XML}<Relationships xmlns="{_FORMATS}/package/2006/relationships">{links}</Relationships>'


def _plain(text: str) -> str:
    text = text[:_MOST_CHARACTERS]
    return escape(_UNKNOWN.sub(lambda found: f"_x{ord(found[0]):04X}_", text))


def write_workbook(batches: Iterable[Sequence[AuditEntry]]) -> Iterator[bytes]:
    """Give the file piece by piece, for a synchronous server."""
    with Workbook() as book:
        for batch in batches:
            yield book.add(batch)
        yield book.close()


async def write_workbook_async(
    batches: AsyncIterator[Sequence[AuditEntry]],
) -> AsyncIterator[bytes]:
    """Give the same off the event loop; a reader who leaves ends it at the next batch."""
    with Workbook() as book:
        async for batch in batches:
            yield await in_database(book.add, batch)
        yield await in_database(book.close)
