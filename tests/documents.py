"""Small documents of each kind, made by hand or by the libraries that people's programs use."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence

import openpyxl
import pptx
from PIL import Image

_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def pdf(pages: Sequence[str]) -> bytes:
    """A PDF with one line of text on each page."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        _CATALOG,
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for at, text in enumerate(pages):
        words = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            b"/Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>" % (5 + 2 * at),
            _stream(words),
        ]
    return _pdf_of(objects)


def pdf_whose_pages_loop() -> bytes:
    """Its tree of pages has itself as both of its branches."""
    return _pdf_of([_CATALOG, b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 1000000 >>"])


def pdf_whose_tables_loop() -> bytes:
    """Its table of objects names itself as the one before it."""
    return _pdf_of([_CATALOG, *_one_page(b"", b"")], is_its_own_past=True)


def pdf_that_draws_itself() -> bytes:
    """A drawing on its page is made of itself, twice."""
    drawing = _drawing(5, b"BT /F1 12 Tf 72 720 Td (again) Tj ET /Again Do /Again Do")
    return _pdf_of([_CATALOG, *_one_page(b"/XObject << /Again 5 0 R >>", b"/Again Do"), drawing])


def pdf_of_a_thousand_million_words(levels: int = 9) -> bytes:
    """Each drawing on its page is made of ten of the next one, and the last one says something."""
    ten = b" ".join([b"/Again Do"] * 10)
    last = _drawing(5 + levels, b"BT /F1 12 Tf 72 720 Td (word) Tj ET")
    drawings = [*(_drawing(6 + at, ten) for at in range(levels)), last]
    return _pdf_of([_CATALOG, *_one_page(b"/XObject << /Again 5 0 R >>", b"/Again Do"), *drawings])


_CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"


def _one_page(resources: bytes, content: bytes) -> list[bytes]:
    return [
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << %s >> /Contents 4 0 R >>"
        % resources,
        _stream(content),
    ]


def _drawing(other: int, content: bytes) -> bytes:
    """One that may use another one, by its number."""
    font = b"/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
    resources = b"/Resources << /XObject << /Again %d 0 R >> %s >>" % (other, font)
    return _stream(content, b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] " + resources)


def _stream(content: bytes, head: bytes = b"") -> bytes:
    return b"<< %s /Length %d >>\nstream\n%s\nendstream" % (head, len(content), content)


def _pdf_of(objects: Sequence[bytes], *, is_its_own_past: bool = False) -> bytes:
    """A file of these objects. Source: ISO 32000-1, section 7.5."""
    out, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    past = b"/Prev %d " % len(out) if is_its_own_past else b""
    return (
        out
        + b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
        + b"trailer << /Size %d /Root 1 0 R %s>>\nstartxref\n%d\n%%%%EOF\n" % (size, past, len(out))
    )


def docx(heading: str, text: str) -> bytes:
    """A Word document with one heading and one paragraph."""
    main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{_WORD}.document.main+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
            'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
            'Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{main}"><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
            f"<w:r><w:t>{heading}</w:t></w:r></w:p><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>",
        }
    )


def xlsx(title: str, rows: Sequence[Sequence[object]]) -> bytes:
    """A workbook with one sheet."""
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet(title)
    for row in rows:
        sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def xlsx_with_a_gap() -> bytes:
    """A workbook whose second value stands in the last cell that a sheet can have."""
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<dimension ref="A1:XFD1048576"/><sheetData>'
        '<row r="1"><c r="A1"><v>11</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
        "</sheetData></worksheet>"
    )
    with zipfile.ZipFile(io.BytesIO(xlsx("Gap", [[1]]))) as book:
        entries = {name: book.read(name) for name in book.namelist()}
    return archive({**entries, "xl/worksheets/sheet1.xml": sheet})


def slides(title: str, text: str) -> bytes:
    """A presentation with one slide."""
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[1])
    slide.shapes.title.text = title
    slide.placeholders[1].text = text
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def epub(heading: str, text: str) -> bytes:
    """A book with one chapter."""
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="book/content.opf"/></rootfiles></container>',
            "book/content.opf": '<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
            '<item id="one" href="one.xhtml"/></manifest><spine><itemref idref="one"/></spine></package>',
            "book/one.xhtml": f"<html><body><h1>{heading}</h1><p>{text}</p></body></html>",
        }
    )


def archive(entries: Mapping[str, str | bytes]) -> bytes:
    """A ZIP archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries.items():
            made.writestr(name, content)
    return out.getvalue()


def png(width: int = 40, height: int = 30, color: str = "red") -> bytes:
    """A picture of one color."""
    out = io.BytesIO()
    Image.new("RGB", (width, height), color).save(out, "PNG")
    return out.getvalue()


def png_that_claims(side: int) -> bytes:
    """A whole PNG, whose head tells of a square of this size."""
    content = bytearray(png(1, 1))
    content[16:24] = side.to_bytes(4, "big") * 2
    content[29:33] = zlib.crc32(content[12:29]).to_bytes(4, "big")
    return bytes(content)
