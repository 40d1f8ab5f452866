"""The read side of the log: queries into typed values. Every one begins at the workspace's door."""

from audit.reports.calls import CallRow, CallState, call_of, rows_of
from audit.reports.charts import Chart, ChartSeries, Totals, chart_of, totals_of
from audit.reports.entries import (
    MAX_CHOICES,
    FilterChoices,
    choices_of,
    entries_of,
    may_see_bodies,
    person_named,
    related_to,
)
from audit.reports.overview import Overview, overview_of
from audit.reports.searching import (
    PAGE_SIZE,
    EntryPage,
    first_of_calls,
    matching,
    may_search,
    page_of,
)

__all__ = [
    "MAX_CHOICES",
    "PAGE_SIZE",
    "CallRow",
    "CallState",
    "Chart",
    "ChartSeries",
    "EntryPage",
    "FilterChoices",
    "Overview",
    "Totals",
    "call_of",
    "chart_of",
    "choices_of",
    "entries_of",
    "first_of_calls",
    "matching",
    "may_search",
    "may_see_bodies",
    "overview_of",
    "page_of",
    "person_named",
    "related_to",
    "rows_of",
    "totals_of",
]
