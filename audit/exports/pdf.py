"""A report as a PDF file: A4, numbered pages, charts as vectors, tables whose heads repeat. Knows nothing of where its numbers come from.

Letters come from the fonts of the web app, which hold the Latin, Cyrillic and Greek scripts and Vietnamese. A file says so where
a character was left out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.utils.translation import gettext as _

from workspaces.words.formats import moment_in, whole

if TYPE_CHECKING:
    from fpdf import FPDF

    from audit.reports.report import ReportSeries

MEDIA_TYPE: Final = "application/pdf"
MOST_ROWS: Final = 100
"""Of one table; a line below says how many more there are."""
_LONGEST: Final = 300
"""Characters of a cell."""
_FONT, _CORE = "inter", "Helvetica"
_INK, _QUIET, _LINE, _HEAD = (24, 33, 29), (92, 104, 98), (217, 222, 219), (238, 242, 240)
_KINDS: Final = {
    "ok": (29, 107, 74),
    "failed": (190, 53, 47),
    "cancelled": (120, 128, 124),
    "refused": (201, 138, 23),
}
_COLOURS: Final = (
    *((29, 107, 74), (43, 103, 164), (201, 138, 23), (190, 53, 47), (118, 84, 154)),
    *((22, 133, 143), (140, 98, 57), (120, 128, 124)),
)
_CHART_HEIGHT, _LABEL_WIDTH = 48.0, 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfFigure:
    """A number at the head."""

    label: str
    value: str
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfChart:
    """Numbers over time."""

    title: str
    labels: Sequence[str]
    series: Sequence[ReportSeries]
    """Each is a line, or one part of the bars. One with a kind has its colour."""
    is_stacked: bool
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfTable:
    """Rows of text; `widths` are the columns' shares, and `right` those that hold numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    widths: Sequence[int]
    right: frozenset[int] = frozenset()
    empty: str = ""
    left_out: int = 0
    """How many more rows there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What is printed."""

    title: str
    workspace: str
    period: str
    filters: Sequence[tuple[str, str]]
    made_by: str
    made_at: datetime
    zone: tzinfo = UTC
    """In which the times of the file are written."""
    figures: Sequence[PdfFigure] = ()
    charts: Sequence[PdfChart] = ()
    tables: Sequence[PdfTable] = ()


def as_pdf(document: Document) -> bytes:
    """Give the file."""
    return _Writer(document).write()


@dataclass(slots=True)
class _Letters:
    """The fonts that have the text's characters, and what none of them has."""

    text: str
    names: list[str] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    paths: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        wanted = {ord(char) for char in self.text}
        for path, known in _fonts():
            if not self.paths or wanted & known:
                self.paths.append(path)
                wanted -= known
        if not self.paths:
            wanted = {code for code in wanted if code > 255}  # the fonts that each reader brings
        self.missing = {chr(code) for code in wanted}

    def clean(self, text: str) -> str:
        return "".join("?" if char in self.missing else char for char in _plain(text))


@lru_cache(maxsize=1)
def _fonts() -> tuple[tuple[Path, frozenset[int]], ...]:
    """Give the web app's fonts with the characters that they have, the Latin one first; none without a web build."""
    from fontTools.ttLib import TTFont

    found = sorted(
        settings.WEB_DIST.glob("inter-*-wght-normal-*.woff2"),
        key=lambda path: (not path.name.startswith("inter-latin-wght"), path.name),
    )
    return tuple((path, frozenset(TTFont(path, lazy=True).getBestCmap())) for path in found)


def _plain(text: str) -> str:
    """One line, without what moves a cursor or turns the direction of reading."""
    words = " ".join(text.split())
    shown = "".join(char for char in words if unicodedata.category(char) not in {"Cc", "Cf", "Cs"})
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def _texts(document: Document) -> Iterator[str]:
    yield from (document.title, document.workspace, document.period, document.made_by)
    for name, value in document.filters:
        yield from (name, value)
    for figure in document.figures:
        yield from (figure.label, figure.value, figure.change)
    for chart in document.charts:
        yield from (chart.title, chart.unit, *chart.labels, *(one.label for one in chart.series))
    for table in document.tables:
        yield from (table.title, table.empty, *table.head)
        for row in table.rows[:MOST_ROWS]:
            yield from row


class _Writer:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.letters = _Letters(" ".join(_plain(text) for text in _texts(document)))
        self.pdf = self._begin()

    def write(self) -> bytes:
        pdf, document = self.pdf, self.document
        pdf.add_page()
        self._text(document.title, 18)
        self._text(document.workspace, 11)
        pdf.ln(2)
        facts = [
            (_("Period"), document.period),
            (
                _("Filters"),
                "; ".join(f"{name}: {value}" for name, value in document.filters) or _("none"),
            ),
            (
                _("Made"),
                f"{moment_in(document.made_at, document.zone)} {document.zone}, {document.made_by}",
            ),
        ]
        for name, value in facts:
            self._text(f"{name}: {value}", 9, _QUIET)
        if self.letters.missing:
            text = _(
                "Characters of scripts that this file's fonts do not have are shown as “?”. The other formats have them."
            )
            self._text(text, 9, _QUIET)
        pdf.ln(4)
        self._figures()
        for chart in document.charts:
            self._chart(chart)
        for table in document.tables:
            self._table(table)
        return bytes(pdf.output())

    def _begin(self) -> FPDF:
        from fpdf import FPDF  # heavy, and few need it

        footer_of = self._footer

        class Pages(FPDF):
            def footer(self) -> None:
                footer_of()

        pdf = Pages(format="A4")
        pdf.set_margin(16)
        pdf.set_auto_page_break(auto=True, margin=20)
        for path in self.letters.paths:
            name = path.name.partition("-wght")[0]
            pdf.add_font(name, "", path)
            self.letters.names.append(name)
        pdf.set_font(self._font, size=9)
        if len(self.letters.names) > 1:
            pdf.set_fallback_fonts(self.letters.names[1:], exact_match=False)
        pdf.set_lang("en")
        pdf.set_title(self.letters.clean(self.document.title))
        pdf.set_creator("Trellis")
        pdf.set_creation_date(self.document.made_at)
        return pdf

    @property
    def _font(self) -> str:
        return self.letters.names[0] if self.letters.names else _CORE

    def _footer(self) -> None:
        pdf = self.pdf
        pdf.set_y(-14)
        pdf.set_font(self._font, size=8)
        pdf.set_text_color(*_QUIET)
        text = self.letters.clean(f"{self.document.title} · {self.document.workspace}")
        pdf.cell(pdf.epw / 2, 5, text[:80])
        numbers = _("Page %(page)s of {nb}") % {"page": pdf.page_no()}
        pdf.cell(pdf.epw / 2, 5, numbers, align="R")

    def _text(self, text: str, size: float, colour: tuple[int, int, int] = _INK) -> None:
        pdf = self.pdf
        pdf.set_font(self._font, size=size)
        pdf.set_text_color(*colour)
        pdf.multi_cell(
            0, size * 0.5, self.letters.clean(text), new_x="LMARGIN", new_y="NEXT", align="L"
        )

    def _heading(self, text: str, room: float) -> None:
        """Keep it with what follows."""
        if self.pdf.will_page_break(room):
            self.pdf.add_page()
        self.pdf.ln(4)
        self._text(text, 12)
        self.pdf.ln(1)

    def _figures(self) -> None:
        rows = [[f"{one.label}", one.value, one.change] for one in self.document.figures]
        if rows:
            head = (_("Number"), _("In this time"), _("Compared with the period before"))
            self._table(
                PdfTable(title="", head=head, rows=rows, widths=(3, 2, 4), right=frozenset({1}))
            )

    def _table(self, table: PdfTable) -> None:
        from fpdf.fonts import FontFace

        pdf = self.pdf
        if table.title:
            self._heading(table.title, 30)
        if not table.rows:
            self._text(table.empty or _("Nothing in this time."), 9, _QUIET)
            return
        pdf.set_font(self._font, size=8.5)
        pdf.set_text_color(*_INK)
        pdf.set_draw_color(*_LINE)
        pdf.set_fill_color(255)  # of cells; a chart has left its own
        align = tuple("RIGHT" if at in table.right else "LEFT" for at in range(len(table.head)))
        with pdf.table(
            col_widths=tuple(table.widths),
            text_align=align,
            line_height=5,
            padding=(0.6, 1.2),
            borders_layout="HORIZONTAL_LINES",
            headings_style=FontFace(emphasis="", fill_color=_HEAD),
        ) as drawn:
            for cells in (table.head, *table.rows[:MOST_ROWS]):
                row = drawn.row()
                for cell in cells:
                    row.cell(self.letters.clean(cell))
        left_out = max(0, len(table.rows) - MOST_ROWS) + table.left_out
        if left_out:
            text = _("%(number)s more are not in this file.") % {"number": whole(left_out)}
            self._text(text, 8.5, _QUIET)

    def _chart(self, chart: PdfChart) -> None:
        pdf = self.pdf
        self._heading(chart.title, _CHART_HEIGHT + 30)
        columns = list(zip(*(one.values for one in chart.series), strict=True))
        known = [[value or 0 for value in column] for column in columns]
        tops = [sum(column) if chart.is_stacked else max(column, default=0) for column in known]
        most = max(tops, default=0)
        if not most:
            self._text(_("No calls in this time."), 9, _QUIET)
            return
        left, top = pdf.l_margin + _LABEL_WIDTH, pdf.get_y() + 2
        width = pdf.epw - _LABEL_WIDTH
        self._axes(chart, most, (left, top, width))
        step = width / len(columns)
        if chart.is_stacked:
            self._bars(chart, most, (left, top, step))
        else:
            self._lines(chart, most, (left, top, step))
        pdf.set_xy(left, top + _CHART_HEIGHT + 6)
        pdf.set_text_color(*_INK)
        for at, one in enumerate(chart.series):
            label = self.letters.clean(one.label)[:40]
            if pdf.get_x() + pdf.get_string_width(label) + 8 > pdf.l_margin + pdf.epw:
                pdf.set_xy(left, pdf.get_y() + 5)
            pdf.set_fill_color(*_colour(one, at))
            pdf.rect(pdf.get_x(), pdf.get_y() + 1, 3, 3, style="F")
            pdf.set_x(pdf.get_x() + 4)
            pdf.cell(pdf.get_string_width(label) + 6, 5, label)
        pdf.set_xy(pdf.l_margin, pdf.get_y() + 7)

    def _axes(self, chart: PdfChart, most: int, box: tuple[float, float, float]) -> None:
        pdf = self.pdf
        left, top, width = box
        pdf.set_font(self._font, size=7.5)
        pdf.set_text_color(*_QUIET)
        pdf.set_draw_color(*_LINE)
        for share in (0, 0.5, 1):
            y = top + _CHART_HEIGHT * (1 - share)
            pdf.line(left, y, left + width, y)
            pdf.set_xy(pdf.l_margin, y - 2)
            number = most * share
            text = whole(number) if most > 1 or share != 0.5 else ""
            pdf.cell(_LABEL_WIDTH - 1, 4, f"{text} {chart.unit}".strip() if text else "", align="R")
        step = width / len(chart.labels)
        every = max(1, -(-len(chart.labels) // 6))
        for at in range(0, len(chart.labels), every):
            pdf.set_xy(left + at * step, top + _CHART_HEIGHT + 1)
            pdf.cell(0, 4, self.letters.clean(chart.labels[at]))

    def _bars(self, chart: PdfChart, most: int, box: tuple[float, float, float]) -> None:
        left, top, step = box
        for at in range(len(chart.labels)):
            y = top + _CHART_HEIGHT
            for number, one in enumerate(chart.series):
                height = _CHART_HEIGHT * (one.values[at] or 0) / most
                if height:
                    y -= height
                    self.pdf.set_fill_color(*_colour(one, number))
                    self.pdf.rect(left + at * step + step * 0.1, y, step * 0.8, height, style="F")

    def _lines(self, chart: PdfChart, most: int, box: tuple[float, float, float]) -> None:
        left, top, step = box
        self.pdf.set_line_width(0.4)
        for number, one in enumerate(chart.series):
            self.pdf.set_draw_color(*_colour(one, number))
            before: tuple[float, float] | None = None
            for at, value in enumerate(one.values):
                if value is None:
                    before = None
                    continue
                here = left + (at + 0.5) * step, top + _CHART_HEIGHT * (1 - value / most)
                # A value between two gaps is a line too short to be missed.
                self.pdf.line(*(before or (here[0] - 0.4, here[1])), *here)
                before = here
        self.pdf.set_line_width(0.2)


def _colour(one: ReportSeries, at: int) -> tuple[int, int, int]:
    return _KINDS.get(one.kind, _COLOURS[at % len(_COLOURS)])
