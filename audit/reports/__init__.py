"""The read side of the log: queries into typed values. Every one begins at the workspace's door."""

from audit.reports.charts import Chart, Series, Totals, chart_of, totals_of
from audit.reports.entries import (
    Choices,
    choices_of,
    entries_of,
    may_see_bodies,
    related_to,
)
from audit.reports.overview import Overview, overview_of
from audit.reports.searching import PAGE_SIZE, Page, matching, may_search, page_of

__all__ = [
    "PAGE_SIZE",
    "Chart",
    "Choices",
    "Overview",
    "Page",
    "Series",
    "Totals",
    "chart_of",
    "choices_of",
    "entries_of",
    "matching",
    "may_search",
    "may_see_bodies",
    "overview_of",
    "page_of",
    "related_to",
    "totals_of",
]
